"""Rewrites that compute part of a forward in plain C, built by gcc in a tenth of a second and called through pointers.

All of them assume float32 tensors, and shapes that can be worked out from the program's text. Inputs may lie in memory
as they like; the output is new at every call, and parameters are read at every call.
"""

import random
from collections.abc import Callable, Iterator

import libcst as cst

from tasks.variants.kernels.kernel import Kernel, kernel_for
from tasks.variants.kernels.model import Model, read_model
from tasks.variants.kernels.nodes import Carried, Node, Op, Reduce, Unsupported, contains, walk
from tasks.variants.kernels.recurrences import recurrence
from tasks.variants.kernels.regions import regions
from tasks.variants.kernels.scans import Scan, cumulation, kernel_for_scan, scan_of
from tasks.variants.kernels.template import with_kernel
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

_BUILDER = "def build(source)"
IN_C = "kernel"
"""Their group, for which a GPU has no use."""


@rewrite(IN_C)
def elementwise_in_c(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A chain of elementwise operations becomes one loop over memory."""

    def is_chain(root: Node) -> bool:
        operations = sum(isinstance(node, Op) and node.template != "{0}" for node in walk(root))
        return operations > 1 and not contains(root, Reduce) and not contains(root, Carried)

    return _with_one(program, rng, lambda model: _of_regions(model, is_chain))


@rewrite(IN_C)
def reduction_in_c(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A softmax, a normalisation, a loss, or sums and extrema of an elementwise value become passes over a row."""

    def is_reduction(root: Node) -> bool:
        return contains(root, Reduce) and not contains(root, Carried)

    return _with_one(program, rng, lambda model: _of_regions(model, is_reduction))


@rewrite(IN_C)
def series_in_c(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A loop that refines values elementwise, such as a power series, stays in registers until it is over."""
    return _with_one(program, rng, lambda model: _of_regions(model, lambda root: contains(root, Carried)))


@rewrite(IN_C)
def cumulation_in_c(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """torch.cumsum or cumprod, forwards or between two flips, becomes one pass.

    Assumes a dimension that the text names.
    """

    def kernels_of(model: Model) -> Iterator[Kernel]:
        found = cumulation(model)
        return _of_scan(scan_of(found) if found else None)

    return _with_one(program, rng, kernels_of)


@rewrite(IN_C)
def recurrence_in_c(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A loop over time steps that updates a state elementwise keeps the state in registers.

    Assumes that the steps are dimension 1 of one tensor, that the states start as zeros or ones and that all are
    collected; linear layers of a step's input are applied to all steps at once.
    """
    return _with_one(program, rng, lambda model: _of_scan(recurrence(model)))


def _with_one(
    program: cst.Module, rng: random.Random, kernels_of: Callable[[Model], Iterator[Kernel]]
) -> cst.Module | None:
    """The program with one of the kernels that its forward can have; there is at most one to a program."""
    code = text_of(program)
    model = None if _BUILDER in code else read_model(code)
    kernels = list(kernels_of(model)) if model else []
    if not kernels:
        return None
    kernel = rng.choice(kernels)
    return with_kernel(program, kernel.source, kernel.forward)


def _of_regions(model: Model, wanted: Callable[[Node], bool]) -> Iterator[Kernel]:
    for region in regions(model):
        if wanted(region.root):
            try:
                yield kernel_for(region)
            except Unsupported:
                continue


def _of_scan(scan: Scan | None) -> Iterator[Kernel]:
    if scan is not None:
        try:
            yield kernel_for_scan(scan)
        except Unsupported:
            return
