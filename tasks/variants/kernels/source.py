"""Writes the C function for a tree of elementwise operations and reductions, and the Python that calls it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.variants.kernels.geometry import Geometry, geometry
from tasks.variants.kernels.nodes import Carried, Leaf, Node, Number, Op, Reduce, Unsupported, children, walk

_START = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}
_STEP = {"sum": "{0} += {1};", "max": "{0} = {1} > {0} ? {1} : {0};", "min": "{0} = {1} < {0} ? {1} : {0};"}
_OPERATOR = {"sum": "+", "max": "max", "min": "min"}


@dataclass(frozen=True, slots=True)
class Kernel:
    source: str
    """The C function `run`."""
    setup: tuple[str, ...]
    """Lines of Python that name the tensors that have no name yet."""
    out_shape: str
    arguments: tuple[str, ...]
    """Of the call, after the output."""


class _Bare(str):
    """C text that knows how it reads where nothing around it can bind more tightly."""

    @property
    def bare(self) -> str:
        return self[1:-1] if self.startswith("(") and _closes_at_end(self) else str(self)


def _closes_at_end(text: str) -> bool:
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(text) - 1:
            return False
    return True


def _number(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f"
