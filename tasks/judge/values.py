"""Arguments as JSON and raw bytes, so that they reach a candidate without a pickle.

Numbers, strings, None, lists, tuples, mappings and names of torch travel as JSON; tensors, however deep within them,
travel as bytes in the arena and are named here by their place. Floats that JSON has no word for travel as text. Classes
and functions travel as names, and objects, such as a configuration, as the name of their class and what they hold: each
program has the class itself.
"""

import copyreg
import enum
import functools
import importlib
import json
import math
import types
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tasks.judge.wire import FRAME_BYTES, ITEM_BYTES

MAX_JSON_CHARS = FRAME_BYTES // 2


class ValueRefusedError(Exception):
    """A value of a kind that cannot be handed to a candidate."""


def encode_all(value: object, *, carries_numbers: bool = False, home: str = "") -> tuple[Any, list[Any]]:
    """JSON data that decode turns back into an equal value, and the tensors that it names by their place.

    Args:
        carries_numbers: let numbers travel as tensors too, so that they can change without the data.
        home: the module of the program, whose classes are looked for in the module of the one that decodes.

    Raises:
        ValueRefusedError: naming the type that cannot be carried.
    """
    tensors: list[Any] = []
    try:
        data = _encode(value, tensors, carries_numbers, home)
    except RecursionError:
        raise ValueRefusedError("an argument contains itself, and cannot be handed to a candidate") from None
    length = len(json.dumps(data))
    if length > MAX_JSON_CHARS:
        raise ValueRefusedError(
            f"the arguments take {length} characters as text, {MAX_JSON_CHARS} at most; make long lists tensors"
        )
    return data, tensors


def decode(data: Any, tensors: Sequence[Any], *, home: str = "") -> Any:
    """The value that encode_all wrote, with these tensors in the place of those that it named.

    Args:
        home: the module of this program.

    Raises:
        AttributeError: if that has no class of which an object was encoded.
    """
    if isinstance(data, list):
        return [decode(item, tensors, home=home) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, body),) = data.items()
    if kind == "tensor":
        return tensors[body]
    if kind == "number":
        return tensors[body].item()
    if kind == "namedtuple":
        name, fields, items = body
        return _named(name, *fields)(*(decode(item, tensors, home=home) for item in items))
    if kind == "tuple":
        return tuple(decode(item, tensors, home=home) for item in body)
    if kind == "dict":
        return {decode(key, tensors, home=home): decode(item, tensors, home=home) for key, item in body}
    if kind == "partial":
        function, positional, named = decode(body, tensors, home=home)
        return functools.partial(function, *positional, **named)
    if kind in ("named", "member", "object"):
        found = _named_in(body[0] or home, body[1])
        if kind == "named":
            return found
        held = decode(body[2], tensors, home=home)
        return found(held) if kind == "member" else _object(found, held)
    return _DECODERS[kind](body)


@functools.cache  # it is asked for in every call
def _named(name: str, *fields: str) -> type:
    return namedtuple(name, fields, rename=True)


def is_list_of_tensors(arguments: Any, num_tensors: int) -> bool:
    """Whether encoded arguments are positional, and each of them a tensor of its own."""
    tensors = [{"tensor": place} for place in range(num_tensors)]
    return any(arguments == {"tuple": [positional, {"dict": []}]} for positional in (tensors, {"tuple": tensors}))


