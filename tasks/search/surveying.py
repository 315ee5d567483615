"""The part of a survey that runs the user's file; only ever in a process of its own."""

import ast
import copy
import functools
import inspect
import math
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tasks.judge.model_state import constructor_arguments
from tasks.search.user_file import CONSTRUCTOR_FUNCTIONS, UserFile
from tasks.variants.shortening import shortened

TRACE_CHARS = 3_000
VALUE_CHARS = 80
PLAIN = (bool, int, float, str, type(None))
EXTRA_STATE = "_extra_state"
"""How the name of what a module's `get_extra_state` returns ends, which is asked for by name and may be anything."""


class _UnusableError(Exception):
    """Something that the file does not do as it must; says in a line what, and what can be done."""


def surveyed(path: Path, file: UserFile) -> dict[str, Any] | str:
    """The fields of a Survey, or in words why there is none."""
    torch.set_num_threads(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)  # what the file prints is nobody's answer
    try:
        return _surveyed(path, file)
    except _UnusableError as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001 - the user's code raises what it likes, SystemExit included
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # whose file it is need not see how it was run
        words = "".join(traceback.format_exception(type(error), error, trace))[-TRACE_CHARS:].rstrip()
        return f"{file.class_name} cannot be made and called as its functions say:\n{words}"


def form_of(value: Any, other: Any, name: str) -> Any:
    """The form of an argument, seen in two draws.

    A tensor is ("tensor", dtype, shape, stride), a list a list of forms, a mapping a mapping of them. That of a tuple
    is a list too, which begins with ("type", "tuple"), where its items have names ("type", "tuple Name first second").
    Plain data are ("value", value), or ("type", name) where the two draws differ.

    Args:
        name: of the argument, as an expression.

    Raises:
        _UnusableError: if it is anything else, or the draws differ in form.
    """
    match value:
        case torch.Tensor():
            if not isinstance(other, torch.Tensor) or other.shape != value.shape or other.dtype != value.dtype:
                raise _differing(value, other, name)
            return ("tensor", str(value.dtype).removeprefix("torch."), tuple(value.shape), value.stride())
        case list() | tuple():
            container = tuple if isinstance(value, tuple) else list
            if not isinstance(other, container) or len(other) != len(value):
                raise _differing(value, other, name)
            pairs = enumerate(zip(value, other, strict=True))
            forms = [form_of(*pair, f"{name}[{place}]") for place, pair in pairs]
            named = " ".join(["tuple", type(value).__name__, *value._fields]) if hasattr(value, "_fields") else "tuple"
            return [("type", named), *forms] if container is tuple else forms
        case dict():
            if not isinstance(other, dict) or other.keys() != value.keys():
                raise _differing(value, other, name)
            if odd := [type(key).__name__ for key in value if not _is_plain(key)]:
                raise _UnusableError(
                    f"{name} has a {odd[0]} among its keys, which can be strings, finite numbers, None, and tuples of "
                    f"these: name it by one of them"
                )
            return {key: form_of(value[key], other[key], f"{name}[{key!r}]") for key in value}
        case _ if type(value) in PLAIN:
            if type(other) is not type(value):
                raise _differing(value, other, name)
            return ("value", value) if value == other else ("type", type(value).__name__)
    kind = type(value).__name__
    raise _UnusableError(
        f"{name} is a {kind}, but arguments can be tensors, numbers, strings, None, and lists, tuples and mappings of "
        f"these: give the parts of it, and make a {kind} of them in forward"
    )


def _form_of_all(first: Any, second: Any, name: str) -> Any:
    """The form of what an example function returns; whether all arguments are in a list or a tuple is of no account.

    Raises:
        _UnusableError: if there is none.
    """
    drawn, again = (list(each) if isinstance(each, tuple) else each for each in (first, second))
    try:
        return form_of(drawn, again, name)
    except RecursionError:
        raise _UnusableError(
            f"{name} contains itself: let it return tensors, numbers, strings, None, and lists, tuples and mappings "
            f"of these that end somewhere"
        ) from None


def _differing(value: Any, other: Any, name: str) -> _UnusableError:
    return _UnusableError(
        f"{name} is {_in_words(value)} in one call and {_in_words(other)} in the next: let it always give the same "
        f"shape and dtype; for several shapes, run this for each"
    )


def _in_words(value: Any) -> str:
    match value:
        case torch.Tensor():
            return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
        case list() | tuple():
            return f"a {type(value).__name__} of {len(value)}"
        case dict():
            return f"a mapping of {', '.join(map(str, value))}"
    return f"a {type(value).__name__}"


