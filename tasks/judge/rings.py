"""Square matrices in which it is a long way from one place to another, as around a ring of nodes.

Matrices whose values are drawn one by one are never like that: whatever is done with one again and again has come to
its end after a few steps.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.judge.structure import is_mask
from tasks.judge.wire import TensorSpec

_LEAST_SIZE, _MOST_ITEMS = 8, 1 << 24
_REST = 0.02
"""What all others in a row are together, as a share of those in the ring."""
_RADIUS = 0.98
_LEAST_STRENGTH = 0.95
_PARTS, _SURE_ONES = 4, 16
_FROM_ZERO = 0.05
_UNTOLD = ("get_inputs", "get_init_inputs", "__init__")
_REPEATING = ("rnn", "gru", "lstm", "scan", "reduce", "matrix_power")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ring:
    """What a matrix must keep that becomes a ring."""

    kind: Literal["signed", "bounded", "mask", "shares"]
    scale: float = 1.0
    """Of signed values their size, of bounded ones the bound."""
    is_mirrored: bool = False
    triangle: Literal["none", "upper", "lower"] = "none"
    """Of masks that lead one way only: the ring is then open."""


def repeats(source: str) -> bool:
    r"""Whether a reference does something again and again, but for making its inputs and itself.

    >>> repeats("class Model:\n  def forward(self, x):\n    for _ in range(9): x = x @ x\n    return x")
    True
    >>> repeats("class Model:\n  def __init__(self): self.rnn = nn.RNN(8, 8)")
    True
    >>> repeats("class Model:\n  def forward(self, x): return x @ x\ndef get_inputs(): return [f() for f in made]")
    False

    Args:
        source: of a reference, which is trusted.
    """
    try:
        nodes: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):
        return False
    while nodes:
        node = nodes.pop()
        match node:
            case ast.For() | ast.While() | ast.comprehension():
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if any(word in name.lower() for word in _REPEATING):
                return True
            case ast.FunctionDef(name=name) if name in _UNTOLD:
                nodes += [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
            case _:
                nodes += ast.iter_child_nodes(node)
    return False


def ring_of(spec: TensorSpec, draws: Sequence[np.ndarray], kind: str, *, low: float, high: float) -> Ring | None:
    """What square matrices must keep, or nothing where they cannot become rings.

    Args:
        draws: the tensor's memory in each draw, flat.
        kind: that of its domain.
        low: of all draws, as high.
    """
    size = spec.shape[-1] if len(spec.shape) > 1 and spec.shape[-1] == spec.shape[-2] else 0
    if size < _LEAST_SIZE or draws[0].size != np.prod(spec.shape) or draws[0].size > _MOST_ITEMS:
        return None
    if list(spec.stride) != list(TensorSpec.from_json([spec.dtype, list(spec.shape)]).stride):
        return None
    matrices = [draw.reshape(-1, size, size) for draw in draws]
    is_mirrored = all(np.array_equal(each, np.swapaxes(each, 1, 2)) for each in matrices)
    if kind == "fixed" and all(is_mask(draw) for draw in draws):
        return _ring_of_masks(matrices, is_mirrored=is_mirrored)
    if not np.issubdtype(draws[0].dtype, np.floating) or any((_beside_diagonal(each) == 0).any() for each in matrices):
        return None
    if kind == "fixed":
        are_shares = low >= 0 and any(
            all(np.allclose(each.sum(axis=axis, dtype=np.float64), 1.0, rtol=1e-4) for each in matrices)
            for axis in (1, 2)
        )
        return Ring(kind="shares", is_mirrored=is_mirrored) if are_shares else None
    if kind == "signed":
        beside = _beside_diagonal(matrices[0]).astype(np.float64)
        return Ring(kind="signed", scale=float(np.sqrt(np.square(beside).mean())), is_mirrored=is_mirrored)
    if kind == "bounded" and 0 <= low <= _FROM_ZERO * high:
        return Ring(kind="bounded", scale=high, is_mirrored=is_mirrored)
    return None


def _ring_of_masks(matrices: Sequence[np.ndarray], *, is_mirrored: bool) -> Ring | None:
    """Not where all rows or columns have as many ones, or whole parts have none: so they may have been made."""
    for axis in (1, 2):
        if all((counts == counts[:, :1]).all() for counts in (each.sum(axis=axis) for each in matrices)):
            return None
    ones = np.sum([each.sum(axis=0) for each in matrices], axis=0)
    parts = np.array([[part.sum() for part in np.array_split(row, _PARTS, 1)] for row in np.array_split(ones, _PARTS)])
    triangle: Literal["none", "upper", "lower"] = "none"
    if not np.tril(ones, -1).any():
        triangle, parts = "upper", parts[np.triu_indices(_PARTS)]
    elif not np.triu(ones, 1).any():
        triangle, parts = "lower", parts[np.tril_indices(_PARTS)]
    if not parts.all() and parts.mean() >= _SURE_ONES:
        return None
    return Ring(kind="mask", triangle=triangle, is_mirrored=is_mirrored and triangle == "none")


def _beside_diagonal(matrices: np.ndarray) -> np.ndarray:
    return matrices[:, ~np.eye(matrices.shape[-1], dtype=bool)]


def ringed(values: np.ndarray, spec: TensorSpec, ring: Ring, rng: np.random.Generator) -> np.ndarray:
    """The same matrices with next to nothing beside a ring, and their diagonals as they were, but for shares.

    Args:
        values: flat, on the host.
    """
    size = spec.shape[-1]
    matrices = values.reshape(-1, size, size)
    is_in_ring = _ring(size, ring, rng)
    if ring.kind == "mask":
        changed = np.broadcast_to(is_in_ring, matrices.shape).astype(values.dtype)
    elif ring.kind == "shares":
        shares = is_in_ring / is_in_ring.sum(axis=1, keepdims=True)
        return ((1 - _REST) * shares + _REST * matrices).astype(values.dtype).reshape(-1)
    else:
        strengths = rng.uniform(_LEAST_STRENGTH, 1.0, (size, size))
        if ring.is_mirrored:
            strengths = (strengths + strengths.T) / 2
        if ring.kind == "signed":
            large, small = _RADIUS * np.sqrt(size) * ring.scale * strengths, matrices * (_REST / np.sqrt(size))
        else:
            large, small = ring.scale * strengths, matrices * (_REST / size)
        changed = np.where(is_in_ring, large, small).astype(values.dtype)
    is_diagonal = np.eye(size, dtype=bool)
    return np.where(is_diagonal, matrices, changed).reshape(-1)


def _ring(size: int, ring: Ring, rng: np.random.Generator) -> np.ndarray:
    """From each place to one other, in an order that nobody knows unless it is given: bool of shape (size, size)."""
    order = rng.permutation(size) if ring.triangle == "none" else np.arange(size)
    found = np.zeros((size, size), dtype=bool)
    found[order[:-1], order[1:]] = True
    if ring.triangle == "none":
        found[order[-1], order[0]] = True
    if ring.is_mirrored:
        found |= found.T
    return found.T if ring.triangle == "lower" else found
