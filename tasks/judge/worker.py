"""What runs inside a worker process: it obeys the referee's frames, one at a time.

The reference and every candidate are served by this same loop, so that both pay the same for it. In a candidate's
process all of this is within the candidate's reach: nothing that is sent from here is believed, and what counts are the
bytes in the arena at the moment the answer was sent.
"""

import ctypes
import gc
import json
import linecache
import mmap
import os
import random
import socket
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tasks.judge import model_state, precision, values
from tasks.judge.outputs import OutputRefusedError, Outputs, TooLargeError, flattened
from tasks.judge.wire import FRAME_BYTES, TensorSpec, offsets

TRACE_CHARS = 3_000
HEAD_START_CYCLES = 1_000_000
"""About half a millisecond, in which the host launches the kernels of a call before the device begins with them."""
M_PERTURB = -6  # of malloc.h
SET_ALLOCATOR = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc alone
# Exceptions that mean that a build inside the candidate failed, by name: most live in modules loaded only when used.
BUILD_ERRORS = frozenset(
    {"CalledProcessError", "CppCompileError", "BackendCompilerFailed", "InductorError", "CompilationError"}
)


class Worker:
    """One program and its model, driven over a socket."""

    def __init__(self, connection: socket.socket, text: mmap.mmap, memory: torch.Tensor) -> None:
        """Take up the arena.

        Args:
            text: its part on the host, where the program's source is laid, and what the program draws.
            memory: all of it as bytes, on the device to judge on.
        """
        self._connection = connection
        self._text = text
        self._memory = memory
        self._host_memory = torch.frombuffer(text, dtype=torch.uint8) if memory.is_cuda else memory
        self._module = types.ModuleType("program")
        self._class_name = ""
        self._models: dict[int, Any] = {}
        self._model: Any = None
        self._precision = "fp32"
        self._inputs: dict[str, Any] = {}
        self._input_places: list[tuple[TensorSpec, int]] = []
        self._takes_tensors_only = False
        self._objects: dict[int, list[torch.Tensor]] = {}
        self._views: dict[tuple[int, torch.dtype, torch.Size], torch.Tensor] = {}
        self._held: dict[int, Outputs] = {}
        self._answered: list[torch.Tensor] = []

    def serve(self) -> None:
        """Answer frames until the referee hangs up."""
        while frame := self._connection.recv(FRAME_BYTES):
            message = json.loads(frame)
            try:
                answer = getattr(self, "do_" + message["op"])(message)
                if self._memory.is_cuda:
                    torch.cuda.synchronize()  # what was asked for has happened, on whatever streams
            except BaseException as error:  # noqa: BLE001 - untrusted code raises what it likes, SystemExit included
                answer = {"error": _described(error)}
            answer["id"] = message["id"]
            self._connection.send(json.dumps(answer).encode())

    def do_load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the program's text, which lies at the start of the arena."""
        self._precision = message["precision"]
        precision.set_flags(self._precision)
        source = self._text[: message["num_bytes"]].decode().removeprefix("\ufeff")
        path = os.path.abspath(message["filename"])
        with open(path, "w") as file:  # inspect, torch.compile and Triton want to read it
            file.write(source)
        linecache.checkcache(path)
        self._module = types.ModuleType(message["filename"].removesuffix(".py"))
        self._module.__file__ = path
        sys.modules[self._module.__name__] = self._module
        exec(compile(source, path, "exec"), self._module.__dict__)
        self._class_name = message["class_name"]
        if not callable(getattr(self._module, self._class_name, None)):
            raise AttributeError(f"the program defines no class {self._class_name}")
        return {}

    def do_init_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """What the constructor is given; only ever asked of the reference."""
        returned: Any = getattr(self._module, "get_init_inputs", list)()
        arguments = model_state.constructor_arguments(returned, getattr(self._module, self._class_name))
        return {"arguments": self._lay_in(arguments, message)}

    def do_build(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make the model under a seed, or take up again the one made under it before."""
        seed = message["seed"]
        if seed not in self._models:
            _seed_all(seed)
            places = _places(message["arguments"]["specs"])
            tensors = [self._view(spec, message["at"] + start).clone().cpu() for spec, start in places]
            positional, named = values.decode(message["arguments"]["tree"], tensors)
            model = getattr(self._module, self._class_name)(*positional, **named)
            self._models[seed] = model.to(self._memory.device) if self._memory.is_cuda else model
        self._model = self._models[seed]
        return {
            "state": [[name, *_form(tensor), kind] for name, tensor, kind in model_state.state(self._model)],
            "other_items": sum(tensor.numel() for tensor in model_state.attributes(self._model)),
        }

    def do_save_state(self, message: dict[str, Any]) -> dict[str, Any]:
        state = [tensor for _, tensor, _ in model_state.state(self._model)]
        starts, _ = offsets([TensorSpec.from_json(_form(tensor)) for tensor in state])
        for start, tensor in zip(starts, state, strict=True):
            self._copy_in(self._memory, tensor.contiguous(), message["at"] + start)
        return {}

    def do_load_state(self, message: dict[str, Any]) -> dict[str, Any]:
        """Overwrite parameters and buffers in place; says whether the model has a place for all of them."""
        names, rows = [row[0] for row in message["state"]], [row[1:] for row in message["state"]]
        views = [self._view(spec, message["at"] + start) for spec, start in _places(rows)]
        return {"loaded": model_state.load(self._model, dict(zip(names, views, strict=True)))}

    def do_draw(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make inputs under a seed and lay them into the arena's part on the host; only ever asked of the reference."""
        _seed_all(message["seed"])
        drawn = self._module.get_inputs()
        if not isinstance(drawn, list | tuple | dict):
            raise OutputRefusedError(f"get_inputs returns a {type(drawn).__name__}, not a list")
        return {"arguments": self._lay_in(([], drawn) if isinstance(drawn, dict) else (drawn, {}), message)}

    def do_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """Learn the form of the inputs that later calls find in the arena."""
        self._inputs = message["inputs"]
        self._input_places = _places(self._inputs["specs"])
        self._takes_tensors_only = values.is_list_of_tensors(self._inputs["tree"], len(self._input_places))
        torch.set_grad_enabled(message["needs_grad_mode"])
        return {}

    def do_call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call the model once for every place of inputs and hand its outputs over: the part that is timed."""
        self._answered.clear()
        if "order" in message:
            return self._call_between_events(message)
        forms = []
        for at, to in message["places"]:
            tensors = self._tensors(at, fresh=message["fresh"])
            if message["filling"]:
                with _filled_memory(message["filling"]):
                    outputs = self._called(self._model, tensors)
            else:
                outputs = self._called(self._model, tensors)
            if message["hold"]:
                self._held[at] = outputs
            forms.append(self._handed_over(outputs, to, message))
        return {"outputs": forms}

    def _call_between_events(self, message: dict[str, Any]) -> dict[str, Any]:
        """The calls of one exchange as the device sees them. Outputs are handed over when the time is up."""
        places, answered = message["places"], {}
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if message["cold"]:
            torch.cuda._sleep(HEAD_START_CYCLES)
        begin.record()
        for number in message["order"]:
            answered[number] = self._called(self._model, self._tensors(places[number][0], fresh=False))
        end.record()
        torch.cuda.synchronize()
        forms = [self._handed_over(answered[number], to, message) for number, (_, to) in enumerate(places)]
        return {"outputs": forms, "device_ms": begin.elapsed_time(end)}

    def do_recopy(self, message: dict[str, Any]) -> dict[str, Any]:
        """Hand over the outputs of an earlier, held call again, once for every place."""
        self._answered.clear()
        held = self._held[message["held"]]
        return {"outputs": [self._handed_over(held, to, message) for _, to in message["places"]]}

    def do_call_in_float64(self, message: dict[str, Any]) -> dict[str, Any]:
        """The truth about rounding: the same model and inputs in double precision."""
        self._answered.clear()
        ((at, to),) = message["places"]
        fields = {name: message[name] for name in ("nudge", "seed", "rounded")}
        model, tensors = precision.in_double(self._model, self._tensors(at, fresh=True), **fields)
        outputs = self._called(model, tensors, in_double=True)
        return {"outputs": [self._handed_over(outputs, to, message)]}

    def do_loaded(self, _: dict[str, Any]) -> dict[str, Any]:
        """Whether graphs were compiled or captured here: a hint about the track, never about the verdict."""
        frames = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("frames", {})
        captured = sum(type(found) is torch.cuda.CUDAGraph for found in gc.get_objects()) if self._memory.is_cuda else 0
        return {"compiled_frames": int(frames.get("ok", 0)), "captured_graphs": captured}

    def _lay_in(self, arguments: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Lay the tensors of a call's arguments into the arena; returns what else there is to know about them."""
        tree, tensors = values.encode_all(arguments, carries_numbers=message.get("carries_numbers", False))
        rows = [[*_form(tensor), list(tensor.stride())] for tensor in tensors]
        specs = [TensorSpec.from_json(row) for row in rows]
        starts, num_bytes = offsets(specs)
        if num_bytes > message["capacity"]:
            raise TooLargeError(f"the inputs take {num_bytes} bytes, {message['capacity']} at most")
        for spec, start, tensor in zip(specs, starts, tensors, strict=True):
            values_in_order = tensor.detach().as_strided((spec.num_items,), (1,))
            self._copy_in(self._host_memory, values_in_order, message["at"] + start)
        return {"tree": tree, "specs": rows, "with_grad": [tensor.requires_grad for tensor in tensors]}

    def _tensors(self, at: int, *, fresh: bool) -> list[torch.Tensor]:
        """The inputs that lie at a place; the same objects as at the last call, or new ones."""
        if at not in self._objects or fresh:
            self._objects[at] = [
                self._view(spec, at + start).requires_grad_(with_grad)
                for (spec, start), with_grad in zip(self._input_places, self._inputs["with_grad"], strict=True)
            ]
        return self._objects[at]

    def _called(self, model: Any, tensors: list[torch.Tensor], *, in_double: bool = False) -> Outputs:
        plain = self._takes_tensors_only  # then decoding would only cost time
        positional, named = (tensors, {}) if plain else values.decode(self._inputs["tree"], tensors)
        if in_double or self._precision not in precision.AUTOCAST_DTYPES:
            return flattened(model(*positional, **named))
        with precision.autocast(self._precision):
            return flattened(model(*positional, **named), widen=True)

    def _handed_over(self, outputs: Outputs, to: int, message: dict[str, Any]) -> list[list[Any]]:
        """Let the referee have outputs; returns the form of each, its path, and its address unless it was copied."""
        tensors, paths = outputs
        if message["copies"]:
            forms = self._copy_out(tensors, to, message["capacity"])
            return [[*form, path, 0] for form, path in zip(forms, paths, strict=True)]
        plain = [tensor.resolve_conj().resolve_neg().contiguous() for tensor in tensors]
        self._answered += plain
        return [[*_form(tensor), path, tensor.data_ptr()] for tensor, path in zip(plain, paths, strict=True)]

    def _view(self, spec: TensorSpec, at: int) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if not spec.num_items:
            return torch.empty(spec.shape, dtype=dtype)
        return self._memory[at : at + spec.num_bytes].view(dtype).as_strided(spec.shape, spec.stride)

    def _copy_in(self, memory: torch.Tensor, tensor: torch.Tensor, at: int) -> None:
        if tensor.numel():
            memory[at : at + tensor.nbytes].view(tensor.dtype).copy_(tensor.reshape(-1))

    def _copy_out(self, outputs: list[torch.Tensor], at: int, capacity: int) -> list[list[Any]]:
        end = at + capacity
        forms = []
        for output in outputs:
            forms.append(_form(output))
            if output.device != self._memory.device and output.dim():  # numbers are handed over from the host
                raise OutputRefusedError(f"output {len(forms) - 1} is on {output.device}, not on {self._memory.device}")
            if at + output.nbytes > end:
                raise TooLargeError(f"output {len(forms) - 1} of shape {list(output.shape)} is too large")
            if output.numel():
                key = (at, output.dtype, output.shape)
                if key not in self._views:
                    self._views[key] = self._memory[at : at + output.nbytes].view(output.dtype).view(output.shape)
                self._views[key].copy_(output)
            at += -(-output.nbytes // 64) * 64
        return forms


@contextmanager
def _filled_memory(filling: int) -> Iterator[None]:
    """Let memory of the host be full of what nobody wrote, when it is handed out and when it was given back.

    Without glibc it is left as it is, and so is what glibc hands out again at once, of 1 KB and less.

    Args:
        filling: byte that freed memory is filled with, and new memory with its complement.
    """
    if SET_ALLOCATOR is None:
        yield
        return
    SET_ALLOCATOR(M_PERTURB, filling)
    try:
        yield
    finally:
        SET_ALLOCATOR(M_PERTURB, 0)


def _seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % (1 << 32))


def _places(rows: list[Any]) -> list[tuple[TensorSpec, int]]:
    """The tensors of one block, each with its beginning."""
    specs = [TensorSpec.from_json(row) for row in rows]
    return list(zip(specs, offsets(specs)[0], strict=True))


def _form(tensor: torch.Tensor) -> list[Any]:
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]


def _described(error: BaseException) -> dict[str, str]:
    if isinstance(error, TooLargeError):
        return {"kind": "size", "text": str(error)}
    if isinstance(error, OutputRefusedError | values.ValueRefusedError):
        return {"kind": "output", "text": str(error)}
    names = {base.__name__ for base in type(error).__mro__}
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - an exception's own text is the candidate's code too
        text = type(error).__name__
    kind = "build" if names & BUILD_ERRORS or "Error building extension" in text else "raised"
    return {"kind": kind, "text": text[-TRACE_CHARS:]}
