"""Rewrites that let a GPU's libraries and compiler choose better: algorithms, layouts, tuned kernels, replays."""

import random
import re

import libcst as cst

from tasks.variants.kernels.model import read_model
from tasks.variants.kernels.values import Tensor
from tasks.variants.names import names_bound_in
from tasks.variants.rewrites.forward import find_method, parse_statements, statements_of, with_statements
from tasks.variants.rewrites.graph import compiled
from tasks.variants.rewriting import rewrite
from tasks.variants.text import parsed, text_of

_CONVOLUTION = re.compile(r"\b(nn|F|functional)\.(Conv\d|conv\d|ConvTranspose\d|conv_transpose\d)")
_FORMATS = {4: "torch.channels_last", 5: "torch.channels_last_3d"}
# What torch.backends.cudnn.benchmark comes to, which takes half a microsecond longer than all of this.
_BENCHMARKED = """
def benchmarked(forward):
    @functools.wraps(forward)
    def chosen(*inputs, **named):
        before = torch._C._get_cudnn_benchmark()
        torch._C._set_cudnn_benchmark(True)
        try:
            return forward(*inputs, **named)
        finally:
            torch._C._set_cudnn_benchmark(before)

    return chosen
"""
_COPIED = """
def copied(forward):
    @functools.wraps(forward)
    def copying(*inputs, **named):
        torch.compiler.cudagraph_mark_step_begin()
        outputs = forward(*inputs, **named)
        return torch.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, outputs)

    return copying
"""


@rewrite("memory")
def benchmark_convolutions(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """cuDNN times its algorithms at the first call of each shape and keeps the fastest. Assumes few shapes."""
    if not _CONVOLUTION.search(text_of(program)):
        return None
    return _decorated(program, "benchmarked", _BENCHMARKED)


@rewrite("memory")
def keep_channels_last(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Weights of convolutions and pictures lie with their channels last, from the constructor on.

    Assumes a constructor that ends without returning, and inputs of which some have the rank of a picture, or of a
    volume for convolutions of those. Values are the same; strides of weights and outputs are others.
    """
    init, forward = find_method(program, "__init__"), find_method(program, "forward")
    model = read_model(text_of(program))
    dims = set(re.findall(r"\bnn\.Conv(?:Transpose)?([23])d", text_of(program)))
    if init is None or forward is None or model is None or len(dims) != 1 or "channels_last" in text_of(program):
        return None
    rank = int(dims.pop()) + 2
    inputs = [name for name in model.arguments if _rank(model.shapes.values.get(name)) == rank]
    if not inputs or any(isinstance(each, cst.Return) for each in _simple(init)):
        return None
    laid_out = "".join(f"{name} = {name}.contiguous(memory_format={_FORMATS[rank]})\n" for name in inputs)
    changed = with_statements(program, forward, [*parse_statements(laid_out), *statements_of(forward)])
    init = find_method(changed, "__init__")
    assert init is not None
    # Not self.to, which gives parameters of ranks 4 and 5 the format that only one of them can have.
    kinds = f"(nn.Conv{rank - 2}d, nn.ConvTranspose{rank - 2}d)"
    last = parse_statements(
        f"for layer in self.modules():\n    if isinstance(layer, {kinds}):\n"
        f"        layer.to(memory_format={_FORMATS[rank]})"
    )
    return with_statements(changed, init, [*statements_of(init), *last])


@rewrite("graph")
def compile_forward_tuned(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The compiler times several kernels for each product and reduction. Assumes that a minute of that is no matter."""
    return compiled(program, 'torch.compile(mode="max-autotune-no-cudagraphs")')


@rewrite("graph")
def compile_forward_replayed(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The compiler replays its kernels as CUDA graphs; outputs are copied, since the next replay writes over them.

    Assumes that forward does the same for all inputs of one shape.
    """
    changed = compiled(program, 'torch.compile(mode="reduce-overhead")')
    return None if changed is None else _decorated(changed, "copied", _COPIED)


def _decorated(program: cst.Module, name: str, helper: str) -> cst.Module | None:
    """The program with a decorator more around forward, defined before ModelNew."""
    forward = find_method(program, "forward")
    taken = names_bound_in(program.body)
    if forward is None or name in taken:
        return None
    decorators = [cst.Decorator(cst.Name(name)), *forward.decorators]
    changed = program.deep_replace(forward, forward.with_changes(decorators=decorators))
    assert isinstance(changed, cst.Module)
    at = next(place for place, statement in enumerate(changed.body) if isinstance(statement, cst.ClassDef))
    imports = parsed("import functools\nimport torch\n").body
    return changed.with_changes(body=[*imports, *changed.body[:at], *parsed(helper).body, *changed.body[at:]])


def _rank(value: object) -> int | None:
    return len(value.shape) if isinstance(value, Tensor) else None


def _simple(function: cst.FunctionDef) -> list[cst.BaseSmallStatement]:
    lines = [each for each in statements_of(function) if isinstance(each, cst.SimpleStatementLine)]
    return [small for line in lines for small in line.body]
