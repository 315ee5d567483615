"""In which precision a program computes. Runs inside a worker.

"fp32" is single precision with TF32 off. Under "tf32" it is on; under "fp16" and "bf16" both programs are called under
autocast. Flags are set before the program's text is read: a candidate that sets others is measured and compared.
"""

import contextlib
import copy
import types
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_WIDE: dict[Any, Any] = {
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
    torch.Tensor.float: torch.Tensor.double,
}
_DRAWN = (torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.normal)
_DRAWN_IN_PLACE = (
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
    *(found for name, found in vars(torch.nn.init).items() if name.endswith("_") and not name.startswith("_")),
)
_CONVOLUTIONS = (
    torch.conv1d,
    torch.conv2d,
    torch.conv3d,
    torch.conv_transpose1d,
    torch.conv_transpose2d,
    torch.conv_transpose3d,
)
LARGE_CONVOLUTION = 1 << 30
"""Multiplications from which on a convolution in double precision goes past cuDNN, which is several times slower."""
AUTOCAST_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
_TF32_DROPPED_BITS = 13


def set_flags(precision: str) -> None:
    """Put the settings that decide how single precision is multiplied to what the problem says."""
    with_tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if with_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = with_tf32


def autocast(precision: str) -> AbstractContextManager[Any]:
    """The context in which both programs are called."""
    if precision not in AUTOCAST_DTYPES:
        return contextlib.nullcontext()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.autocast(device, dtype=AUTOCAST_DTYPES[precision])


def in_double(
    model: Any, arguments: list[torch.Tensor], *, nudge: float, seed: int, rounded: bool
) -> tuple[Any, list[torch.Tensor]]:
    """A copy of the model and its arguments in double precision.

    Args:
        arguments: tensors that stay what they are where they are not floating point.
        nudge: every value is multiplied by a random factor that differs from 1 by about so much.
        rounded: values keep 11 bits, as the operands of TF32 do.
    """
    generators: dict[torch.device, torch.Generator] = {}  # drawn where they are used: a host takes a second for 2**26

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if rounded and tensor.is_floating_point():
            tensor = _rounded(tensor)
        wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        if not nudge:
            return wide
        generator = generators.setdefault(wide.device, torch.Generator(wide.device).manual_seed(seed))
        noise = torch.randn(wide.shape, generator=generator, dtype=torch.float64, device=wide.device)
        return wide * (1 + nudge * noise)

    model = _copied(model).double()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(moved(tensor))
        wide = [moved(item) if item.is_floating_point() or item.is_complex() else item for item in arguments]
    return model, [new.requires_grad_(old.requires_grad) for new, old in zip(wide, arguments, strict=True)]


def _copied(model: Any) -> Any:
    """A deep copy, in which functions among the attributes have copies too of what they close over or take by default.

    Those are parts of the model, mostly; copy.deepcopy takes functions for indivisible.
    """
    memo: dict[int, Any] = {}
    copied = copy.deepcopy(model, memo)
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if id(module) in memo and _holds_functions(value):
                vars(memo[id(module)])[name] = _copied_value(value, memo)
    return copied


def _holds_functions(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_functions, value))
    if type(value) in (dict, OrderedDict):
        return any(map(_holds_functions, value.values()))
    return isinstance(value, types.FunctionType)


def _copied_value(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, types.FunctionType):
        return _copied_function(value, memo)
    if _holds_functions(value):
        if type(value) in (list, tuple):
            return type(value)(_copied_value(each, memo) for each in value)
        return type(value)((key, _copied_value(each, memo)) for key, each in value.items())
    trial = dict(memo)  # a copy that fails half way leaves half of it behind
    try:
        copied = copy.deepcopy(value, trial)
    except Exception:  # noqa: BLE001 - there is only one of it, such as a lock
        return value
    alive = trial.pop(id(trial), [])  # copy.deepcopy's own list of what must not end, or its number would be another's
    memo |= trial
    memo.setdefault(id(memo), []).extend(alive)
    return copied


def _copied_function(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    cells = function.__closure__ or ()
    if id(function) in memo or not (cells or function.__defaults__ or function.__kwdefaults__):
        return memo.get(id(function), function)
    unknown = [cell for cell in cells if id(cell) not in memo]
    memo |= {id(cell): types.CellType() for cell in unknown}
    closure = tuple(memo[id(cell)] for cell in cells)
    copied = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, closure)
    memo[id(function)] = copied
    for cell in unknown:
        with contextlib.suppress(ValueError):  # where it is empty
            memo[id(cell)].cell_contents = _copied_value(cell.cell_contents, memo)
    copied.__defaults__ = _copied_value(function.__defaults__, memo)
    copied.__kwdefaults__ = _copied_value(function.__kwdefaults__, memo)
    vars(copied).update(vars(function))
    return copied


@contextlib.contextmanager
def asked_in_double() -> Iterator[None]:
    """What a program asks for in single precision by name or by default, it gets in double precision."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _InDouble():
            yield
    finally:
        torch.set_default_dtype(usual)


class _InDouble(TorchFunctionMode):
    """Changes the dtypes among the arguments of every function of torch.

    What is random is drawn in single precision and widened: in double precision a seed gives other numbers.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if function in _DRAWN:
            torch.set_default_dtype(torch.float32)
            try:
                return widened(function(*map(_narrow, args), **{name: _narrow(value) for name, value in named.items()}))
            finally:
                torch.set_default_dtype(torch.float64)
        if function in _DRAWN_IN_PLACE and args and args[0].dtype == torch.float64:
            return args[0].copy_(function(torch.empty_like(args[0], dtype=torch.float32), *args[1:], **named))
        if function is torch.Tensor.view and any(isinstance(each, torch.dtype) for each in (*args, *named.values())):
            raise TypeError("bits have no meaning in another precision")
        function = _WIDE.get(function, function)
        args, named = tuple(map(_wide, args)), {name: _wide(value) for name, value in named.items()}
        if function in _CONVOLUTIONS and _is_large(args, named):
            return _convolved(function, args, named)
        return function(*args, **named)


def _convolved(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A convolution as products of unfolded matrices, each sample's at a time, or by cuDNN where those find no room."""
    was_enabled = torch.backends.cudnn.enabled  # only this: torch.backends.cudnn.flags sets what a program may have set
    torch.backends.cudnn.enabled = False
    try:
        return function(*args, **named)
    except torch.cuda.OutOfMemoryError:
        pass
    finally:
        torch.backends.cudnn.enabled = was_enabled
    return function(*args, **named)


def _is_large(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a convolution multiplies often; with strides counted as if it had none. What PyTorch refuses is not."""
    source, weight = (*args[:2], *(named[name] for name in ("input", "x", "weight") if name in named), None, None)[:2]
    if torch.compiler.is_compiling() or not (isinstance(source, torch.Tensor) and isinstance(weight, torch.Tensor)):
        return False
    if source.ndim < weight.ndim - 1 or weight.ndim < 2:
        return False
    num_channels = source.shape[1 - weight.ndim]
    return source.numel() // max(1, num_channels) * weight.numel() >= LARGE_CONVOLUTION


def _narrow(value: Any) -> Any:
    return value.to(torch.float32) if isinstance(value, torch.Tensor) and value.dtype == torch.float64 else value


def _wide(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision, if it is of floats or complex."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.detach().to(torch.float32).contiguous().view(torch.int32)
    half = 1 << (_TF32_DROPPED_BITS - 1)
    return (((bits + half) >> _TF32_DROPPED_BITS) << _TF32_DROPPED_BITS).view(torch.float32)
