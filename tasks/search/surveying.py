"""The part of a survey that runs the user's file; only ever in a process of its own."""

import inspect
import os
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tasks.judge.model_state import constructor_arguments
from tasks.search.user_file import UserFile

TRACE_CHARS = 3_000
PLAIN = (bool, int, float, str, type(None))


def surveyed(path: Path, file: UserFile) -> dict[str, Any] | str:
    """The fields of a Survey, or in words why there is none."""
    torch.set_num_threads(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)  # what the file prints is nobody's answer
    try:
        return _surveyed(path, file)
    except BaseException as error:  # noqa: BLE001 - the user's code raises what it likes, SystemExit included
        return "".join(traceback.format_exception(error))[-TRACE_CHARS:]


def form_of(value: Any, other: Any) -> Any:
    """The form of an argument, seen in two draws.

    A tensor is ("tensor", dtype, shape, stride), a list or tuple a list of forms, a mapping a mapping of them. Plain
    data are ("value", value), or ("type", name) where the two draws differ.

    Raises:
        TypeError: if it is anything else, or the draws differ in form.
    """
    match value:
        case torch.Tensor():
            form = ("tensor", str(value.dtype).removeprefix("torch."), tuple(value.shape), value.stride())
            if not isinstance(other, torch.Tensor) or other.shape != value.shape or other.dtype != value.dtype:
                raise TypeError("two calls of the example function return tensors of other shapes or dtypes")
            return form
        case list() | tuple():
            return [form_of(*pair) for pair in zip(value, other, strict=True)]
        case dict():
            return {name: form_of(value[name], other[name]) for name in value}
        case _ if isinstance(value, PLAIN):
            return ("value", value) if value == other else ("type", type(value).__name__)
    raise TypeError(f"an example input is a {type(value).__name__}; tensors, numbers, strings and lists of them can be")


def as_arguments(returned: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Positional and named arguments of a call, from whatever an example function returns."""
    if isinstance(returned, dict):
        return (), returned
    return (returned if isinstance(returned, list | tuple) else [returned]), {}


def _surveyed(path: Path, file: UserFile) -> dict[str, Any]:
    module = _loaded(path, file)
    model_class = getattr(module, file.class_name)
    returned = getattr(module, file.constructor_function)() if file.constructor_function else []
    positional, named = constructor_arguments(returned, model_class)
    model = model_class(*positional, **named)
    if not file.is_kernelbench:
        model.eval()
    draws = [as_arguments(getattr(module, file.inputs_function)()) for _ in range(2)]
    inputs = tuple(form_of(*pair) for pair in zip(draws[0][0], draws[1][0], strict=True))
    named_inputs = form_of(draws[0][1], draws[1][1])
    with torch.no_grad():
        model(*draws[0][0], **draws[0][1])
    return {
        "inputs": inputs,
        "named_inputs": named_inputs,
        "constructor": _in_order(model_class, positional, named),
    }


def _loaded(path: Path, file: UserFile) -> types.ModuleType:
    root, package = file.package
    sys.path[:0] = [str(path.parent), str(root)]
    os.chdir(path.parent)
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    module.__package__ = package or None
    sys.modules[module.__name__] = module
    exec(compile(file.source, str(path), "exec"), module.__dict__)
    return module


def _in_order(model_class: type, positional: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments that have a place, in the order of the parameters, where all of them are plain."""
    bound = inspect.signature(model_class).bind(*positional, **named)
    bound.apply_defaults()
    return bound.args if all(map(_is_plain, bound.args)) else None


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))
