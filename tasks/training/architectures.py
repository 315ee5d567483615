"""Shapes of known language models in plain numbers: how many weights they have, and where. Needs no network."""

from dataclasses import dataclass, replace

_QWEN = "Qwen2.5-Coder technical report, arXiv:2409.12186, table 1; vocabulary as padded in the models' config.json"
_QWEN_72B = "Qwen2.5 technical report, arXiv:2412.15115, table 1; widths from config.json of Qwen2.5-72B-Instruct"
_LLAMA = "The Llama 3 herd of models, arXiv:2407.21783, table 3; vocabulary as in config.json of Llama-3.3-70B-Instruct"
_DEEPSEEK = "DeepSeek-V3 technical report, arXiv:2412.19437, section 4.2, without the module for multi-token prediction"


@dataclass(frozen=True, kw_only=True, slots=True)
class Latent:
    """Multi-head latent attention: queries, keys and values are made from short vectors."""

    query_rank: int
    key_value_rank: int
    rotary_size: int
    """Part of a head's queries and keys that carries the position."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """Feed-forward layers of which every token takes a few."""

    count: int
    active: int
    shared: int
    intermediate: int
    dense_layers: int
    """First layers that have an ordinary feed-forward layer instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A decoder with RMSNorm, rotary positions and gated feed-forward layers, in the words of its config.json."""

    name: str
    source: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    head_size: int
    vocab: int
    positions: int
    """Longest context it was made for, in tokens."""
    is_tied: bool
    """Whether the output's matrix is the embedding's."""
    has_attention_bias: bool = False
    latent: Latent | None = None
    experts: Experts | None = None

    @property
    def query_width(self) -> int:
        """Numbers in all heads' queries of a token."""
        rotary = self.latent.rotary_size if self.latent else 0
        return self.heads * (self.head_size + rotary)

    @property
    def key_value_width(self) -> int:
        """Numbers in all heads' keys and values of a token together, as attention reads them."""
        rotary = self.latent.rotary_size if self.latent else 0
        return self.key_value_heads * (2 * self.head_size + rotary)

    @property
    def cached_width(self) -> int:
        """Numbers of a layer and token that generation keeps."""
        return self.latent.key_value_rank + self.latent.rotary_size if self.latent else self.key_value_width

    @property
    def feed_forward_width(self) -> int:
        """Numbers between the matrices of the widest feed-forward layer, for one token."""
        chosen = (self.experts.active + self.experts.shared) * self.experts.intermediate if self.experts else 0
        return max(chosen, self.intermediate)

    @property
    def attention_shapes(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each matrix of one layer's attention."""
        out = (self.heads * self.head_size, self.hidden)
        if self.latent is None:
            keys = self.key_value_width // 2
            return ((self.hidden, self.query_width), (self.hidden, keys), (self.hidden, keys), out)
        return (
            (self.hidden, self.latent.query_rank),
            (self.latent.query_rank, self.query_width),
            (self.hidden, self.latent.key_value_rank + self.latent.rotary_size),
            (self.latent.key_value_rank, 2 * self.heads * self.head_size),
            out,
        )

    @property
    def attention_parameters(self) -> int:
        """Of one layer: matrices, biases, and the norms of latent vectors."""
        matrices = sum(inputs * outputs for inputs, outputs in self.attention_shapes)
        biases = self.query_width + self.key_value_width if self.has_attention_bias else 0
        norms = self.latent.query_rank + self.latent.key_value_rank if self.latent else 0
        return matrices + biases + norms

    @property
    def expert_parameters(self) -> int:
        """Of one layer of experts, the gate that chooses among them included."""
        if self.experts is None:
            return 0
        one = 3 * self.hidden * self.experts.intermediate
        return (self.experts.count + self.experts.shared) * one + self.experts.count * self.hidden

    @property
    def largest_layer_parameters(self) -> int:
        """Of the layer that has most."""
        dense = 3 * self.hidden * self.intermediate
        return self.attention_parameters + 2 * self.hidden + max(dense, self.expert_parameters)

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding, and again of the output where that has a matrix of its own."""
        return self.vocab * self.hidden * (1 if self.is_tied else 2)

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        with_experts = self.layers - self.experts.dense_layers if self.experts else 0
        dense = (self.layers - with_experts) * 3 * self.hidden * self.intermediate
        layers = self.layers * (self.attention_parameters + 2 * self.hidden) + dense
        return layers + with_experts * self.expert_parameters + self.hidden + self.embedding_parameters

    def adapter_parameters(self, rank: int) -> int:
        """Of low-rank adapters on what peft takes for "all-linear".

        That is every matrix but the embedding and the output's. Of a model with experts it is attention, the gate and
        each expert for itself, and the two matrices of an expert that are one tensor get an adapter of twice the rank.

        Source: LoRA, arXiv:2106.09685, section 4.1: rank x (inputs + outputs) for each matrix.
        """
        ends = self.layers * sum(inputs + outputs for inputs, outputs in self.attention_shapes)
        if self.experts is None:
            return rank * (ends + self.layers * 3 * (self.hidden + self.intermediate))
        size = self.experts.intermediate
        expert = 2 * (self.hidden + 2 * size) + size + self.hidden
        gate = self.hidden + self.experts.count
        return rank * (ends + (self.layers - self.experts.dense_layers) * (self.experts.count * expert + gate))


def _qwen(name: str, hidden: int, intermediate: int, layers: int, heads: int, key_value_heads: int) -> Architecture:
    is_small = hidden <= 2048
    return Architecture(
        name=f"Qwen2.5-Coder-{name}",
        source=_QWEN,
        hidden=hidden,
        intermediate=intermediate,
        layers=layers,
        heads=heads,
        key_value_heads=key_value_heads,
        head_size=hidden // heads,
        vocab=151_936 if is_small else 152_064,
        positions=32_768,
        is_tied=is_small,
        has_attention_bias=True,
    )


ARCHITECTURES = {
    architecture.name: architecture
    for architecture in (
        _qwen("0.5B", 896, 4_864, 24, 14, 2),
        _qwen("1.5B", 1_536, 8_960, 28, 12, 2),
        _qwen("3B", 2_048, 11_008, 36, 16, 2),
        _qwen("7B", 3_584, 18_944, 28, 28, 4),
        _qwen("14B", 5_120, 13_824, 48, 40, 8),
        _qwen("32B", 5_120, 27_648, 64, 40, 8),
        Architecture(
            name="Llama-3.3-70B",
            source=_LLAMA,
            hidden=8_192,
            intermediate=28_672,
            layers=80,
            heads=64,
            key_value_heads=8,
            head_size=128,
            vocab=128_256,
            positions=131_072,
            is_tied=False,
        ),
        replace(_qwen("72B", 8_192, 29_568, 80, 64, 8), name="Qwen2.5-72B", source=_QWEN_72B),
        Architecture(
            name="DeepSeek-V3",
            source=_DEEPSEEK,
            hidden=7_168,
            intermediate=18_432,
            layers=61,
            heads=128,
            key_value_heads=128,
            head_size=128,
            vocab=129_280,
            positions=163_840,
            is_tied=False,
            latent=Latent(query_rank=1_536, key_value_rank=512, rotary_size=64),
            experts=Experts(count=256, active=8, shared=1, intermediate=2_048, dense_layers=3),
        ),
    )
}
