"""Rewrites that compute part of a forward in a Triton kernel made for the shapes that the program's text tells.

All of them assume float32 throughout and fall back to the steps that the kernel replaces wherever a tensor is not on
the current GPU, has another dtype or shape, or asks for a gradient, under autocast and in torch.compile, and where the
kernel was no faster than those steps when it was chosen, or computed something else. Inputs may lie in memory as they
like; outputs of kernels are new and contiguous, and parameters are read at every call.
"""

import ast
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import libcst as cst

from tasks.variants.kernels.model import Model, read_model
from tasks.variants.kernels.nodes import Leaf, Node, Op, Reduce, Unsupported, Window, contains, walk
from tasks.variants.kernels.positions import position
from tasks.variants.kernels.regions import regions
from tasks.variants.kernels.scans import cumulation
from tasks.variants.kernels.steps import Site, natural
from tasks.variants.kernels.triton_kernel import (
    TritonKernel,
    triton_kernel_for,
    triton_kernel_for_position,
    triton_kernel_for_scan,
)
from tasks.variants.kernels.values import Shape
from tasks.variants.rewrites.forward import find_method, parse_statements, with_statements
from tasks.variants.rewrites.triton_program import CHOOSING, FITS, LAUNCHING, free_number, with_functions
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

Found = tuple[TritonKernel, Site]
IN_TRITON = "triton"
_FUSED = """
def plain{number}({arguments}):
{plain}


{kernel}


def launched{number}(out_shape, tensors, *scalars):
    out = tensors[0].new_empty(out_shape{dtype})
    launch(kernel{number}, {number}, {programs}, tensors, *scalars, out, num_warps={warps})
    return out


def fused{number}({arguments}, out_shape={out_shape}):
    return computed(
        {number},
        [{tensors}],
        [{shapes}],
        lambda tensors{number}: launched{number}(out_shape, tensors{number}{scalars}),
        lambda: plain{number}({arguments}),
    )
"""
COMPUTED = """
def computed(number, tensors, shapes, kernel, plain):
    if not fits(tensors, shapes):
        return plain()
    key = "fused", number, tensors[0].get_device()
    if key not in FASTEST:
        # What is asked before each call of a kernel counts: steps that a graph's forward settles for are not asked.
        choose(key, plain, {"kernel": lambda: fits(tensors, shapes) and kernel(tensors)})
    return kernel(tensors) if fastest(key) else plain()
"""
_NAMES = ("plain{}", "kernel{}", "launched{}", "tensors{}", "fused{}")
_OWN_ARGUMENTS = {"out_shape", "computed"}


@rewrite(IN_TRITON)
def pooling_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last max or average pooling, and the elementwise operations before and after it, is one kernel.

    Assumes a layer whose settings the text names, without indices, rounding up or a count that leaves out padding.
    """
    return _with_kernel(program, partial(_of_regions, wanted=partial(_has_window, kinds=("max", "mean")), windows=True))


@rewrite(IN_TRITON)
def depthwise_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last convolution of each channel by itself, and what is elementwise before and after it, is one kernel.

    Assumes a layer whose settings the text names, with as many channels as groups before and behind it.
    """
    return _with_kernel(program, partial(_of_regions, wanted=partial(_has_window, kinds=("weighted",)), windows=True))


@rewrite(IN_TRITON)
def elementwise_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last chain of at least two elementwise operations becomes one kernel."""

    def is_chain(root: Node) -> bool:
        operations = sum(isinstance(node, Op) and node.template != "{0}" for node in walk(root))
        return operations > 1 and not contains(root, Reduce)

    return _with_kernel(program, partial(_of_regions, wanted=is_chain))


@rewrite(IN_TRITON)
def reduction_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last softmax, normalisation, sum or extremum over adjacent dimensions, and what is around it, is one kernel.

    Assumes that there are enough rows for a GPU to be busy, or few elements.
    """
    return _with_kernel(program, partial(_of_regions, wanted=partial(contains, kind=Reduce)))


@rewrite(IN_TRITON)
def cumulation_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last torch.cumsum or cumprod, forwards or between two flips, becomes one pass.

    Assumes a dimension that the text names, and enough rows for a GPU to be busy, or few elements.
    """
    return _with_kernel(program, _of_cumulation)


@rewrite(IN_TRITON)
def position_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last torch.argmax or argmin becomes one kernel; of equal values the first counts, as in PyTorch.

    Assumes a dimension that the text names, and enough rows for a GPU to be busy, or few elements.
    """
    return _with_kernel(program, _of_position)


