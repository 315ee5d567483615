"""A Triton that runs the kernels of the rewrites on the processor, one program after another, with PyTorch.

It knows what those kernels use and no more, and says nothing about speed. Every load and store is checked to lie within
its tensor.
"""

import math
import random
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

MODULES = ("triton", "triton.language", "triton.language.extra", "triton.language.extra.libdevice")


class Pointer:
    """Elements of a tensor's memory, by their places in it."""

    def __init__(self, memory: Tensor, places: Tensor) -> None:
        self.memory = memory
        self.places = places

    def __add__(self, places: Tensor | int) -> "Pointer":
        return Pointer(self.memory, self.places + places)

    def within(self, mask: Tensor | bool | None) -> tuple[Tensor, Tensor]:
        mask = mask if mask is None else torch.as_tensor(mask)
        places = self.places if mask is None else torch.broadcast_tensors(self.places, mask)[0]
        counts = torch.ones_like(places, dtype=torch.bool) if mask is None else mask.expand(places.shape)
        outside = counts & ((places < 0) | (places >= self.memory.numel()))
        assert not outside.any(), "a place outside of the tensor"
        return places, counts


class Kernel:
    """A kernel that is launched with `kernel[grid](...)`, and then with `run` of what that returns."""

    packed_metadata = ()

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self.programs_run = 0

    def run(self, programs: int, _y: int, _z: int, stream: int, function: Any, *others: Any) -> None:
        assert (stream, function) == (STREAM_OF_THE_PROCESSOR, self.function)
        assert others[:4] == (self.packed_metadata, None, None, None), "metadata, and nobody who listens"
        self._launch(programs, others[4:])

    def __call__(self, *arguments: Any) -> Any:
        """Within another kernel."""
        return self.function(*arguments)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., "Kernel"]:
        def launch(*arguments: Any, num_warps: int, num_stages: int = 3) -> Kernel:
            self._launch(*grid, arguments)
            return self

        return launch

    def _launch(self, programs: int, arguments: Sequence[Any]) -> None:
        for number in random.Random(0).sample(range(programs), programs):  # a GPU runs them in any order
            PROGRAM[0] = number
            self.function(
                *[Pointer(each.view(-1), torch.tensor(0)) if isinstance(each, Tensor) else each for each in arguments]
            )
            self.programs_run += 1


PROGRAM = [0]
STREAM_OF_THE_PROCESSOR = 77
_TYPES = {name: getattr(torch, name) for name in ("float16", "float32", "int32", "int64")}


def _jit(function: Callable[..., None] | None = None, **_: object) -> Any:
    return Kernel if function is None else Kernel(function)


def _load(pointer: Pointer, mask: Tensor | bool | None = None, other: float = 12345.0) -> Tensor:
    """What is masked is `other`, which Triton leaves undefined unless it is told."""
    places, counts = pointer.within(mask)
    return torch.where(counts, pointer.memory[torch.where(counts, places, 0)], other)


def _store(pointer: Pointer, value: Tensor, mask: Tensor | None = None) -> None:
    places, counts = pointer.within(mask)
    pointer.memory[places[counts]] = value.expand(places.shape)[counts]


def _where(condition: Tensor | bool, kept: Tensor | float, other: Tensor | float) -> Tensor:
    return torch.where(torch.as_tensor(condition), torch.as_tensor(kept), torch.as_tensor(other))


def _dot(left: Tensor, right: Tensor, acc: Tensor | None = None, *, input_precision: str = "") -> Tensor:
    """What tensor cores make of it is left to a GPU."""
    assert input_precision == "tf32x3" * (left.dtype is torch.float32)
    product = left.float() @ right.float()
    return product if acc is None else acc + product


def _cast(value: Tensor, dtype: torch.dtype, *, bitcast: bool = False) -> Tensor:
    return value.view(dtype) if bitcast else value.to(dtype)


