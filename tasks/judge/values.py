"""Arguments as JSON and raw bytes, so that they reach a candidate without a pickle.

Numbers, strings, None, lists, tuples, mappings and names of torch travel as JSON; tensors, however deep within them,
travel as bytes in the arena and are named here by their place. Floats that JSON has no word for travel as text.
"""

import functools
import importlib
import json
import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tasks.judge.wire import FRAME_BYTES, ITEM_BYTES

MAX_JSON_CHARS = FRAME_BYTES // 2


class ValueRefusedError(Exception):
    """A value of a kind that cannot be handed to a candidate."""


def encode_all(value: object, *, carries_numbers: bool = False) -> tuple[Any, list[Any]]:
    """JSON data that decode turns back into an equal value, and the tensors that it names by their place.

    Args:
        carries_numbers: let numbers travel as tensors too, so that they can change without the data.

    Raises:
        ValueRefusedError: naming the type that cannot be carried.
    """
    tensors: list[Any] = []
    data = _encode(value, tensors, carries_numbers)
    length = len(json.dumps(data))
    if length > MAX_JSON_CHARS:
        raise ValueRefusedError(
            f"the arguments take {length} characters as text, {MAX_JSON_CHARS} at most; make long lists tensors"
        )
    return data, tensors


def decode(data: Any, tensors: Sequence[Any]) -> Any:
    """The value that encode_all wrote, with these tensors in the place of those that it named."""
    if isinstance(data, list):
        return [decode(item, tensors) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, body),) = data.items()
    if kind == "tensor":
        return tensors[body]
    if kind == "number":
        return tensors[body].item()
    if kind == "namedtuple":
        name, fields, items = body
        return _named(name, *fields)(*(decode(item, tensors) for item in items))
    if kind == "tuple":
        return tuple(decode(item, tensors) for item in body)
    if kind == "dict":
        return {decode(key, tensors): decode(item, tensors) for key, item in body}
    return _DECODERS[kind](body)


@functools.cache  # it is asked for in every call
def _named(name: str, *fields: str) -> type:
    return namedtuple(name, fields, rename=True)


def is_list_of_tensors(arguments: Any, num_tensors: int) -> bool:
    """Whether encoded arguments are positional, and each of them a tensor of its own."""
    tensors = [{"tensor": place} for place in range(num_tensors)]
    return any(arguments == {"tuple": [positional, {"dict": []}]} for positional in (tensors, {"tuple": tensors}))


def _encode(value: object, tensors: list[Any], carries_numbers: bool) -> Any:
    import torch

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
        return [_encode(item, tensors, carries_numbers) for item in value]
    if isinstance(value, tuple):
        items = [_encode(item, tensors, carries_numbers) for item in value]
        if fields := getattr(value, "_fields", None):
            return {"namedtuple": [type(value).__name__, list(fields), items]}
        return {"tuple": items}
    if isinstance(value, Mapping):
        return {
            "dict": [
                [_encode(key, tensors, False), _encode(item, tensors, carries_numbers)] for key, item in value.items()
            ]
        }
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.Tensor):
        return {"tensor": _number(value, tensors)}
    return {"torch": _name_in_torch(value)}


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


def _name_in_torch(value: object) -> list[str]:
    """Where torch keeps a dtype, a class such as nn.ReLU or a function such as F.gelu."""
    import torch
    import torch.nn.functional

    names = [str(value).removeprefix("torch."), str(getattr(value, "__name__", ""))]
    for module in (torch, torch.nn, torch.nn.functional):
        for name in names:
            if name.isidentifier() and getattr(module, name, None) is value:
                return [module.__name__, name]
    raise ValueRefusedError(f"a value of type {type(value).__name__} cannot be handed to a candidate")


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
