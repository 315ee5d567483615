"""What runs inside a worker process: it obeys the referee's frames, one at a time.

The reference and every candidate are served by this same loop, so that both pay the same for it. In a candidate's
process all of this is within the candidate's reach: nothing that is sent from here is believed, and what counts are the
bytes in the arena at the moment the answer was sent.
"""

import copy
import json
import linecache
import mmap
import os
import random
import socket
import sys
import traceback
import types
from typing import Any

import numpy as np
import torch

from tasks.judge import values
from tasks.judge.wire import FRAME_BYTES, ITEM_BYTES, TensorSpec, offsets

TRACE_CHARS = 3_000
# Exceptions that mean that a build inside the candidate failed, by name: most live in modules loaded only when used.
BUILD_ERRORS = frozenset(
    {"CalledProcessError", "CppCompileError", "BackendCompilerFailed", "InductorError", "CompilationError"}
)


class OutputRefusedError(Exception):
    """The program returned something other than plain tensors that fit."""


class Worker:
    """One program and its model, driven over a socket."""

    def __init__(self, connection: socket.socket, text: mmap.mmap, memory: torch.Tensor) -> None:
        """Take up the arena.

        Args:
            text: its start, where the program's source is laid.
            memory: all of it as bytes, on the device to judge on.
        """
        self._connection = connection
        self._text = text
        self._memory = memory
        self._module = types.ModuleType("program")
        self._class_name = ""
        self._init_inputs: list[Any] = []
        self._models: dict[int, Any] = {}
        self._model: Any = None
        self._inputs: list[tuple[TensorSpec, int] | Any] = []
        self._objects: dict[int, list[Any]] = {}
        self._views: dict[tuple[int, torch.dtype, torch.Size], torch.Tensor] = {}
        self._held: dict[int, list[torch.Tensor]] = {}

    def serve(self) -> None:
        """Answer frames until the referee hangs up."""
        while frame := self._connection.recv(FRAME_BYTES):
            message = json.loads(frame)
            try:
                answer = getattr(self, "do_" + message["op"])(message)
            except BaseException as error:  # noqa: BLE001 - untrusted code raises what it likes, SystemExit included
                answer = {"error": _described(error)}
            answer["id"] = message["id"]
            self._connection.send(json.dumps(answer).encode())

    def do_load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the program's text, which lies at the start of the arena."""
        source = self._text[: message["num_bytes"]].decode()
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

    def do_init_inputs(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"value": values.encode(list(self._module.get_init_inputs()))}

    def do_build(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make the model under a seed, or take up again the one made under it before."""
        seed = message["seed"]
        if seed not in self._models:
            _seed_all(seed)
            init_inputs = values.decode(message["init_inputs"])
            model = getattr(self._module, self._class_name)(*init_inputs)
            self._models[seed] = model.to(self._memory.device) if self._memory.is_cuda else model
        self._model = self._models[seed]
        return {"state": [[name, *_form(tensor), kind] for name, tensor, kind in self._state()]}

    def do_save_state(self, message: dict[str, Any]) -> dict[str, Any]:
        state = [tensor for _, tensor, _ in self._state()]
        starts, _ = offsets([TensorSpec.from_json(_form(tensor)) for tensor in state])
        for start, tensor in zip(starts, state, strict=True):
            self._copy_in(tensor.contiguous(), message["at"] + start)
        return {}

    def do_load_state(self, message: dict[str, Any]) -> dict[str, Any]:
        """Overwrite parameters and buffers in place, as an optimiser or load_state_dict would."""
        state = {name: tensor for name, tensor, _ in self._state()}
        specs = [TensorSpec.from_json(row) for _, *row in message["state"]]
        starts, _ = offsets(specs)
        with torch.no_grad():
            for (name, *_), spec, start in zip(message["state"], specs, starts, strict=True):
                if spec.num_items:
                    state[name].copy_(self._view(spec, message["at"] + start))
        return {}

    def do_draw(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make inputs under a seed and lay them into the arena; only ever asked of the reference."""
        _seed_all(message["seed"])
        rows, tensors = [], []
        drawn = self._module.get_inputs()
        if not isinstance(drawn, list | tuple):
            raise OutputRefusedError(f"get_inputs returns a {type(drawn).__name__}, not a list")
        for item in drawn:
            if isinstance(item, torch.Tensor):
                tensors.append(item.detach())
                rows.append({"tensor": [*_form(item), list(item.stride())]})
            else:
                rows.append({"value": values.encode(item)})
        starts, num_bytes = offsets([TensorSpec.from_json(row["tensor"]) for row in rows if "tensor" in row])
        if num_bytes > message["capacity"]:
            raise OutputRefusedError(f"the inputs take {num_bytes} bytes, {message['capacity']} at most")
        for start, tensor in zip(starts, tensors, strict=True):
            num_items = TensorSpec.from_json([*_form(tensor), list(tensor.stride())]).num_items
            self._copy_in(tensor.as_strided((num_items,), (1,)), message["at"] + start)
        return {"inputs": rows}

    def do_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """Learn the form of the inputs that later calls find in the arena."""
        specs = [TensorSpec.from_json(row["tensor"]) for row in message["inputs"] if "tensor" in row]
        pairs = iter(zip(specs, offsets(specs)[0], strict=True))
        self._inputs = [next(pairs) if "tensor" in row else values.decode(row["value"]) for row in message["inputs"]]
        return {}

    def do_call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call the model once for every place of inputs and lay its outputs into the arena: the part that is timed."""
        forms = []
        for at, to in message["places"]:
            outputs = _plain(self._model(*self._arguments(at, fresh=message["fresh"])))
            if message["hold"]:
                self._held[at] = outputs
            forms.append(self._copy_out(outputs, to, message["capacity"]))
        return {"outputs": forms}

    def do_recopy(self, message: dict[str, Any]) -> dict[str, Any]:
        """Lay the outputs of an earlier, held call into the arena again, once for every place."""
        held = self._held[message["held"]]
        return {"outputs": [self._copy_out(held, to, message["capacity"]) for _, to in message["places"]]}

    def do_call_in_float64(self, message: dict[str, Any]) -> dict[str, Any]:
        """The truth about rounding: the same model and inputs in double precision."""
        model = copy.deepcopy(self._model).double()
        ((at, to),) = message["places"]
        arguments = [
            item.double() if isinstance(item, torch.Tensor) and item.is_floating_point() else item
            for item in self._arguments(at, fresh=True)
        ]
        return {"outputs": [self._copy_out(_plain(model(*arguments)), to, message["capacity"])]}

    def do_loaded(self, _: dict[str, Any]) -> dict[str, Any]:
        """Whether the compiler of graphs was at work here: a hint about the track, never about the verdict."""
        frames = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("frames", {})
        return {"compiled_frames": int(frames.get("ok", 0))}

    def _arguments(self, at: int, *, fresh: bool) -> list[Any]:
        if at not in self._objects or fresh:
            self._objects[at] = [
                self._view(item[0], at + item[1])
                if isinstance(item, tuple) and isinstance(item[0], TensorSpec)
                else item
                for item in self._inputs
            ]
        return self._objects[at]

    def _view(self, spec: TensorSpec, at: int) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if not spec.num_items:
            return torch.empty(spec.shape, dtype=dtype)
        return self._memory[at : at + spec.num_bytes].view(dtype).as_strided(spec.shape, spec.stride)

    def _copy_in(self, tensor: torch.Tensor, at: int) -> None:
        if tensor.numel():
            self._memory[at : at + tensor.nbytes].view(tensor.dtype).copy_(tensor.reshape(-1))

    def _copy_out(self, outputs: list[torch.Tensor], at: int, capacity: int) -> list[list[Any]]:
        end = at + capacity
        forms = []
        for output in outputs:
            forms.append(_form(output))
            if at + output.nbytes > end:
                raise OutputRefusedError(f"output {len(forms) - 1} of shape {list(output.shape)} is too large")
            if output.numel():
                key = (at, output.dtype, output.shape)
                if key not in self._views:
                    self._views[key] = self._memory[at : at + output.nbytes].view(output.dtype).view(output.shape)
                self._views[key].copy_(output)
            at += -(-output.nbytes // 64) * 64
        if self._memory.is_cuda:
            torch.cuda.synchronize()  # a call has ended when its outputs exist, on whatever streams they are made
        return forms

    def _state(self) -> list[tuple[str, torch.Tensor, str]]:
        parameters = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        return [
            (name, tensor, "parameter" if name in parameters else "buffer")
            for name, tensor in self._model.state_dict().items()
            if isinstance(tensor, torch.Tensor)
        ]


def _seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % (1 << 32))


def _form(tensor: torch.Tensor) -> list[Any]:
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]


def _plain(result: Any) -> list[torch.Tensor]:
    """The outputs as a list; exactly plain tensors, because only those have nothing left to compute."""
    outputs = list(result) if type(result) in (tuple, list) else [result]
    for output in outputs:
        if type(output) is not torch.Tensor:
            raise OutputRefusedError(f"an output is of type {type(output).__name__}, not torch.Tensor")
        if output.layout is not torch.strided or output.device.type not in ("cpu", "cuda"):
            raise OutputRefusedError(f"an output is a {output.layout} tensor on {output.device.type}")
        if _form(output)[0] not in ITEM_BYTES:
            raise OutputRefusedError(f"an output is of dtype {output.dtype}, which cannot be compared")
    return [output.detach() for output in outputs]


def _described(error: BaseException) -> dict[str, str]:
    if isinstance(error, OutputRefusedError | values.ValueRefusedError):
        return {"kind": "output", "text": str(error)}
    names = {base.__name__ for base in type(error).__mro__}
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - an exception's own text is the candidate's code too
        text = type(error).__name__
    kind = "build" if names & BUILD_ERRORS or "Error building extension" in text else "raised"
    return {"kind": kind, "text": text[-TRACE_CHARS:]}
