"""What a drop-in adds to a class that replays a graph: a shorter look at calls that the drop-in knows already.

Both compare arguments, modes and what parts have before every call. Where a call is like one before, as the drop-in has
just seen, the class is left with what it alone has to look at: device and stream, its own attributes, which a drop-in
compares but in part, and where tensors lie.
"""

import random
from functools import lru_cache
from string import Template

import libcst as cst

from tasks.search.survey import Survey
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.names import exchanged
from tasks.variants.rewrites.cuda_graph import compile_and_replay, replay_as_graph
from tasks.variants.rewrites.forward import find_class, find_method, parameters_of
from tasks.variants.rewriting import ENTRY, ORIGIN
from tasks.variants.text import parsed, text_of_statement

AGAIN = "graph_again"
_KNOWN = "graph_known"
_REPLAYING = (replay_as_graph.name, compile_and_replay.name)
_HELPERS = frozenset({"graph_form", "graph_members", "graph_fits", "graph_replayed"})
_SMALLEST = f"""import torch
import torch.nn as nn


class {ENTRY}(nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.ones(1)]
"""
# What was found goes with the object by which the drop-in knows calls: of that there is another one after every change.
_METHODS = Template("""
class Known:
    def $again(self, $known, *inputs, **named):
        return self.forward(*inputs, **named) if named else self.${known}_in_a_row($known, *inputs)

    def ${known}_in_a_row(self, $known, *inputs, looking=$looking):
        graphs = GRAPHS.get(self)
        if $known is None and graphs is not None:
            graphs.pop("known", None)
        if $known is None or graphs is None or type(self).$looking is not looking:
            return self.$looking(*inputs)
        device = torch._C._cuda_getDevice()
        here = torch._C._cuda_isCurrentStreamCapturing(), device, torch._C._cuda_getCurrentRawStream(device)
        seen, place, own, tensors, addresses, captured = graphs.get("known", (None,) * 6)
        if seen is $known and here == place:
            if captured is None:
                return self.$looking(*inputs)
            if graph_fits(own) and [*map(torch.Tensor.data_ptr, tensors)] == addresses:
                return graph_replayed(captured, inputs)
        outputs = self.$looking(*inputs)
        made = graphs.get(graph_form(self, inputs))
        if made is not None and made is not UNTIMED and graph_fits(made[0]):
            members, _, captured = made
            own = [each for each in members if each[0] is vars(self)]
            held = [each for each in members if each[3] is not None]
            tensors, addresses = [each[2] for each in held], [each[3] for each in held]
            graphs["known"] = $known, here, own, tensors, addresses, captured
        return outputs
""")


def replays_known_calls(candidate: Candidate, facts: Survey, device: str) -> bool:
    """Whether with_known_calls is of use, and nothing is in a replay's way that only its class would have looked at.

    Such as a check that another author has put before it, a value of which the drop-in knows the type alone, or that
    there is no GPU at all.
    """
    forms = (*facts.inputs, *facts.named_inputs.values())
    is_ours = candidate.origin == ORIGIN and bool(candidate.recipe) and candidate.recipe[-1] in _REPLAYING
    is_plain = all(isinstance(form, tuple) and form[0] in ("tensor", "value") for form in forms)
    return is_ours and is_plain and device.startswith("cuda")


def with_known_calls(program: cst.Module) -> cst.Module | None:
    """The program of a candidate with a method more, named AGAIN, of its class; None where there is no use for one.

    That is forward with one argument more in front. Whoever gives the same object there twice knows that in between
    nothing has changed of modes, of what parts have and of tensors but for their elements and where they lie; that
    arguments are of the same forms, those that are no tensors the same; and that gradients are off. Whoever gives None
    knows nothing.
    """
    model, forward = find_class(program), find_method(program, "forward")
    if model is None or forward is None or not _replayed() <= _texts(program):
        return None
    if AGAIN in program.code or _KNOWN in program.code:
        return None
    is_named = find_method(program, "graph_forward") is not None
    again, in_a_row = _methods("graph_forward" if is_named else "forward")
    methods = [_with_more(forward) if is_named else again, in_a_row]
    body = model.body.with_changes(body=[*model.body.body, *map(_apart, methods)])
    return exchanged(program, {model: model.with_changes(body=body)})


def _with_more(forward: cst.FunctionDef) -> cst.FunctionDef:
    """Forward, which names its arguments, with one more in front."""
    kind = "posonly_params" if forward.params.posonly_params else "params"
    own, *others = getattr(forward.params, kind)
    params = forward.params.with_changes(**{kind: [own, cst.Param(cst.Name(_KNOWN)), *others]})
    row = ", ".join((_KNOWN, *parameters_of(forward)))
    answer = cst.parse_statement(f"return {own.name.value}.{_KNOWN}_in_a_row({row})")
    return forward.with_changes(name=cst.Name(AGAIN), params=params, body=cst.IndentedBlock([answer]))


@lru_cache(maxsize=2)
def _methods(looking: str) -> tuple[cst.FunctionDef, ...]:
    text = _METHODS.substitute(looking=looking, known=_KNOWN, again=AGAIN)
    body = cst.ensure_type(parsed(text).body[0], cst.ClassDef).body.body
    return tuple(cst.ensure_type(each, cst.FunctionDef) for each in body)


def _apart(method: cst.FunctionDef) -> cst.FunctionDef:
    return method.with_changes(leading_lines=[cst.EmptyLine(indent=False)])


@lru_cache(maxsize=1)
def _replayed() -> frozenset[str]:
    """What helpers of a replay say, none of which may be another one."""
    program = replay_as_graph.apply(cst.parse_module(_SMALLEST), random.Random(0))
    assert program is not None
    texts = _texts(laid_out(program))
    assert len(texts) == len(_HELPERS)
    return texts


def _texts(program: cst.Module) -> frozenset[str]:
    helpers = (each for each in program.body if isinstance(each, cst.FunctionDef) and each.name.value in _HELPERS)
    return frozenset(text_of_statement(each).strip() for each in helpers)
