"""What programs with Triton kernels share: imports, and functions that say where kernels fit, pay, and launch them."""

import ast
import itertools
import re
from collections.abc import Sequence
from string import Template

import libcst as cst

from tasks.variants.capture import TIMED, named
from tasks.variants.names import names_besides, names_bound_in, renamed
from tasks.variants.rewrites.forward import find_class, find_method
from tasks.variants.rewriting import ENTRY
from tasks.variants.text import parsed, text_of

_IMPORTS = """
import functools
import time
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""
FITS = """
def fits(tensors, shapes):
    if not tensors[0].is_cuda or torch.compiler.is_compiling() or torch.is_autocast_enabled("cuda"):
        return False
    device, with_gradients = torch.cuda.current_device(), torch.is_grad_enabled()
    for tensor, shape in zip(tensors, shapes):
        if not tensor.is_cuda or tensor.get_device() != device:
            return False
        if tensor.dtype is not torch.float32 or tensor.shape != shape:
            return False
        if with_gradients and tensor.requires_grad:
            return False
    return True
"""
LAUNCHING = """
LAUNCHERS = {}


def launch(kernel, number, programs, tensors, *others, **options):
    # Triton looks at all arguments of every launch, which takes longer than a small kernel; here only addresses differ.
    key = number, tensors[0].get_device()
    launcher = LAUNCHERS.get(key)
    arguments = [tensor.contiguous() for tensor in tensors]
    for tensor in arguments:
        if tensor.data_ptr() % 16:
            kernel[(programs,)](*arguments, *others, **options)
            return
    if launcher is None:
        compiled = kernel[(programs,)](*arguments, *others, **options)
        if compiled is not None:  # Triton's interpreter compiles nothing
            LAUNCHERS[key] = compiled.run, compiled.function, compiled.packed_metadata
    else:
        # Without what Triton gathers for whoever listens to launches: a profiler such as Proton sees the first alone.
        run, function, metadata = launcher
        stream = triton.runtime.driver.active.get_current_stream(key[1])
        run(programs, 1, 1, stream, function, metadata, None, None, None, *arguments, *others)
"""
CHOOSING = (
    named(TIMED, "triton")
    + """

FASTEST, TRIED, POSTPONED = {}, set(), []
# What a GPU has no room for, or no instructions.
UNUSABLE = (
    triton.runtime.errors.OutOfResources,
    triton.runtime.errors.PTXASError,
    triton.CompilationError,
    torch.OutOfMemoryError,
)


def is_close(out, truth):
    # Compilers make mistakes: ptxas 12.8 got one tile of one convolution wrong.
    if not truth.is_floating_point():
        return torch.equal(out, truth)
    known = torch.isfinite(truth)
    truth = torch.where(known, truth, 0.0)
    size = truth.abs().max().clamp(min=1e-30)
    error = torch.where(known, out - truth, 0.0).div(size).norm()
    return bool(error <= 1e-3 * truth.div(size).norm())  # not a number where there should be one is no small error


def choose(key, plain, ways):
    # Which way is the fastest depends on the GPU, and on whether a graph launches it; None stands for the plain one.
    # Where that is postponed, all ways are compiled, once.
    if torch.cuda.is_current_stream_capturing() or (POSTPONED and key in TRIED):
        return
    right, truth = {None: plain}, plain()
    for name, way in ways.items():
        try:
            if is_close(way(), truth):
                right[name] = way
        except UNUSABLE:
            pass
    del truth
    TRIED.add(key)
    if POSTPONED:
        return
    FASTEST[key] = [list(right)[best_ms.index(min(best_ms))] for best_ms in triton_best_ms(list(right.values()))]


def fastest(key):
    return FASTEST[key][torch.cuda.is_current_stream_capturing()] if key in FASTEST else None
"""
)

# Layers stay of their own class, for whoever asks, and have another forward for the time of a call.
_WITH_LAYERS = Template("""

class ModelNew($plain):
    def forward(self, *inputs, **named):
        if torch.compiler.is_compiling():
            return super().forward(*inputs, **named)
        layers = [each for each in self.modules() if type(each) in $forwards and "forward" not in vars(each)]
        try:
            for each in layers:
                each.forward = functools.partial($forwards[type(each)], each)
            return super().forward(*inputs, **named)
        finally:
            for each in layers:
                vars(each).pop("forward", None)
""")
_LAYERED = "Layered"
_COMPILED = re.compile(r"torch\.compile\b")


def free_number(program: cst.Module, names: Sequence[str]) -> int:
    """The least number with which none of the names, such as "product{}", is a word of the program."""
    taken = set(re.findall(r"\w+", text_of(program)))
    return next(number for number in itertools.count() if not taken & {name.format(number) for name in names})


def with_functions(program: cst.Module, helpers: Sequence[str], text: str) -> cst.Module | None:
    """The program with functions more before its first class, and those of the helpers that it lacks.

    Returns:
        None where the program calls something else by the name of a helper.
    """
    taken = names_besides(program, _IMPORTS)
    present = _statements(text_of(program))
    missing = [helper for helper in helpers if not _statements(helper) <= present]
    own_names = {name for helper in (_IMPORTS, *missing) for name in names_bound_in(parsed(helper).body)}
    if taken & (own_names - {"torch"}):
        return None
    at = next(place for place, statement in enumerate(program.body) if isinstance(statement, cst.ClassDef))
    shared = [statement for helper in missing for statement in parsed(helper).body]
    added = [*shared, *cst.parse_module(text).body]
    imports = parsed(_IMPORTS).body if missing else ()
    return program.with_changes(body=[*imports, *program.body[:at], *added, *program.body[at:]])


def has_functions(program: cst.Module, helper: str) -> bool:
    """Whether with_functions has put these helpers into the program."""
    try:
        return _statements(helper) <= _statements(text_of(program))
    except SyntaxError:  # a mistake that was built in on purpose
        return False


def with_layers(program: cst.Module, plain: str, forwards: str, helpers: Sequence[str], text: str) -> cst.Module | None:
    """The program with layers that have other forwards while its own runs.

    Args:
        plain: what the model's own class is called from now on; "Layered" comes first in it.
        forwards: the name of the dictionary, in the text, of a layer's class to what is called in its place.

    Returns:
        None where the program has one of the text's names, calls something else by the name of a helper, compiles its
        forward, or wraps one already, but for other layers.
    """
    entry, forward = find_class(program), find_method(program, "forward")
    if entry is None or forward is None or _COMPILED.search(text_of(program)):  # which would compile anew at every call
        return None
    is_layered = any(program.code_for_node(base.value).startswith(_LAYERED) for base in entry.bases)
    if isinstance(forward.params.star_arg, cst.Param) and not is_layered:
        return None
    if {plain, *names_bound_in(parsed(text).body)} & names_bound_in(program.body):
        return None
    changed = with_functions(renamed(program, {ENTRY: plain}), helpers, text)
    own = parsed(_WITH_LAYERS.substitute(plain=plain, forwards=forwards)).body
    return changed and changed.with_changes(body=[*changed.body, *own])


def _statements(code: str) -> set[str]:
    """Texts of the outermost statements, without comments, which candidates are written without."""
    return {ast.unparse(statement) for statement in ast.parse(code).body}
