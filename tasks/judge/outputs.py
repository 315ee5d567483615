"""What a program returned, taken apart into plain tensors. Runs inside a worker."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tasks.judge.wire import ITEM_BYTES, MAX_TENSORS

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
MAX_DEPTH = 16
_DTYPES = frozenset(getattr(torch, name) for name in ITEM_BYTES)
_NUMBERS = {float: torch.float32, complex: torch.complex64}
"""What numbers of Python become, whatever a program has made the default."""
_LOW_DTYPES = (torch.float16, torch.bfloat16)


Outputs = tuple[list[torch.Tensor], list[str]]
"""Tensors, and where each stood."""


class TooLargeError(Exception):
    """More bytes than there is room for."""


class OutputRefusedError(Exception):
    """The program returned something other than plain tensors that fit."""


def flattened(result: Any, *, widen: bool = False) -> Outputs:
    """The tensors within lists, tuples, mappings and data classes, and the keys or fields under which each stood.

    How lists are nested is nobody's business, and None is nothing. Mappings are sorted by key and numbers become
    tensors of no dimension. Everything else must be exactly a plain tensor: only those have nothing left to compute.

    Args:
        widen: hand float16 and bfloat16 over as float32, as problems of such a precision allow.
    """
    tensors, paths = [], []
    for path, leaf in _leaves(result, "", MAX_DEPTH):
        tensor = _plain(leaf)
        tensors.append(tensor.float() if widen and tensor.dtype in _LOW_DTYPES else tensor)
        paths.append(path)
        if len(tensors) > MAX_TENSORS:
            raise OutputRefusedError(f"there are more than {MAX_TENSORS} outputs")
    return tensors, paths


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif not depth:
        raise OutputRefusedError(f"the outputs are nested more than {MAX_DEPTH} deep")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, path, depth - 1)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{path}[{key!r}]", depth - 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name), f"{path}.{field.name}", depth - 1)
    elif isinstance(value, bool | int | float | complex):
        yield path, torch.tensor(value, dtype=_NUMBERS.get(type(value)))
    elif value is not None:
        raise OutputRefusedError(
            f"an output is of type {type(value).__name__}: it can be a tensor, a number, None, or a list, tuple, "
            f"mapping or data class of these"
        )


def _plain(output: torch.Tensor) -> torch.Tensor:
    if type(output) not in PLAIN_TYPES:
        raise OutputRefusedError(f"an output is of type {type(output).__name__}, not torch.Tensor")
    if output.layout is not torch.strided or output.device.type not in ("cpu", "cuda"):
        raise OutputRefusedError(f"an output is a {output.layout} tensor on {output.device.type}")
    if output.dtype not in _DTYPES:
        raise OutputRefusedError(f"an output is of dtype {output.dtype}, which cannot be compared")
    return output.detach()
