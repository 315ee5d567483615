"""The output's head in supervised training on a GPU: every logit is computed once.

TRL computes logits in tiles, throws them away, and computes them again in the backward pass. But where all tokens count
the same in the loss, the gradient of a tile is known up to one factor as soon as the tile is: it is taken at once, and
the factor follows in the backward pass, as in Liger Kernel (arXiv:2410.10989, section 3.2). TRL's kernels turn tiles
into log-probabilities and gradients; only the order is ours.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from trl.kernels import chunked_logprob as kernels
from trl.trainer import utils as trl_utils

TILE_BYTES = 1 << 30
"""Of logits at once, of 2 bytes each: enough for efficient products of matrices, little beside activations."""
_ROWS = 128
"""Tokens in a tile are a multiple of it."""
_IN_TRL = "_ChunkedLogProbFunction"


@contextmanager
def logits_once() -> Iterator[None]:
    """Have the heads that TRL gives to models compute logits once: on a GPU, for SFT.

    Without one TRL asks for tokens that are not scored too, which do not count the same; and GRPO's tokens do not.
    """
    if not (torch.cuda.is_available() and kernels._use_triton(torch.device("cuda"))):
        yield
        return
    usual = getattr(trl_utils, _IN_TRL)
    setattr(trl_utils, _IN_TRL, LogProbs)
    try:
        yield
    finally:
        setattr(trl_utils, _IN_TRL, usual)


class LogProbs(torch.autograd.Function):
    """Log-probabilities of targets and, computed with them, their gradients; takes the place of TRL's own function.

    The loss must be the same multiple of each log-probability, and entropies have no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        tile_words: int,
        softcap: float | None,
        scale: float,
        outputs: tuple[str, ...],
    ) -> tuple[Tensor | None, ...]:
        """Log-probabilities, and of the other things that TRL asks for those that `outputs` names, each [tokens].

        Args:
            hidden: [tokens, width].
            weight: [words, width].
            bias: [words], if any.
            targets: [tokens], numbers of words.
            temperature, softcap, scale: logits are multiplied by the scale, capped, and divided by the temperature.
            tile_words: of TRL's tiles; these have all words.
            outputs: of "entropy" and "is_top1".
        """
        device, (words, _), dtype = hidden.device, weight.shape, _product_dtype(hidden)
        matrix, added = weight.to(dtype), None if bias is None else bias.to(dtype)
        transform = {
            "logit_scale": scale,
            "softcap": softcap or 1.0,
            "inv_t": 1 / temperature,
            "HAS_SOFTCAP": softcap is not None,
        }
        grad_hidden = torch.empty_like(hidden, dtype=dtype) if ctx.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        grad_bias = torch.zeros(words, device=device) if ctx.needs_input_grad[2] else None
        found = {name: torch.zeros(len(hidden), device=device) for name in ("log_probs", "entropy", "is_top1")}
        step = rows_at_once(words)
        tiles = torch.empty(min(step, len(hidden)), words, device=device, dtype=dtype)  # one after another in one place
        for start in range(0, len(hidden), step):
            rows = slice(start, start + step)
            states, wanted = hidden[rows].to(dtype), targets[rows]
            tile = torch.mm(states, matrix.t(), out=tiles[: len(states)])
            if added is not None:
                tile += added
            log_z = _fold(tile, wanted, {name: each[rows] for name, each in found.items()}, transform)
            _become_gradient(tile, wanted, log_z, transform)
            if grad_hidden is not None:
                torch.mm(tile, matrix, out=grad_hidden[rows])
            if grad_weight is not None:
                kernels._addmm_fp32(grad_weight, tile.t(), states)
            if grad_bias is not None:
                grad_bias += tile.sum(dim=0, dtype=torch.float32)
        ctx.gradients = grad_hidden, grad_weight, grad_bias
        ctx.dtypes = tuple(None if each is None else each.dtype for each in (hidden, weight, bias))
        is_top1 = found["is_top1"].bool()
        ctx.mark_non_differentiable(found["entropy"], is_top1)
        return found["log_probs"], found["entropy"], None, None, is_top1

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, grad_bias = ctx.gradients
        del ctx.gradients
        factor = grad[:1].sum()  # of any token; of none 0
        scaled = (None if each is None else each.mul_(factor) for each in (grad_hidden, grad_weight, grad_bias))
        typed = (None if each is None else each.to(dtype) for each, dtype in zip(scaled, ctx.dtypes, strict=True))
        return (*typed, *(None,) * 6)


def rows_at_once(words: int) -> int:
    """Tokens whose logits are computed at once."""
    return max(TILE_BYTES // (2 * words) // _ROWS, 1) * _ROWS


def _product_dtype(hidden: Tensor) -> torch.dtype:
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype


def _fold(tile: Tensor, targets: Tensor, found: dict[str, Tensor], transform: dict[str, Any]) -> Tensor:
    """Write down what is found of a tile of logits, [tokens, words]; returns the logarithm of its sums, [tokens]."""
    tokens, words = tile.shape
    most, most_before = (torch.full((tokens,), -math.inf, device=tile.device) for _ in range(2))
    sums, weighted_sums, of_targets = (torch.zeros(tokens, device=tile.device) for _ in range(3))
    kernel = kernels._forward_kernel[(tokens,)] if tile.is_cuda else kernels._forward_tile
    kernel(
        tile,
        tile.stride(0),
        targets,
        most,
        sums,
        weighted_sums,
        sums,  # in place of what is not asked for
        sums,
        most_before,
        of_targets,
        0,
        words,
        HAS_ENTROPY=True,
        HAS_LOG_SUM_SQ_PROBS=False,
        HAS_MEAN_LOGITS=False,
        HAS_IS_TOP1=True,
        BLOCK_SIZE=kernels._BLOCK_SIZE,
        **transform,
    )
    log_z = most + sums.log()
    found["log_probs"].copy_(of_targets - log_z)
    found["entropy"].copy_(log_z - weighted_sums / sums)
    found["is_top1"].copy_((of_targets >= most) & (of_targets > most_before))
    return log_z


def _become_gradient(tile: Tensor, targets: Tensor, log_z: Tensor, transform: dict[str, Any]) -> None:
    """Overwrite logits by the gradients of their targets' log-probabilities."""
    tokens, words = tile.shape
    grid = tokens, -(-words // kernels._BLOCK_SIZE)
    kernel = kernels._backward_kernel[grid] if tile.is_cuda else kernels._backward_tile
    kernel(
        tile,
        tile.stride(0),
        targets,
        log_z,
        log_z,  # in place of entropies and their gradients
        torch.ones_like(log_z),
        log_z,
        0,
        words,
        HAS_LOGPROB_GRAD=True,
        HAS_ENTROPY_GRAD=False,
        BLOCK_SIZE=kernels._BLOCK_SIZE,
        **transform,
    )
