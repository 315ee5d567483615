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
from trl.trainer import utils

from tasks.training.footprint import TILE_BYTES

_TRL: Any = utils  # one of its functions is replaced, which type checkers refuse
_ROWS = 128
"""Tokens in a tile are a multiple of it, as kernels of products take them."""


@contextmanager
def logits_once() -> Iterator[None]:
    """Have the heads that TRL gives to models compute logits once: for SFT, on a GPU.

    Without a GPU TRL also asks for tokens that are not scored, and counts them with 0, so not all count the same; in
    GRPO each token has a weight of its own.
    """
    if not (torch.cuda.is_available() and kernels._use_triton(torch.device("cuda"))):
        yield
        return
    usual = _TRL._ChunkedLogProbFunction
    _TRL._ChunkedLogProbFunction = _Once
    try:
        yield
    finally:
        _TRL._ChunkedLogProbFunction = usual


class _Once:
    """In place of TRL's function: where nothing is learnt, its own is cheaper."""

    @staticmethod
    def apply(*given: Any) -> tuple[Tensor | None, ...]:
        return (LogProbs if torch.is_grad_enabled() else kernels.ChunkedLogProbFunction).apply(*given)


class LogProbs(torch.autograd.Function):
    """Log-probabilities of targets and, computed with them, their gradients; called as TRL's own function is.

    The loss must be the same multiple of each log-probability, or the backward pass fails. Entropies have no gradient.
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
        """Log-probabilities, entropies and whether targets are the likeliest words, each [tokens], in TRL's order.

        Args:
            hidden: [tokens, width].
            weight: [words, width].
            bias: [words], if any.
            targets: [tokens], numbers of words.
            temperature, softcap, scale: logits are multiplied by the scale, capped, and divided by the temperature.
            tile_words, outputs: what TRL's function goes by; here tiles have all words, and outputs are these three.
        """
        device, words = hidden.device, len(weight)
        dtype = _product_dtype(hidden)
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
        """Gradients by the factor that all log-probabilities, [tokens], have in the loss; can be asked for once."""
        torch._assert_async((grad == grad[:1]).all(), "tokens count differently in the loss")
        factor = grad[:1].sum()  # of no tokens 0
        found = [_scaled(each, factor, dtype) for each, dtype in zip(ctx.gradients, ctx.dtypes, strict=True)]
        del ctx.gradients
        return (*found, *(None,) * 6)


def rows_at_once(words: int) -> int:
    """Tokens whose logits are computed at once."""
    return max(TILE_BYTES // (2 * words) // _ROWS, 1) * _ROWS


def _scaled(gradient: Tensor | None, factor: Tensor, dtype: torch.dtype | None) -> Tensor | None:
    """By float32: on a GPU a factor for 16 bits is rounded to them first, and all that is learnt off by as much."""
    return None if gradient is None else gradient.float().mul_(factor).to(dtype)


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