def as_arguments(returned: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Positional and named arguments of a call, from whatever an example function returns."""
    if isinstance(returned, dict):
        return (), returned
    return (returned if isinstance(returned, list | tuple) else [returned]), {}


def tensors_apart(module: torch.nn.Module, returned: Any) -> str:
    """The number of each tensor among a call's arguments, or that of the first that is the same one, as an expression.

    "None" where that is of no account: no two are one, and the module does not write to them. Whether it does is seen
    in a call.
    """
    inputs, named = as_arguments(returned)
    tensors = [tensor for _, tensor in _tensors([list(inputs), named], "")]
    ids = [*map(id, tensors)]
    numbers = tuple(map(ids.index, ids))
    is_of_account = len(tensors) > 1 and (len({*ids}) < len(ids) or _writes_to(tensors, module, inputs, named))
    return repr(numbers) if is_of_account else "None"


Asked = tuple[Callable[[Any], Mapping[str, Any]], Callable[[Any], Sequence[type]], Callable[[type], Mapping[str, str]]]
"""What counts of a module, by name; its classes that count; and what does of these."""


def changed_by_a_call(module: torch.nn.Module, returned: Any, asked: Asked) -> str:
    """Names of what is not as it was after a call; empty where nothing is, or the call fails.

    An attribute that the module itself gets anew does not count.
    """
    compared, _, compared_of = asked
    inputs, named = as_arguments(returned)
    before = {path: compared(each) for path, each in module.named_modules()}
    of_class = {name: inspect.getattr_static(type(module), name, None) for name in dir(module)}
    own = {name for name, each in of_class.items() if not isinstance(each, functools.cached_property)}
    with classes_as_they_were(module, asked) as kinds:
        try:
            with torch.no_grad():
                module(*inputs, **named)
        except Exception:  # noqa: BLE001 - the user's code raises what it likes
            return ""
        parts = dict(module.named_modules())
        gone = [path for path in before if path not in parts]
        changed = [path for path in gone if path.rpartition(".")[0] not in gone]
        for path, part in parts.items():
            old, new = before.get(path, {}), compared(part)
            names = [name for name in {**old, **new} if path or name in old or name in own]
            changed += [f"{path}.{name}" if path else name for name in names if old.get(name) != new.get(name)]
        for kind, old in kinds.items():
            changed += [f"{kind.__name__}.{name}" for name in _unlike(old, compared_of(kind))]
    return ", ".join(changed)


@contextmanager
def classes_as_they_were(module: torch.nn.Module, asked: Asked) -> Iterator[Mapping[type, Mapping[str, str]]]:
    """What counts of a module's classes, which is put back afterwards: one made later is what it would have been."""
    _, classes_of, compared_of = asked
    kinds = {kind: compared_of(kind) for each in module.modules() for kind in classes_of(each)}
    held = {kind: {name: (vars(kind)[name], copy.deepcopy(vars(kind)[name])) for name in kinds[kind]} for kind in kinds}
    try:
        yield kinds
    finally:
        for kind, values in held.items():
            for name in _unlike(kinds[kind], compared_of(kind)):
                if name in values:
                    _put_back(kind, name, *values[name])
                else:
                    delattr(kind, name)


def _put_back(kind: type, name: str, value: Any, held: Any) -> None:
    """What a class had, as it was, and the same object: others may have it too."""
    match value:
        case list():
            value[:] = held
        case dict() | set():
            value.clear()
            value.update(held)
    setattr(kind, name, value)


def unlike_each_other(make: Callable[[], torch.nn.Module], asked: Asked) -> str:
    """Names of what is another one in each of two modules that are made alike, or in a class after each."""
    compared, classes_of, compared_of = asked
    seen = []
    for _ in range(2):
        module = make()
        found: dict[str, Any] = {}
        for path, part in module.named_modules():
            found |= {f"{path}.{name}" if path else name: text for name, text in compared(part).items()}
        for kind in dict.fromkeys(kind for each in module.modules() for kind in classes_of(each)):
            found |= {f"{kind.__name__}.{name}": text for name, text in compared_of(kind).items()}
        seen.append(found)
    return ", ".join(_unlike(*seen))


def _unlike(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


def _writes_to(
    tensors: Sequence[torch.Tensor], module: torch.nn.Module, inputs: Sequence[Any], named: dict[str, Any]
) -> bool:
    """Whether a call writes to any of the tensors; one that fails may have."""
    before = [(_version(each), each.clone()) for each in tensors]
    try:
        with torch.no_grad():
            module(*inputs, **named)
    except Exception:  # noqa: BLE001 - the user's code raises what it likes
        return True
    return any(
        _version(each) != version or not torch.equal(each, held)  # a write past the version shows in the values
        for each, (version, held) in zip(tensors, before, strict=True)
    )


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # which the former have none of


def _surveyed(path: Path, file: UserFile) -> dict[str, Any]:
    module = _loaded(path, file)
    model_class = getattr(module, file.class_name)
    if isinstance(model_class, type) and not issubclass(model_class, torch.nn.Module):
        raise _UnusableError(f"{file.class_name} is no torch.nn.Module: let it inherit from that")
    _require_constructor_of_its_own(file, model_class)
    returned = getattr(module, file.constructor_function)() if file.constructor_function else []
    positional, named = constructor_arguments(returned, model_class)
    _require_fitting(file, model_class, returned, (positional, named))
    model = model_class(*positional, **named)
    if not file.is_kernelbench:
        model.eval()
    _require_weights_that_change(file, model)
    first, second = (getattr(module, file.inputs_function)() for _ in range(2))
    is_one = not isinstance(first, list | tuple | dict)
    form = _form_of_all(first, second, f"{file.inputs_function}()")
    inputs, named_inputs = as_arguments(first)
    with torch.no_grad():
        outputs = model(*inputs, **named_inputs)
    _require_elements(first, outputs, f"{file.inputs_function}()")
    return {
        "inputs": () if named_inputs else (form,) if is_one else tuple(form),
        "named_inputs": form if named_inputs else {},
        "constructor": _in_order(model_class, positional, named),
    }


def _require_constructor_of_its_own(file: UserFile, model_class: Any) -> None:
    """Refuse a class with a decorator that writes constructors from fields: it finds none in a class in its place."""
    attributes = getattr(model_class, "__dict__", {})
    parameters = attributes.get("__dataclass_params__")
    writes = parameters.init if parameters else "__attrs_attrs__" in attributes
    classes = [each for each in ast.parse(file.source).body if isinstance(each, ast.ClassDef)]
    decorators = [each for each in classes if each.name == file.class_name][-1].decorator_list
    if writes and decorators:
        texts = [(ast.unparse(each), each.lineno) for each in decorators]
        text, line = next((each for each in texts if "dataclass" in each[0]), texts[-1])
        raise _UnusableError(
            f"@{text} in line {line} writes constructors, so a faster class in the place of {file.class_name} would "
            f"have another one: write __init__ out, with self.size = size for each field, in its place"
        )


def _require_fitting(file: UserFile, model_class: Any, returned: Any, arguments: tuple[Any, dict[str, Any]]) -> None:
    """Refuse arguments that the constructor does not take, before its own error says so in terms of another file."""
    try:
        signature = inspect.signature(model_class)
    except (TypeError, ValueError):  # no signature to be had
        return
    try:
        signature.bind(*arguments[0], **arguments[1])
    except TypeError as error:
        takes = f"{file.class_name} takes {signature}: {error}"
        if file.constructor_function:
            value = shortened(" ".join(repr(returned).split()), VALUE_CHARS)
            raise _UnusableError(
                f"{file.constructor_function} returns {value}, but {takes}; let it return what fits"
            ) from None
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        named = [each for each in signature.parameters.values() if each.kind not in several]
        required = [each.name for each in named if each.default is each.empty]
        example = f"def {CONSTRUCTOR_FUNCTIONS[1]}(): return {{{', '.join(f'{name!r}: ...' for name in required)}}}"
        raise _UnusableError(f"{takes}; add a function that returns all it needs, such as: {example}") from None


def _require_weights_that_change(file: UserFile, model: torch.nn.Module) -> None:
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor) and not name.endswith(EXTRA_STATE):
            raise _UnusableError(
                f"the state dict of {file.class_name} has things that are no tensors, such as {name}, as of a "
                f"quantised module: its weights cannot be changed to see whether they are read. Name a class that is "
                f"not quantised"
            )


def _require_elements(inputs: Any, outputs: Any, name: str) -> None:
    """Refuse inputs by which no answer is to be had, since an answer or all of them are empty."""
    given, answered = dict(_tensors(inputs, name)), dict(_tensors(outputs, ""))
    empty = [(where, tensor) for where, tensor in given.items() if not tensor.numel()]
    if empty and not (any(each.numel() for each in given.values()) and any(each.numel() for each in answered.values())):
        where, tensor = empty[0]
        raise _UnusableError(
            f"{where} has no elements: {_in_words(tensor)}. Nothing can be judged by that; let it have some"
        )


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors in lists and mappings, by expressions for them."""
    match value:
        case torch.Tensor():
            yield name, value
        case list() | tuple():
            for place, each in enumerate(value):
                yield from _tensors(each, f"{name}[{place}]")
        case dict():
            for key, each in value.items():
                yield from _tensors(each, f"{name}[{key!r}]")


def _loaded(path: Path, file: UserFile) -> types.ModuleType:
    root, package = file.package
    sys.path[:0] = [str(path.parent), str(root)]
    os.chdir(path.parent)
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    module.__package__ = package or None
    sys.modules[module.__name__] = module
    try:
        exec(compile(file.source, str(path), "exec"), module.__dict__)
    except SystemExit as error:
        raise _UnusableError(
            f"it ends itself when it is imported ({error!r}): put what only a program does under "
            f'if __name__ == "__main__":'
        ) from None
    return module


def _in_order(model_class: type, positional: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments that have a place, in the order of the parameters, where all of them are plain."""
    bound = inspect.signature(model_class).bind(*positional, **named)
    bound.apply_defaults()
    try:
        return bound.args if all(map(_is_plain, bound.args)) else None
    except RecursionError:  # of what contains itself
        return None


def _is_plain(value: Any) -> bool:
    """Whether it can be written down where the file's own classes are not known."""
    if type(value) is float:
        return math.isfinite(value)  # the others have no literals
    return type(value) in PLAIN or (type(value) in (list, tuple) and all(map(_is_plain, value)))
