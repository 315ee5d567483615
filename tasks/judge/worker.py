"""What runs inside a worker process: it obeys the referee's frames, one at a time.

The reference and every candidate are served by this same loop, so that both pay the same for it. In a candidate's
process all of this is within the candidate's reach: nothing that is sent from here is believed, and what counts are the
bytes in the arena at the moment the answer was sent.
"""

import array
import contextlib
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
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from tasks.judge import model_state, precision, values
from tasks.judge.call_frames import AGAIN, FILL, HOLD, MARK, QUESTION, SAME, keeps_outputs
from tasks.judge.outputs import OutputRefusedError, Outputs, TooLargeError, flattened
from tasks.judge.unwritten_memory import filled_memory
from tasks.judge.wire import FRAME_BYTES, TensorSpec, offsets

TRACE_CHARS = 3_000
HEAD_START_CYCLES = 1_000_000
"""About half a millisecond, in which the host launches the kernels of a call before the device begins with them."""
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
        self._is_on_device = memory.is_cuda
        self._host_memory = torch.frombuffer(text, dtype=torch.uint8) if memory.is_cuda else memory
        self._module = types.ModuleType("program")
        self._class_name = ""
        self._models: dict[int, Any] = {}
        self._model: Any = None
        self._precision = "fp32"
        self._inputs: dict[str, Any] = {}
        self._input_places: list[tuple[TensorSpec, int]] = []
        self._takes_tensors_only = False
        self._slots: list[tuple[int, int]] = []
        self._capacity = 0
        self._copies_outputs = False
        self._unseen: list[list[torch.Tensor]] = []
        """The inputs in every slot, as tensors that no program ever sees: what it does to those is its own business."""
        self._with_grad: list[int] = []
        self._objects: list[list[torch.Tensor]] = []
        """The inputs of the last call in every slot, as its program has seen them."""
        self._views: dict[tuple[int, torch.dtype, torch.Size], torch.Tensor] = {}
        self._held: dict[int, torch.Tensor | list[torch.Tensor]] = {}
        self._answered: list[list[torch.Tensor]] = [[], []]  # in the last exchange, and in the one before
        self._keeps_outputs = False
        """Whether they outlive one more exchange, to be looked at again."""
        self._usual_forms: list[tuple[torch.dtype, torch.Size]] = []
        self._usual_paths: tuple[list[str], list[str]] = [], []
        """Under which keys outputs stood when they were last described; the second those of held ones: none."""
        self._may_answer_shortly = False
        self._answers_shortly = False

    def serve(self) -> None:
        """Answer frames until the referee hangs up.

        What is timed is answered right here where that can be done shortly. A process that was stopped finds its caches
        cold: every function that it enters, of Python's or torch's, takes it a microsecond or several.
        """
        frame = bytearray(FRAME_BYTES)
        receive, send, read = self._connection.recv_into, self._connection.send, QUESTION.unpack_from
        plain, words_of, no_paths = torch.Tensor, array.array, [""]
        exchanges, held = self._answered, self._held
        while num_bytes := receive(frame):
            if frame[0] != MARK:
                message = json.loads(frame[:num_bytes])
                send(self._answer(message["id"], getattr(self, "do_" + message["op"]), message))
                continue
            _, flags, filling, slot, count, number = read(frame)
            if flags > AGAIN or not self._answers_shortly:
                send(self._answer(number, self.do_call, flags, filling, slot, count))
                continue
            model, unseen, objects, with_grad = self._model, self._unseen, self._objects, self._with_grad
            usual, usual_paths, words = self._usual_forms, self._usual_paths[flags], [MARK, number]
            if self._keeps_outputs:
                exchanges.reverse()
            answered = exchanges[0]
            answered.clear()
            result = outputs = output = None  # nothing of the last answer is in the way of the next
            try:
                for at in range(slot, slot + count):
                    given = objects[at] = [tensor.detach() for tensor in unseen[at]]  # as _new_objects does
                    for place in with_grad:
                        given[place].requires_grad_()
                    result = held[slot] if flags else model(*given)
                    outputs, paths = ([result], no_paths) if type(result) is plain else flattened(result)
                    if paths != usual_paths or [(output.dtype, output.shape) for output in outputs] != usual:
                        raise OutputRefusedError("the outputs have another form than those of earlier calls")
                    for output in outputs:
                        if not output.is_contiguous():
                            output = output.contiguous()
                        answered.append(output)
                        words.append(output.data_ptr())
            except BaseException as error:  # noqa: BLE001 - untrusted code raises what it likes, SystemExit included
                send(_in_json(number, {"error": _described(error)}))
            else:
                send(words_of("Q", words))

    def _answer(self, number: int, do: Callable[..., dict[str, Any]], *asked: Any) -> bytes:
        try:
            found = do(*asked)
            if self._is_on_device:
                torch.cuda.synchronize()  # what was asked for has happened, on whatever streams
        except BaseException as error:  # noqa: BLE001 - as above
            found = {"error": _described(error)}
        return _in_json(number, found)

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
            positional, named = values.decode(message["arguments"]["tree"], tensors, home=self._module.__name__)
            model = getattr(self._module, self._class_name)(*positional, **named)
            self._models[seed] = model.to(self._memory.device) if self._memory.is_cuda else model
        self._model = self._models[seed]
        return {
            "state": [[name, *_form(tensor), kind] for name, tensor, kind in model_state.state(self._model)],
            "other_items": model_state.num_other_items(self._model),
        }

    def do_first_alike(self, _: dict[str, Any]) -> dict[str, Any]:
        """Which tensors of the state are tied; only ever asked of the reference."""
        return {"first_alike": model_state.first_alike(self._model)}

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
        with _seeds_kept():
            drawn = self._module.get_inputs()
        if isinstance(drawn, torch.Tensor):
            drawn = [drawn]
        if not isinstance(drawn, list | tuple | dict):
            raise OutputRefusedError(f"get_inputs returns a {type(drawn).__name__}, not a list")
        return {"arguments": self._lay_in(([], drawn) if isinstance(drawn, dict) else (drawn, {}), message)}

    def do_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """Learn the form of the inputs that later calls find in the arena, and the places of inputs and outputs."""
        self._inputs = message["inputs"]
        self._input_places = _places(self._inputs["specs"])
        self._slots, self._capacity = message["slots"], message["capacity"]
        self._copies_outputs = message["copies"]
        self._keeps_outputs = keeps_outputs(self._capacity)
        self._takes_tensors_only = values.is_list_of_tensors(self._inputs["tree"], len(self._input_places))
        self._usual_forms = [(getattr(torch, dtype), torch.Size(shape)) for dtype, shape in message["outputs"]]
        are_real = not any(dtype.is_complex for dtype, _ in self._usual_forms)  # others may be conjugated at times
        is_plain = bool(self._usual_forms) and are_real and self._takes_plain_calls
        self._may_answer_shortly = is_plain and not self._copies_outputs
        self._answers_shortly = False
        torch.set_grad_enabled(message["needs_grad_mode"])
        self._with_grad = [place for place, with_grad in enumerate(self._inputs["with_grad"]) if with_grad]
        self._unseen = [[self._view(spec, at + start) for spec, start in self._input_places] for at, _ in self._slots]
        self._objects = [self._new_objects(slot) for slot in range(len(self._slots))]
        return {}

    @property
    def _takes_plain_calls(self) -> bool:
        """Whether there is nothing to be done for a call of the model but to call it."""
        return self._takes_tensors_only and self._precision not in precision.AUTOCAST_DTYPES

    def do_call(self, flags: int, filling: int, slot: int, count: int) -> dict[str, Any]:
        """Call the model once for every slot and hand its outputs over, described in full.

        Where outputs are only to be handed over once more, no model is called: that is what is taken off what is timed.
        """
        self._forget_exchange()
        forms, is_plain = [], self._takes_plain_calls
        for at in range(slot, slot + count):
            if flags & SAME:  # who writes to a tensor raises its version, and the referee has
                torch.autograd.graph.increment_version(self._memory)
            else:
                self._objects[at] = self._new_objects(at)
            if flags & AGAIN:
                result = self._held[slot]
            elif flags & FILL:
                with filled_memory(filling):
                    result = self._called(self._model, self._objects[at])
            else:
                result = self._called(self._model, self._objects[at])
            tensors, paths = self._taken_apart(result)
            if flags & HOLD:
                self._held[at] = tensors[0] if len(tensors) == 1 else tensors
            if not flags & AGAIN:
                self._usual_paths = paths, [""] * len(paths)
            forms.append(self._handed_over((tensors, paths), at))
            is_plain &= not any(tensor.is_conj() or tensor.is_neg() for tensor in tensors)
        # Once described in full, what is like it need not be; a program that was unlike it once is never trusted again.
        self._may_answer_shortly &= is_plain
        self._answers_shortly = self._may_answer_shortly
        return {"outputs": forms, "is_plain": is_plain}

    def do_call_between_events(self, message: dict[str, Any]) -> dict[str, Any]:
        """The calls of one exchange as the device sees them. Outputs are handed over when the time is up."""
        self._forget_exchange()
        answered = {}
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if message["cold"]:
            torch.cuda._sleep(HEAD_START_CYCLES)
        begin.record()
        for slot in message["order"]:
            answered[slot] = self._taken_apart(self._called(self._model, self._objects[slot]))
        end.record()
        torch.cuda.synchronize()
        forms = [self._handed_over(answered[slot], slot) for slot in range(message["count"])]
        return {"outputs": forms, "device_ms": begin.elapsed_time(end)}

    def do_call_in_float64(self, message: dict[str, Any]) -> dict[str, Any]:
        """The truth about rounding: the same model and the inputs of the first slot in double precision.

        What a program asks for in single precision by name is widened too, unless it fails then.
        """
        self._forget_exchange()
        self._objects[0] = self._new_objects(0)
        fields = {name: message[name] for name in ("nudge", "seed", "rounded")}
        model, tensors = precision.in_double(self._model, self._objects[0], **fields)
        found = None
        try:
            with precision.asked_in_double():
                found = self._called(model, tensors, in_double=True)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001 - it needs single precision somewhere
            model, tensors = None, []
        if found is None:
            model, tensors = precision.in_double(self._model, self._new_objects(0), **fields)
            found = self._called(model, tensors, in_double=True)
        outputs, paths = flattened(found)
        form = self._handed_over(([precision.widened(output) for output in outputs], paths), 0)
        if self._memory.is_cuda:  # twice what any other call takes, which the programs to be timed may need
            del model, tensors, found, outputs
            torch.cuda.empty_cache()
        return {"outputs": [form]}

    def do_loaded(self, _: dict[str, Any]) -> dict[str, Any]:
        """What was compiled or captured here: a hint about the track, never about the verdict."""
        frames = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("frames", {})
        kinds = [type(found) for found in gc.get_objects()] if self._memory.is_cuda else []
        # What NVRTC makes is mapped nowhere.
        own_kernel = getattr(sys.modules.get("torch.cuda._utils"), "_CudaKernel", None)
        return {
            "compiled_frames": int(frames.get("ok", 0)),
            "captured_graphs": sum(kind is torch.cuda.CUDAGraph for kind in kinds),
            "own_kernels": sum(kind is own_kernel for kind in kinds),
        }

    def _lay_in(self, arguments: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Lay the tensors of a call's arguments into the arena; returns what else there is to know about them."""
        carries_numbers = message.get("carries_numbers", False)
        tree, tensors = values.encode_all(arguments, carries_numbers=carries_numbers, home=self._module.__name__)
        rows = [[*_form(tensor), list(tensor.stride())] for tensor in tensors]
        specs = [TensorSpec.from_json(row) for row in rows]
        starts, num_bytes = offsets(specs)
        if num_bytes > message["capacity"]:
            raise TooLargeError(f"the inputs take {num_bytes} bytes, {message['capacity']} at most")
        for spec, start, tensor in zip(specs, starts, tensors, strict=True):
            values_in_order = tensor.detach().as_strided((spec.num_items,), (1,))
            self._copy_in(self._host_memory, values_in_order, message["at"] + start)
        return {"tree": tree, "specs": rows, "with_grad": [tensor.requires_grad for tensor in tensors]}

    def _new_objects(self, slot: int) -> list[torch.Tensor]:
        """The inputs that lie in a slot, as tensors that no program has seen.

        Who keeps what was done to others, such as their views, does it anew for these, as for any caller's. They are no
        views of the arena: what is written to them with a gradient is nobody's history but their own.
        """
        given = [tensor.detach() for tensor in self._unseen[slot]]
        for place in self._with_grad:
            given[place].requires_grad_()
        return given

    def _called(self, model: Any, tensors: list[torch.Tensor], *, in_double: bool = False) -> Any:
        plain = self._takes_tensors_only  # then decoding would only cost time
        positional, named = (
            (tensors, {}) if plain else values.decode(self._inputs["tree"], tensors, home=self._module.__name__)
        )
        if in_double or self._precision not in precision.AUTOCAST_DTYPES:
            return model(*positional, **named)
        with precision.autocast(self._precision):
            return model(*positional, **named)

    def _taken_apart(self, result: Any) -> Outputs:
        return flattened(result, widen=self._precision in precision.AUTOCAST_DTYPES)

    def _handed_over(self, outputs: Outputs, slot: int) -> list[list[Any]]:
        """Let the referee have outputs; returns the form of each, its path, and its address unless it was copied."""
        tensors, paths = outputs
        if self._copies_outputs:
            forms = self._copy_out(tensors, self._slots[slot][1])
            return [[*form, path, 0] for form, path in zip(forms, paths, strict=True)]
        plain = [tensor.resolve_conj().resolve_neg().contiguous() for tensor in tensors]
        self._answered[0] += plain
        return [[*_form(tensor), path, tensor.data_ptr()] for tensor, path in zip(plain, paths, strict=True)]

    def _forget_exchange(self) -> None:
        """Let go of what was answered in the exchange before the last, or in the last if outputs are large."""
        if self._keeps_outputs:
            self._answered.reverse()
        self._answered[0].clear()

    def _view(self, spec: TensorSpec, at: int) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if not spec.num_items:
            return torch.empty(spec.shape, dtype=dtype)
        return self._memory[at : at + spec.num_bytes].view(dtype).as_strided(spec.shape, spec.stride)

    def _copy_in(self, memory: torch.Tensor, tensor: torch.Tensor, at: int) -> None:
        if tensor.numel():
            memory[at : at + tensor.nbytes].view(tensor.dtype).copy_(tensor.reshape(-1))

    def _copy_out(self, outputs: list[torch.Tensor], at: int) -> list[list[Any]]:
        end = at + self._capacity
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


def _in_json(number: int, answer: dict[str, Any]) -> bytes:
    return json.dumps({**answer, "id": number}).encode()


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


@contextlib.contextmanager
def _seeds_kept() -> Iterator[None]:
    """Whoever asks for a seed gets none: a problem that seeds itself would draw the same inputs every time."""
    with contextlib.ExitStack() as undone:
        for module in (torch, torch.random, torch.cuda, random, np.random):
            for name in ("manual_seed", "manual_seed_all", "seed"):
                if hasattr(module, name):
                    undone.callback(setattr, module, name, getattr(module, name))
                    setattr(module, name, lambda *_, **__: None)
        yield
