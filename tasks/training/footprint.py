"""What training a model takes of a GPU's memory, by calculation: the table "what fits where". Imports nothing heavy.

Attention is taken to be a fused kernel (sdpa, flash) that keeps no scores, and the output's logits to be computed in
tiles of the size that supervised training has; GRPO's are smaller. What is counted follows the code of this project;
measured points may differ by what an allocator wastes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tasks.training.architectures import Architecture

# AdamW keeps two moments; under ZeRO there is a float32 copy of the weights beside them, the paper's K = 12 bytes.
_MOMENTS = 2
_ZERO_OPTIMISER_BYTES = 12
# What CUDA, cuBLAS and NCCL take before anything is allocated, and what an allocator loses between blocks.
_CONTEXT_BYTES = 1_500_000_000
_FRAGMENTATION = 0.05
# Of DeepSpeed's settings: elements in a bucket of gradients, of which two are in flight; weights that ZeRO-3 may hold
# gathered; weights whose optimiser step it takes at once.
_BUCKET = 200_000_000
_GATHERED = 2_000_000_000
_STEPPED = 1_000_000_000
TILE_BYTES = 1 << 29
"""Of logits at once, of 2 bytes each: enough for efficient products of matrices, little beside activations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How a model is trained."""

    gpus: int
    tokens: int
    """In memory at once on each GPU: examples of a micro-batch times their length, padding included, packed or not."""
    zero_stage: Literal[0, 1, 2, 3] = 0
    offload: Literal["none", "cpu", "nvme"] = "none"
    """Where ZeRO keeps the optimiser's state, and at stage 3 the weights."""
    adapter_rank: int | None = None
    """None trains every weight."""
    has_checkpointing: bool = True
    """Whether activations are computed again in the backward pass, layer by layer."""
    weights: Literal["float32", "bfloat16"] = "bfloat16"
    """Ignored under ZeRO, which always computes with bfloat16 and keeps float32 in the optimiser."""

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.tokens < 1 or (self.adapter_rank is not None and self.adapter_rank < 1):
            raise ValueError(f"gpus, tokens and adapter_rank must be positive, not {self}")
        if self.offload != "none" and self.zero_stage < 2:
            raise ValueError(f"offload needs zero_stage 2 or 3, not {self.zero_stage}")
        if self.offload == "nvme" and self.zero_stage != 3:
            raise ValueError("offload to nvme needs zero_stage 3")


@dataclass(frozen=True, kw_only=True, slots=True)
class Footprint:
    """Memory of one GPU by what it holds, and its share of the host's, in bytes."""

    weights_bytes: int
    gradients_bytes: int
    optimiser_bytes: int
    activations_bytes: int
    """What the forward pass leaves for the backward pass, at its largest."""
    logits_bytes: int
    """Of the output, forward and backward; held at the same time as the activations."""
    step_bytes: int
    """What the optimiser's step takes for itself, when there are no activations."""
    buffers_bytes: int
    """Gathered weights and buckets of gradients on their way."""
    host_bytes: int
    """Offloaded to the host's memory by this GPU."""
    nvme_bytes: int

    @property
    def total_bytes(self) -> int:
        """The peak on the GPU, with what CUDA takes and fragmentation."""
        held = self.weights_bytes + self.gradients_bytes + self.optimiser_bytes + self.buffers_bytes
        held += max(self.activations_bytes + self.logits_bytes, self.step_bytes)
        return round(held * (1 + _FRAGMENTATION)) + _CONTEXT_BYTES


def footprint(model: Architecture, setup: Setup) -> Footprint:
    """What one of the setup's GPUs holds.

    Source: ZeRO (arXiv:1910.02054), section 3.1 for 2 + 2 + 12 bytes a weight in mixed precision and section 5 for what
    each stage divides by the number of GPUs; ZeRO-Infinity (arXiv:2104.07857), section 5.1 for what is offloaded.
    """
    trained = model.adapter_parameters(setup.adapter_rank) if setup.adapter_rank else model.parameters
    frozen = model.parameters if setup.adapter_rank else 0
    weights, gradients, optimiser, step = _state(trained, setup)
    weights += frozen * (_width(setup) if setup.zero_stage < 3 else 2 / setup.gpus)
    offloaded = 0.0
    if setup.offload != "none":
        offloaded = optimiser + gradients
        optimiser = gradients = step = 0.0
        if setup.zero_stage == 3:
            offloaded += weights
            weights = 0.0
    return Footprint(
        weights_bytes=round(weights),
        gradients_bytes=round(gradients),
        optimiser_bytes=round(optimiser),
        activations_bytes=activations_bytes(model, setup),
        logits_bytes=_logits_bytes(model, setup),
        step_bytes=round(step),
        buffers_bytes=_buffers_bytes(model, setup, trained),
        host_bytes=round(offloaded) if setup.offload == "cpu" else 0,
        nvme_bytes=round(offloaded) if setup.offload == "nvme" else 0,
    )


