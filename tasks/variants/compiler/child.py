"""Runs a reference and lets Inductor emit code for it. A program of its own: it runs what somebody else wrote.

It reads a request from its standard input, a line of JSON with the reference's source, the device and the variations,
and writes to its standard output a line of JSON for each variation: an emission, or {"refused": why}.
Nothing is built here, so no compiler is started.
"""

import ast
import inspect
import json
import os
import random
import re
import signal
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
import torch._dynamo
import torch._inductor.config
from torch._inductor.compile_fx import compile_fx
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torch._inductor.graph import GraphLowering

SEED = 0
MAX_OPERATIONS = 300
"""A loop in Python is unrolled: hundreds of steps take minutes to compile, into a text that nobody would learn from."""
# Dropout then draws what eager does. One thread: the judge gives a candidate one core. Instructions are taken from
# what the processor says, not from a program that would have to be built.
ALWAYS = {"fallback_random": True, "cpp.threads": 1, "cpp.vec_isa_ok": True, "force_disable_caches": True}


class RefusedError(Exception):
    """The reference cannot be compiled into something that holds outside of torch.compile."""


class EmittedError(Exception):
    """Carries the emitted text out of the compiler, which would go on to build it."""


def main() -> None:
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the reference prints is no answer
    signal.alarm(request["timeout_s"])  # should nobody be left who would end this process
    torch.set_num_threads(1)
    refusal = None
    for options in request["variations"]:
        try:
            answer = refusal or emission(request["source"], options)
        except RefusedError as error:
            answer = refusal = {"refused": str(error)}  # of the reference, so in all variations
        except Exception as error:  # noqa: BLE001 - the reference and the compiler raise what they like
            first = str(error).strip().split("\n")[0]
            answer = {"refused": f"{type(error).__name__}: {first}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def emission(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an Emission.

    Raises:
        RefusedError: if no way of compiling the reference would do.
    """
    torch.manual_seed(SEED)
    random.seed(SEED)
    torch._dynamo.reset()
    module = types.ModuleType("problem")
    sys.modules["problem"] = module
    exec(compile(source, "problem.py", "exec"), module.__dict__)
    positional, named = _arguments(getattr(module, "get_init_inputs", list)())
    constructor = _bound(module.Model, positional, named)
    model = module.Model(*positional, **named)
    inputs = _named(model.forward, *_arguments(module.get_inputs()))
    with torch.no_grad():
        returned = _looked_at(model, inputs)
        with torch._inductor.config.patch({**ALWAYS, **options}):
            wrapper, places = _emitted(model, inputs)
            isa = pick_vec_isa()
    given = {id(tensor) for _, tensor in places}
    others = [pair for pair in inputs.items() if isinstance(pair[1], torch.Tensor) and id(pair[1]) not in given]
    flags = {part.training for part in model.modules()}
    if len(flags) > 1:
        raise RefusedError("some of its modules are in training mode and some are not")
    return {
        "wrapper": wrapper,
        "tensors": [_form(place, tensor) for place, tensor in places],
        "looked_at": [_form(name, tensor) for name, tensor in others],
        "constants": _texts({name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)}),
        "constructor": _texts(constructor),
        "returned": "tensor" if isinstance(returned, torch.Tensor) else type(returned).__name__,
        "num_returned": 1 if isinstance(returned, torch.Tensor) else len(returned),
        "is_training": flags.pop(),
        "vector_isa": str(isa).split()[0] if isa else "",  # it goes on with what only products use
    }


def _arguments(returned: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), returned) if isinstance(returned, dict) else (returned, {})


def _named(function: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter's value by its name, where each has one of its own."""
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    if not kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        if positional or named:
            raise RefusedError("it takes arguments without names of their own")
        return {}
    return _bound(function, positional, named)


def _bound(function: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter's value by its name; *args are a tuple, and **kwargs a dictionary."""
    bound = inspect.signature(function).bind(*positional, **named)
    bound.apply_defaults()
    return bound.arguments


def _looked_at(model: Any, inputs: Mapping[str, Any]) -> Any:
    """What a call returns, once it is seen to do nothing else than to return new tensors and to update buffers."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    if len({_memory(value) or id(value) for value in tensors.values()}) < len(tensors):
        raise RefusedError("its inputs share memory, and Dynamo takes equal ones for one")
    versions = {name: value._version for name, value in tensors.items()}
    attributes = _attributes(model)
    returned = model(**inputs)
    if any(value._version != versions[name] for name, value in tensors.items()):
        raise RefusedError("it changes its inputs")
    if _attributes(model) != attributes:
        raise RefusedError("it keeps something between its calls")
    outputs = [returned] if isinstance(returned, torch.Tensor) else returned
    if type(outputs) not in (list, tuple) or not all(type(each) is torch.Tensor for each in outputs):
        raise RefusedError("it returns something else than tensors")
    memory = [_memory(each) for each in outputs]
    known = [*tensors.values(), *model.parameters(), *model.buffers()]
    if len(set(memory)) < len(memory) or set(memory) & {_memory(each) for each in known}:
        raise RefusedError("what it returns shares memory")
    return returned


def _memory(tensor: torch.Tensor) -> int:
    """Where its storage begins; 0 where it has none."""
    return tensor.untyped_storage().data_ptr()


def _attributes(model: Any) -> list[tuple[str, str, Any]]:
    """What its modules hold: numbers and texts as they are, other things by their identity and size."""
    return [
        (prefix, name, value if isinstance(value, int | float | str) else (id(value), *_size(value)))
        for prefix, part in model.named_modules()
        for holder in (vars(part), part._buffers, part._parameters)
        for name, value in holder.items()
    ]


def _size(value: Any) -> tuple[int, ...]:
    return (len(value),) if isinstance(value, list | dict | set) else ()


def _emitted(model: Any, inputs: Mapping[str, Any]) -> tuple[str, list[tuple[str, torch.Tensor]]]:
    """Inductor's text for a call, and where the tensors that it takes are found."""
    texts: list[str] = []
    places: list[tuple[str, torch.Tensor]] = []

    def backend(graph: Any, examples: Any) -> Any:
        if len(graph.graph.nodes) > MAX_OPERATIONS:
            raise RefusedError(f"it comes to more than {MAX_OPERATIONS} operations")
        sources = [node.meta["grapharg"].source.name for node in graph.graph.nodes if node.op == "placeholder"]
        places.extend(_places(sources, {"self": model, **inputs}))
        return compile_fx(graph, examples)

    def keep(graph: Any) -> None:
        texts.append(graph.codegen()[0].value)
        raise EmittedError

    # fullgraph: a graph break is an error here.
    with mock.patch.object(GraphLowering, "compile_to_module", keep):
        try:
            torch.compile(model, backend=backend, fullgraph=True, dynamic=False)(**inputs)
        except Exception as error:  # noqa: BLE001 - EmittedError comes back inside of others
            if not texts:
                raise getattr(error, "inner_exception", error) from None  # as the backend raised it
    if len(texts) != 1:
        raise RefusedError("nothing in it is left to compile")
    return texts[0], places


def _places(sources: Sequence[str], values: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Python that finds each of Dynamo's sources within forward, and what is found there."""
    for source in sources:
        place = re.sub(r"\._(?:modules|parameters|buffers)\['(\d+)'\]", r"[\1]", source)
        place = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", place)
        place = re.sub(r"^L\['(\w+)'\]", r"\1", place)
        if place.startswith(("L[", "G[")):
            raise RefusedError(f"it takes a tensor from {source}")
        tensor = eval(place, {}, values)
        if tensor is not eval(source, {"L": values}) or not isinstance(tensor, torch.Tensor):
            raise RefusedError(f"it takes a tensor from {source}")
        yield place, tensor


def _form(place: str, tensor: torch.Tensor) -> dict[str, Any]:
    if tensor.is_complex() or tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise RefusedError(f"{place} is no plain tensor of real numbers")
    return {"place": place, "dtype": str(tensor.dtype), "size": list(tensor.shape), "stride": list(tensor.stride())}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: repr(value) for name, value in values.items()}
    for name, text in texts.items():
        try:
            ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise RefusedError(f"its argument {name} is not plain data") from None
    return texts


if __name__ == "__main__":
    main()