def _of_regions(model: Model, name: str, *, wanted: Callable[[Node], bool], windows: bool = False) -> Found | None:
    for region in regions(model, windows=windows):
        if wanted(region.root) and region.site.lines:
            with suppress(Unsupported):
                return triton_kernel_for(region.root, name), region.site
    return None


def _of_cumulation(model: Model, name: str) -> Found | None:
    scan = cumulation(model)
    with suppress(Unsupported):
        return (triton_kernel_for_scan(scan, name), scan.site) if scan else None
    return None


def _has_window(root: Node, *, kinds: Sequence[str]) -> bool:
    return any(isinstance(node, Window) and node.kind in kinds for node in walk(root))


def _of_position(model: Model, name: str) -> Found | None:
    found = position(model)
    with suppress(Unsupported):
        return (triton_kernel_for_position(found, name), found.site) if found else None
    return None


def _with_kernel(program: cst.Module, kernel_in: Callable[[Model, str], Found | None]) -> cst.Module | None:
    """The program with one more kernel; what has one already is not seen again."""
    model, forward = read_model(text_of(program)), find_method(program, "forward")
    if model is None or forward is None:
        return None
    number = free_number(program, _NAMES)
    found = kernel_in(model, f"kernel{number}")
    if found is None:
        return None
    kernel, site = found
    if _OWN_ARGUMENTS & set(site.inputs):
        return None
    shapes = [_shape_of(leaf, model) for leaf in kernel.tensors]
    if any(0 in shape for shape in (kernel.out_shape, *shapes)):
        return None
    return _with_fused(program, forward, site, kernel, number, shapes)


def _with_fused(
    program: cst.Module,
    forward: cst.FunctionDef,
    site: Site,
    kernel: TritonKernel,
    number: int,
    shapes: Sequence[Shape],
) -> cst.Module | None:
    plain = [*site.lines, *([f"return {site.target}"] if site.target else [])]
    tensors = [leaf.text for leaf in kernel.tensors]
    # What is called to have a tensor, such as a layer, is called once, whichever way is taken then.
    called = dict(zip(filter(_is_call, tensors), _free_names(program), strict=False))
    for text, name in called.items():
        plain = [line.replace(text, name) for line in plain]
    tensors = [called.get(text, text) for text in tensors]
    everything = " ".join([*plain, *tensors, *kernel.scalars])
    arguments = ", ".join(name for name in ("self", *site.inputs, *called.values()) if _mentions(everything, name))
    call = f"fused{number}({arguments})"
    before = [*site.before, *(f"{name} = {text}" for text, name in called.items())]
    lines = [*before, f"{site.target} = {call}" if site.target else f"return {call}", *site.after]
    changed = with_statements(program, forward, parse_statements("\n".join(natural(lines))))
    text = _FUSED.format(
        number=number,
        arguments=arguments,
        plain="\n".join(f"    {line}" for line in plain),
        kernel="\n".join(kernel.lines),
        tensors=", ".join(tensors),
        shapes=", ".join(map(repr, shapes)),
        out_shape=repr(kernel.out_shape),
        dtype="" if kernel.out_dtype == "torch.float32" else f", dtype={kernel.out_dtype}",
        programs=kernel.programs,
        scalars="".join(f", {each}" for each in kernel.scalars),
        warps=kernel.warps,
    )
    return with_functions(changed, (FITS, LAUNCHING, CHOOSING, COMPUTED), text)


def _shape_of(leaf: Leaf, model: Model) -> Shape:
    """The tensor's own shape: a kernel may see a weight of a channel each with dimensions behind the channels."""
    own = model.shapes.shape(ast.parse(leaf.text, mode="eval").body)
    return leaf.shape if own is None else own


def _is_call(text: str) -> bool:
    return "(" in text


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


def _free_names(program: cst.Module) -> Iterator[str]:
    """Names for tensors that a program does not have."""
    code = text_of(program)
    wishes = itertools.chain(["h"], (f"h{number}" for number in itertools.count(1)))
    return (name for name in wishes if not _mentions(code, name))