def activations_bytes(model: Architecture, setup: Setup) -> int:
    """What the forward pass keeps for the backward pass.

    Counted as in section 4.1 of Korthikanti et al. (arXiv:2205.05198), whose 34 s b h bytes a layer are for GELU and
    dropout, without the scores, as in their section 5. Here a token leaves in each layer, in bytes, with h, q, k and f
    the widths of hidden states, queries, keys with values, and the feed-forward layer:

    - two norms: their input in float32 and what they normalised: 2 (4 h + 2 h), and their output, which the matrices
      read: 2 (2 h);
    - attention: queries, keys and values 2 (q + k), its output 2 q, and the scores' log-sum 4 per head;
    - the gated feed-forward layer: gate, its activation, up and their product: 8 f.

    With checkpointing (section 6 there: "full recomputation") only each layer's input stays, and one layer at a time
    is whole. Hidden states are float32 where weights are, since autocast adds in the wider type.
    """
    hidden_bytes = model.hidden * _width(setup)
    layer = _layer_bytes(model)
    if setup.has_checkpointing:
        return setup.tokens * (model.layers * hidden_bytes + layer)
    return setup.tokens * model.layers * layer


def sampling_bytes(
    model: Architecture,
    setup: Setup,
    *,
    completions: int,
    prompt_tokens: int,
    completion_tokens: int,
    amid_training: bool,
) -> int:
    """The peak on a GPU that samples so many completions side by side, each as long and of a prompt as long as may be.

    It holds the whole model, keys and values, and one layer of all prompts together; where it samples for the step that
    it then trains on, also what training keeps: under ZeRO-3 its share of the weights beside the whole.
    """
    width = 4 if setup.weights == "float32" and not (amid_training and setup.zero_stage) else 2
    held = width * model.parameters + (4 * model.adapter_parameters(setup.adapter_rank) if setup.adapter_rank else 0)
    if amid_training:
        state = footprint(model, setup)
        held += state.gradients_bytes + state.optimiser_bytes + (state.weights_bytes if setup.zero_stage == 3 else 0)
    cached = cache_bytes(model, completions * (prompt_tokens + completion_tokens)) * width // 2
    read = completions * prompt_tokens * _layer_bytes(model) * width // 2
    return round((held + cached + read) * (1 + _FRAGMENTATION)) + _CONTEXT_BYTES


def all_stages_bytes(model: Architecture, setup: Setup) -> int:
    """The peak on a GPU over all stages, of which those that sample write one completion at a time.

    The setup's tokens are then its prompt's and its own. They are counted as a prompt's, which take more.
    """
    sampling = partial(sampling_bytes, model, setup, completions=1, prompt_tokens=setup.tokens, completion_tokens=0)
    return max(footprint(model, setup).total_bytes, *(sampling(amid_training=amid) for amid in (False, True)))


def cache_bytes(model: Architecture, tokens: int) -> int:
    """What generation keeps of so many tokens, all completions written side by side counted, in bfloat16."""
    return 2 * model.layers * model.cached_width * tokens


def first_that_fits(
    model: Architecture, setups: Iterable[Setup], *, memory_bytes: int, host_memory_bytes: int, samples: bool = False
) -> Setup | None:
    """The first of the setups that fits into GPUs of that memory and such a share of the host's; None if none does.

    Args:
        memory_bytes: of a GPU.
        host_memory_bytes: for each GPU of a host.
        samples: whether all stages have to fit, not those alone that learn from examples.
    """
    for setup in setups:
        taken = footprint(model, setup)
        peak = all_stages_bytes(model, setup) if samples else taken.total_bytes
        if peak <= memory_bytes and taken.host_bytes <= host_memory_bytes:
            return setup
    return None


def _layer_bytes(model: Architecture) -> int:
    """What a token leaves in a layer, as activations_bytes tells."""
    attention = 2 * (2 * model.query_width + model.key_value_width) + 4 * model.heads
    return 16 * model.hidden + attention + 8 * model.feed_forward_width


def _width(setup: Setup) -> int:
    return 4 if setup.weights == "float32" and not setup.zero_stage else 2


def _state(trained: int, setup: Setup) -> tuple[float, float, float, float]:
    """Bytes of the trained weights, their gradients and optimiser, and what a step takes beside these."""
    share = 1 / setup.gpus
    if not setup.zero_stage:
        # Adapters are float32 whatever the model is. Of float32 weights autocast keeps bfloat16 copies as it computes.
        width = 4 if setup.adapter_rank else _width(setup)
        copies = 2 if width == 4 else 0
        return (width + copies) * trained, width * trained, _MOMENTS * width * trained, 0.0
    weights = 2 * trained * (share if setup.zero_stage == 3 else 1)
    gradients = 2 * trained * (share if setup.zero_stage >= 2 else 1)
    stepped = min(trained * share, _STEPPED) if setup.zero_stage == 3 else trained * share
    return weights, gradients, _ZERO_OPTIMISER_BYTES * trained * share, 4 * stepped


def _logits_bytes(model: Architecture, setup: Setup) -> int:
    tile = min(2 * setup.tokens * model.vocab, TILE_BYTES)
    hidden_gradient = 4 * setup.tokens * model.hidden
    matrix_gradient = 0 if setup.adapter_rank else 4 * model.vocab * model.hidden
    return tile + hidden_gradient + matrix_gradient


def _buffers_bytes(model: Architecture, setup: Setup, trained: int) -> int:
    if not setup.zero_stage:
        return 0
    buckets = 2 * 2 * min(_BUCKET, trained)
    if setup.zero_stage < 3:
        return buckets
    # The layer that is computed and the one after it, or whatever DeepSpeed may leave gathered if that is more.
    return buckets + 2 * min(model.parameters, max(2 * model.largest_layer_parameters, _GATHERED))
