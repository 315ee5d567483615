"""How much of a GPU's arithmetic a training uses: model FLOPs, those that the algorithm needs and no others."""

from tasks.training.architectures import Architecture

# Dense bf16 with fp32 accumulation, in FLOP/s, from NVIDIA's data sheets (which state twice that, with sparsity).
PEAK_FLOPS = {"H200": 989e12, "H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}


def peak_flops(device: str) -> float | None:
    """Of a GPU by the name its driver gives it; None for one that is not listed."""
    return next((peak for name, peak in PEAK_FLOPS.items() if all(word in device for word in name.split())), None)


def training_flops(
    model: Architecture, *, attended_tokens: float, scored_share: float, trains_adapters: bool = False
) -> float:
    """FLOPs of a training step for each of its tokens.

    A matrix of n weights takes 2n in the forward pass, 2n for the gradient of its input and 2n for its own, which
    frozen weights under adapters do not need: 6n, or 4n. Attention takes 4 x heads x head_size for each earlier token
    and layer, half of which causality leaves out, and twice that again backwards: 6 x layers x heads x head_size for
    each token attended from. The head is counted for the tokens that are scored. What is computed twice to save memory
    is not counted, nor are padding, norms and the optimiser.

    Args:
        attended_tokens: length of the example a token stands in, as its mean over tokens.
        scored_share: share of the tokens that are completions'.

    Source: PaLM (arXiv:2204.02311), appendix B.
    """
    layer = sum(inputs * outputs for inputs, outputs in model.attention_shapes) + 3 * model.hidden * model.intermediate
    head = model.vocab * model.hidden * scored_share
    passes = 4 if trains_adapters else 6
    return passes * (model.layers * layer + head) + 6 * model.layers * model.heads * model.head_size * attended_tokens
