"""Rewrites that compute part of a forward in a Triton kernel made for the shapes that the program's text tells.

All of them assume float32 throughout and fall back to the steps that the kernel replaces wherever a tensor is not on
the current GPU, has another dtype or shape, or asks for a gradient, and under autocast. Inputs may lie in memory as
they like; outputs are new and contiguous, and parameters are read at every call.
"""

import ast
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from tasks.variants.kernels.model import Model, read_model
from tasks.variants.kernels.nodes import Leaf, Node, Op, Reduce, Unsupported, walk
from tasks.variants.kernels.regions import Region, regions
from tasks.variants.kernels.steps import natural
from tasks.variants.kernels.triton_kernel import TritonKernel, triton_kernel_for
from tasks.variants.kernels.values import Shape
from tasks.variants.names import defined_names
from tasks.variants.rewrites.forward import find_method, parse_statements, with_statements
from tasks.variants.rewriting import rewrite

IN_TRITON = "triton"
_IMPORTS = "import torch\nimport triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
_FITS = """
def fits(tensors, shapes):
    device = torch.device("cuda", torch.cuda.current_device()) if tensors[0].is_cuda else None
    return not torch.is_autocast_enabled("cuda") and all(
        tensor.device == device
        and tensor.dtype is torch.float32
        and tensor.shape == shape
        and not (tensor.requires_grad and torch.is_grad_enabled())
        for tensor, shape in zip(tensors, shapes)
    )
"""
_FUSED = """
def plain{number}({arguments}):
{plain}


{kernel}


def fused{number}({arguments}):
    tensors = [{tensors}]
    if not fits(tensors, [{shapes}]):
        return plain{number}({arguments})
    out = torch.empty({out_shape}, dtype=torch.float32, device=tensors[0].device)
    kernel{number}[({programs},)](*[tensor.contiguous() for tensor in tensors], {scalars}out, num_warps={warps})
    return out
"""


@rewrite(IN_TRITON)
def elementwise_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last chain of at least two elementwise operations becomes one kernel."""

    def is_chain(root: Node) -> bool:
        operations = sum(isinstance(node, Op) and node.template != "{0}" for node in walk(root))
        return operations > 1 and not _is_reduced(root)

    return _with_kernel(program, is_chain)


@rewrite(IN_TRITON)
def reduction_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last softmax, normalisation, sum or extremum over adjacent dimensions, and what is around it, is one kernel.

    Assumes that there are enough rows for a GPU to be busy, or few elements.
    """
    return _with_kernel(program, _is_reduced)


def _is_reduced(root: Node) -> bool:
    return any(isinstance(node, Reduce) for node in walk(root))


def _with_kernel(program: cst.Module, wanted: Callable[[Node], bool]) -> cst.Module | None:
    """The program with a kernel for its last region that is wanted; those that have one are not seen again."""
    model, forward = read_model(program.code), find_method(program, "forward")
    if model is None or forward is None:
        return None
    taken = {name for statement in program.body for name in defined_names(statement)}
    number = next(number for number in range(99) if f"fused{number}" not in taken)
    for region in regions(model):
        if wanted(region.root) and region.lines:
            try:
                kernel = triton_kernel_for(region.root, f"kernel{number}")
            except Unsupported:
                continue
            shapes = [_shape_of(leaf, model) for leaf in kernel.tensors]
            return _with_fused(program, forward, region, kernel, number, shapes)
    return None


def _with_fused(
    program: cst.Module,
    forward: cst.FunctionDef,
    region: Region,
    kernel: TritonKernel,
    number: int,
    shapes: Sequence[Shape],
) -> cst.Module:
    plain = [*region.lines, *([f"return {region.target}"] if region.target else [])]
    tensors = [leaf.text for leaf in kernel.tensors]
    # What is called to have a tensor, such as a layer, is called once, whichever way is taken then.
    called = dict(zip(filter(_is_call, tensors), _free_names(program), strict=False))
    for text, name in called.items():
        plain = [line.replace(text, name) for line in plain]
    tensors = [called.get(text, text) for text in tensors]
    everything = " ".join([*plain, *tensors, *kernel.scalars])
    arguments = ", ".join(name for name in ("self", *region.inputs, *called.values()) if _mentions(everything, name))
    call = f"fused{number}({arguments})"
    before = [*region.before, *(f"{name} = {text}" for text, name in called.items())]
    lines = [*before, f"{region.target} = {call}" if region.target else f"return {call}", *region.after]
    changed = with_statements(program, forward, parse_statements("\n".join(natural(lines))))
    text = _FUSED.format(
        number=number,
        arguments=arguments,
        plain="\n".join(f"    {line}" for line in plain),
        kernel="\n".join(kernel.lines),
        tensors=", ".join(tensors),
        shapes=", ".join(map(repr, shapes)),
        out_shape=repr(kernel.out_shape),
        programs=kernel.programs,
        scalars="".join(f"{each}, " for each in kernel.scalars),
        warps=kernel.warps,
    )
    helpers = "" if "def fits(" in program.code else _FITS
    imports = cst.parse_module("" if helpers == "" else _IMPORTS).body
    at = next(place for place, statement in enumerate(changed.body) if isinstance(statement, cst.ClassDef))
    added = cst.parse_module(helpers + text).body
    return changed.with_changes(body=[*imports, *changed.body[:at], *added, *changed.body[at:]])


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
    code = program.code
    wishes = itertools.chain(["h"], (f"h{number}" for number in itertools.count(1)))
    return (name for name in wishes if not _mentions(code, name))
