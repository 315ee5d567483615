"""A model's state while a batch of completions grows by a token at a time.

On a GPU one such step is hundreds of kernels of a few microseconds each, which take longer to launch than to run. There
it is captured as a CUDA graph, from tensors that stay where they are, and replayed for every token that follows.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import LongTensor, Tensor
from transformers import DynamicCache, PreTrainedModel

from tasks.training.acceleration import attends_plainly
from tasks.training.grouped_attention import grouped_heads
from tasks.training.growing_cache import can_be_fixed, fix, growing_cache
from tasks.training.team import team

# Kinds of model that are known to wait for nothing on the host within a step, as those do that send tokens to experts.
_CAPTURED_KINDS = frozenset({"lfm2", "llama", "qwen2", "qwen3"})
# A captured step attends to so many columns or a multiple, whether they are written yet or not.
_COLUMNS = 512


class Decoder:
    """The logits of the next token of every row, and what leads to them."""

    logits: Tensor
    """[rows, vocabulary]; good until the next token is appended."""

    def __init__(
        self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, pad_id: int, max_tokens: int
    ) -> None:
        """Read the prompts, a row each. Equal ones are computed once and then repeated.

        Args:
            max_tokens: how many will be appended at most.
        """
        distinct = list(dict.fromkeys(map(tuple, prompts)))
        longest = max(map(len, distinct))
        device = model.device
        ids = torch.tensor([[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in distinct], device=device)
        lengths = torch.tensor(list(map(len, distinct)), device=device)
        capacity = longest + max_tokens
        self._model = model
        self._mask = torch.ones(len(distinct), capacity, dtype=torch.long, device=device)
        self._mask[:, :longest] = torch.arange(longest, device=device) >= (longest - lengths).unsqueeze(1)
        self._width = longest
        self._offsets = lengths - longest
        self._cache = growing_cache(model, capacity)
        self._step: FixedStep | None = None
        self._takes_fixed_steps = takes_fixed_steps(model, self._cache)
        self.logits = self._forward(ids, (self._mask[:, :longest].cumsum(1) - 1).clamp_min(0))
        number = {prompt: index for index, prompt in enumerate(distinct)}
        self.keep(torch.tensor([number[tuple(prompt)] for prompt in prompts], device=device))

    @property
    def dropped_share(self) -> float:
        """The share of rows that has ended when it is worth it to go on without them.

        That copies the others' keys and values, and where steps are captured it needs a new capture.
        """
        return 0.5 if self._takes_fixed_steps else 0.2

    def append(self, tokens: Tensor) -> None:
        """Add one token, [rows], to every row."""
        positions = (self._offsets + self._width).unsqueeze(1)
        self._width += 1
        if not self._takes_fixed_steps:
            self.logits = self._forward(tokens.unsqueeze(1), positions)
            return
        if self._step is None or self._width > self._step.num_columns:
            num_columns = min(-(-self._width // _COLUMNS) * _COLUMNS, self._mask.shape[1])
            seen = self._mask[:, :num_columns].bool()
            seen[:, self._width - 1 :] = False
            self._step = FixedStep(self._model, self._cache, positions, seen, at=self._width - 1)
        self.logits = self._step.run(tokens)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be named several times."""
        self._mask = self._mask[rows]
        self._offsets = self._offsets[rows]
        self.logits = self.logits[rows]
        self._step = None
        self._cache.reorder_cache(cast(LongTensor, rows))

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask[:, : self._width],
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]


class FixedStep:
    """One token more for every row, in tensors that stay where they are: what a CUDA graph can replay."""

    def __init__(
        self, model: PreTrainedModel, cache: DynamicCache, positions: Tensor, seen: Tensor, *, at: int
    ) -> None:
        """Nothing is computed yet.

        Args:
            positions: [rows, 1], of the next token in its row without padding.
            seen: [rows, columns], whether a column has been written and is no padding.
            at: the column of the next token.
        """
        self.num_columns = seen.shape[1]
        self._model = model
        self._cache = cache
        self._ids = torch.zeros_like(positions)
        self._positions = positions.clone()
        self._seen = seen[:, None, None]
        self._at = torch.tensor([at], device=seen.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits: Tensor | None = None
        fix(cache, self._at, self.num_columns)

    def run(self, tokens: Tensor) -> Tensor:
        """The logits, [rows, vocabulary], after one token for every row; the next run may overwrite them."""
        self._ids.copy_(tokens.unsqueeze(1))
        if self._logits is None or not tokens.is_cuda:
            self._logits = self._compute()  # what libraries set up at a first call cannot be captured
        else:
            if self._graph is None:
                self._capture()
            assert self._graph is not None
            self._graph.replay()
        return self._logits

    def _capture(self) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # Other threads judge meanwhile, and what they do with the device is not to be refused.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._logits = self._compute()

    def _compute(self) -> Tensor:
        self._seen.index_fill_(3, self._at, True)
        with grouped_heads(self._model):
            output = self._model(
                input_ids=self._ids,
                attention_mask=self._seen,
                position_ids=self._positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        self._positions.add_(1)
        self._at.add_(1)
        return output.logits[:, -1]


def takes_fixed_steps(model: PreTrainedModel, cache: DynamicCache) -> bool:
    """Whether a step can be captured, and pays off.

    Not under ZeRO-3, which brings each layer's weights when the layer begins; nor through layers that are compiled, and
    may be anew; nor through attention that takes other masks than PyTorch's.
    """
    return (
        model.device.type == "cuda"
        and team().engine.zero_stage != 3
        and model.config.model_type in _CAPTURED_KINDS
        and model.config._attn_implementation == "sdpa"
        and attends_plainly(model)
        and can_be_fixed(cache)
        and not any(module._compiled_call_impl for module in model.modules())
    )