def _extremum(name: str) -> Callable[..., Tensor]:
    """As on a GPU, what is not a number loses against any that is."""
    return lambda one, other: getattr(torch, name)(torch.as_tensor(one), torch.as_tensor(other))


def _extreme(name: str, least: float) -> Callable[..., Tensor]:
    def extreme(value: Tensor, axis: int) -> Tensor:
        lost = value.isnan()
        found = getattr(value.masked_fill(lost, least) if value.is_floating_point() else value, name)(axis)
        return torch.where(lost.all(axis), float("nan"), found) if value.is_floating_point() else found

    return extreme


def _scan(name: str) -> Callable[..., Tensor]:
    def scan(value: Tensor, *, axis: int, reverse: bool) -> Tensor:
        flipped = value.flip(axis) if reverse else value
        found = getattr(torch, name)(flipped, axis)
        return found.flip(axis) if reverse else found

    return scan


def _language() -> dict[str, Any]:
    return {
        **_TYPES,
        "program_id": lambda axis: torch.tensor(PROGRAM[0]),
        "arange": torch.arange,
        "static_range": range,
        "range": lambda *places, loop_unroll_factor: range(*places),
        "reshape": torch.reshape,
        "split": lambda value: value.unbind(-1),
        "full": lambda shape, value, dtype: torch.full(shape, value, dtype=dtype),
        "load": _load,
        "store": _store,
        "where": _where,
        "maximum": _extremum("fmax"),
        "minimum": _extremum("fmin"),
        "dot": _dot,
        "cast": _cast,
        "trans": lambda value: value.mT,
        "cdiv": lambda size, step: -(-size // step),
        "constexpr": int,
        "abs": torch.abs,
        "sqrt_rn": lambda x: torch.sqrt(torch.as_tensor(x)),
        "sum": lambda value, axis: value.sum(axis),
        "max": _extreme("amax", -math.inf),
        "min": _extreme("amin", math.inf),
        "cumsum": _scan("cumsum"),
        "cumprod": _scan("cumprod"),
    }


@contextmanager
def triton_on_the_processor() -> Iterator[None]:
    """`import triton` gives the stand-in meanwhile."""
    before = {name: sys.modules.get(name) for name in MODULES}
    triton, language, extra, libdevice = (types.ModuleType(name) for name in MODULES)
    functions = ("exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "erf", "pow")
    vars(libdevice).update({name: getattr(torch, name) for name in functions})
    vars(language).update(_language(), extra=extra)
    errors = types.SimpleNamespace(OutOfResources=MemoryError, PTXASError=SyntaxError)
    vars(triton).update(jit=_jit, language=language, CompilationError=SyntaxError)
    active = types.SimpleNamespace(get_current_stream={-1: STREAM_OF_THE_PROCESSOR}.__getitem__)
    driver = types.SimpleNamespace(active=active)
    vars(triton).update(runtime=types.SimpleNamespace(errors=errors, driver=driver))
    vars(extra).update(libdevice=libdevice)
    sys.modules.update(zip(MODULES, (triton, language, extra, libdevice), strict=True))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def the_last_is_the_fastest(calls: Sequence[Callable[[], Tensor]]) -> tuple[list[float], list[float]]:
    """Times of alternatives in milliseconds, with and without launching, of which no processor has any."""
    return always([-float(place) for place in range(len(calls))])


def always(milliseconds: list[float]) -> tuple[list[float], list[float]]:
    """The same times whether a graph launches or a program."""
    return milliseconds, milliseconds


def use_kernels(names: dict[str, Any]) -> dict[str, Any]:
    """Let a program, whose names are given, take its kernels for tensors of the right shapes and for the fastest."""
    names["fits"] = lambda tensors, shapes: [tuple(tensor.shape) for tensor in tensors] == list(shapes)
    names["triton_best_ms"] = the_last_is_the_fastest
    names["PROCESSORS"] = 0  # or what is small enough for this is all split among many programs
    return names


def split_in_three(tile: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tile, with three programs that sum up a part each."""
    return *tile[:3], 3, *tile[4:]