def _encode(value: object, tensors: list[Any], carries_numbers: bool, home: str) -> Any:
    import torch

    if isinstance(value, enum.Enum):  # before what it may be besides, a number or a string
        return {"member": [*_place(type(value), home), _encode(value.value, tensors, False, home)]}
    if isinstance(value, np.generic) and not isinstance(plain := value.item(), np.generic):
        value = plain
    if carries_numbers and isinstance(value, bool | float | int):
        dtype = torch.bool if isinstance(value, bool) else torch.float64 if isinstance(value, float) else torch.int64
        return {"number": _number(torch.tensor(value, dtype=dtype), tensors)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": repr(value)}
    if isinstance(value, list):
        return [_encode(item, tensors, carries_numbers, home) for item in value]
    if isinstance(value, tuple):
        items = [_encode(item, tensors, carries_numbers, home) for item in value]
        if fields := getattr(value, "_fields", None):
            return {"namedtuple": [type(value).__name__, list(fields), items]}
        return {"tuple": items}
    if isinstance(value, Mapping):
        return {
            "dict": [
                [_encode(key, tensors, False, home), _encode(item, tensors, carries_numbers, home)]
                for key, item in value.items()
            ]
        }
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.Tensor):
        return {"tensor": _number(value, tensors)}
    if name := _name_in_torch(value):
        return {"torch": name}
    if isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
        return {"partial": _encode(parts, tensors, carries_numbers, home)}
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return {"named": _place(value, home)}
    return {"object": [*_place(type(value), home), _encode(_held(value), tensors, carries_numbers, home)]}


def _place(value: Any, home: str) -> list[str]:
    """Where each program finds a class or a function: its module, nothing for the program's own, and its name there."""
    module, name = value.__module__ or "", value.__qualname__
    try:
        is_there = _named_in(module, name) is value
    except (AttributeError, ImportError, ValueError):
        is_there = False
    if not is_there:
        raise ValueRefusedError(
            f"{name} cannot be handed to a candidate, which finds it under no name: write it at the top of a file"
        )
    return ["" if module == home else module, name]


def _named_in(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except AttributeError:
        raise AttributeError(f"the program defines no {name}, which its constructor or forward is given") from None


def _held(value: object) -> Any:
    """What an object holds, if that is all that there is to it."""
    import torch

    kind = type(value)
    try:
        reduced: Any = value.__reduce_ex__(2)
        made_by, arguments, held, *items = reduced
    except Exception:  # noqa: BLE001 - it holds what only its own machinery knows, or nothing but a name
        made_by, arguments, held, items = None, (), None, []
    is_plain = made_by is copyreg.__newobj__ and arguments == (kind,) and not any(items)  # type: ignore[attr-defined]
    if not (is_plain or kind is types.SimpleNamespace) or isinstance(value, torch.nn.Module) or kind is object:
        raise ValueRefusedError(
            f"a value of type {kind.__name__} cannot be handed to a candidate: give plain data, tensors, or objects "
            f"that hold such data in attributes"
        )
    return held


def _object(kind: Any, held: Any) -> Any:
    made = kind.__new__(kind)
    if hasattr(kind, "__setstate__"):
        made.__setstate__(held)
        return made
    attributes, slots = held if isinstance(held, tuple) else (held, None)
    if attributes:
        vars(made).update(attributes)
    for name, each in (slots or {}).items():
        object.__setattr__(made, name, each)  # past a class that is frozen
    return made


def _number(tensor: Any, tensors: list[Any]) -> int:
    """The tensor's place in the list; one that is handed over twice stays one object."""
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or dtype not in ITEM_BYTES:
        raise ValueRefusedError(f"a {tensor.layout} tensor of dtype {dtype} cannot be handed to a candidate")
    for number, known in enumerate(tensors):
        if known is tensor:
            return number
    tensors.append(tensor)
    return len(tensors) - 1


def _name_in_torch(value: object) -> list[str] | None:
    """Where torch keeps a dtype, a class such as nn.ReLU or a function such as F.gelu; None for anything else."""
    import torch
    import torch.nn.functional

    names = [str(value).removeprefix("torch."), str(getattr(value, "__name__", ""))]
    for module in (torch, torch.nn, torch.nn.functional):
        for name in names:
            if name.isidentifier() and getattr(module, name, None) is value:
                return [module.__name__, name]
    return None


def _torch_name(body: list[str]) -> Any:
    return getattr(importlib.import_module(body[0]), body[1])


def _device(body: str) -> Any:
    import torch

    return torch.device(body)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": complex,
    "slice": lambda body: slice(*body),
    "device": _device,
    "torch": _torch_name,
}
