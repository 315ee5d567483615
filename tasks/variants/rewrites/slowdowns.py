"""Faults in whole steps of a forward: right but slow, right but unfair, or wrong in the result that is handed out.

As in faults.py, every docstring says what is wrong, and what the judge should say.
"""

import random
import re
from collections.abc import Sequence

import libcst as cst

from tasks.variants.rewrites.forward import (
    assignment,
    find_method,
    parse_statements,
    positional_parameters_of,
    returned,
    statements_of,
    with_statements,
)
from tasks.variants.rewrites.places import change_one
from tasks.variants.rewriting import rewrite


@rewrite("faults")
def detour_through_double(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An intermediate is converted to float64 and back: correct, but slow."""
    return _after_one_step(program, rng, "{0} = {0}.double().float()")


@rewrite("faults")
def round_to_half(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An intermediate is kept in half precision: wrong_output, as float32 was promised."""
    return _after_one_step(program, rng, "{0} = {0}.half().float()")


@rewrite("faults")
def clone_needlessly(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A temporary is copied twice for nothing: correct, but slow."""
    return _after_one_step(program, rng, "{0} = {0}.clone().contiguous().clone()")


@rewrite("faults")
def compute_twice(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A step is computed a second time before its result is used: correct, but slow."""
    return _replace_one_step(program, rng, ["{0}_again = {1}", "{0} = {1}", "{0} = ({0} + {0}_again) / 2.0"])


@rewrite("faults")
def loop_over_rows(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A function of single elements is called row by row: correct, but slow. Assumes at least one dimension."""
    by_row = ["{0} = torch.stack([{2}(row) for row in {3}])"]
    return _replace_one_step(program, rng, by_row, only=r"(torch\.(?:relu|sigmoid|tanh|exp|log|abs|sqrt))\((\w+)\)")


@rewrite("faults")
def change_input(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A caller's tensor is changed in place: wrong_output, in the result or in the input that it leaves behind."""
    forward = find_method(program, "forward")
    names = positional_parameters_of(forward) if forward else []
    if forward is None or not names:
        return None
    change = parse_statements(f"{rng.choice(names)}.mul_(0.5)")
    return with_statements(program, forward, [*change, *statements_of(forward)])


@rewrite("faults")
def keep_result(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The first call's result is handed out at every later one: cheated, or wrong_output for new inputs."""
    kept = _with_result(program, ["self.result = {0}", "return self.result"])
    forward = find_method(kept, "forward") if kept else None
    if kept is None or forward is None:
        return None
    begin = parse_statements('if hasattr(self, "result"):\n    return self.result')
    return with_statements(kept, forward, [*begin, *statements_of(forward)])


@rewrite("faults")
def return_zeros(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A result of the right shape and no content: wrong_output."""
    return _with_result(program, ["return torch.zeros_like({0})"])


@rewrite("faults")
def return_wrong_shape(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The result has one dimension too many: wrong_output."""
    return _with_result(program, ["out = {0}", "return out[None]"])


@rewrite("faults")
def forget_return(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Nothing is returned: wrong_output."""
    return _with_result(program, ["out = {0}"])


@rewrite("faults")
def forget_step(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A step is left out whose result a later one reads: crashed, or wrong_output where an older value has its name."""
    return _replace_one_step(program, rng, [])


@rewrite("faults")
def assign_backwards(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """An assignment has its sides exchanged, which is not Python: compile_error."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=cst.Call() as value):
                return node.with_changes(targets=[cst.AssignTarget(value)], value=name)  # type: ignore[arg-type]
        return None

    return change_one(program, rng, change)


def _after_one_step(program: cst.Module, rng: random.Random, line: str) -> cst.Module | None:
    return _replace_one_step(program, rng, ["{0} = {1}", line])


def _replace_one_step(
    program: cst.Module, rng: random.Random, lines: Sequence[str], *, only: str = r"torch\.[^\[\]]*"
) -> cst.Module | None:
    """The program with one assignment exchanged for lines.

    Args:
        lines: "{0}" is the assigned name, "{1}" the value's text, "{2}" and on are the groups of `only`.
        only: what the value's text must match, so that it is known to be a tensor.
    """
    forward = find_method(program, "forward")
    if forward is None:
        return None
    statements = statements_of(forward)
    choices = []
    for place, statement in enumerate(statements[:-1]):
        name_and_value = assignment(statement)
        if name_and_value is not None:
            text = program.code_for_node(name_and_value[1])
            match = re.fullmatch(only, text)
            if match and ".max(" not in text and ".min(" not in text:
                choices.append((place, (name_and_value[0], text, *match.groups())))
    if not choices:
        return None
    place, parts = rng.choice(choices)
    new = parse_statements("\n".join(line.format(*parts) for line in lines))
    return with_statements(program, forward, [*statements[:place], *new, *statements[place + 1 :]])


def _with_result(program: cst.Module, lines: Sequence[str]) -> cst.Module | None:
    """The program with its return exchanged for lines, in which "{0}" is what it returned."""
    forward = find_method(program, "forward")
    value = returned(statements_of(forward)[-1]) if forward else None
    if forward is None or value is None or isinstance(value, cst.Tuple):
        return None
    texts = [line.format(program.code_for_node(value)) for line in lines]
    new = parse_statements("\n".join(texts))
    return with_statements(program, forward, [*statements_of(forward)[:-1], *new])
