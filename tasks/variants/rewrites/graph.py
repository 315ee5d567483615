"""Rewrites that let torch.compile capture a graph. torch.jit is left out: torch has deprecated it in favour of this.

They compile functions rather than wrap modules, so that parameters keep their names. A compilation takes a second.
"""

import random
import re

import libcst as cst

from tasks.variants.names import names_bound_in
from tasks.variants.rewrites.forward import (
    assignment,
    find_method,
    parameters_of,
    parse_statements,
    returned,
    statements_of,
    with_statements,
    writes_in_place,
)
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

_COMPILED = re.compile(r"torch\.compile|ctypes")
# What a compiler hands to the same library as before, so that capturing it gains nothing.
_HEAVY = re.compile(
    r"\b(matmul|mm|bmm|linear|conv\w*|einsum|addmm|baddbmm|scaled_dot_product_attention|self\.\w+)\(| @ "
)


@rewrite("graph")
def compile_forward(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The whole forward is compiled. Assumes that it does the same for all inputs of one shape."""
    return compiled(program, "torch.compile")


@rewrite("graph")
def compile_forward_static(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """As compile_forward, anew for every shape that comes in. Assumes few different shapes."""
    return compiled(program, "torch.compile(dynamic=False)")


@rewrite("graph")
def compile_forward_whole(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """As compile_forward, in one graph or not at all. Assumes that nothing in it forces a break."""
    return compiled(program, "torch.compile(fullgraph=True)")


@rewrite("graph")
def compile_tail(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """What follows the last matrix product or convolution is compiled as a function of its own.

    Assumes that those two run as fast uncompiled, and that at least two operations follow.
    """
    forward = find_method(program, "forward")
    if forward is None or _COMPILED.search(text_of(program)) or writes_in_place(forward):
        return None
    statements = statements_of(forward)
    texts = [program.code_for_node(statement) for statement in statements]
    heavy = [place for place, text in enumerate(texts) if _HEAVY.search(text)]
    start = heavy[-1] + 1 if heavy else 0
    tail = statements[start:]
    if not heavy or len(tail) < 2 or any(assignment(s) is None for s in tail[:-1]) or returned(tail[-1]) is None:
        return None
    known = {*parameters_of(forward), *names_bound_in(statements[:start])}
    return _with_tail(program, forward, start, known)


def compiled(program: cst.Module, decorator: str, *, unless: re.Pattern[str] = _COMPILED) -> cst.Module | None:
    """The program with its forward decorated, unless something else decorates it or the text has what is given."""
    forward = find_method(program, "forward")
    if forward is None or forward.decorators or unless.search(text_of(program)):
        return None
    decorated = forward.with_changes(decorators=[cst.Decorator(cst.parse_expression(decorator))])
    changed = program.deep_replace(forward, decorated)
    assert isinstance(changed, cst.Module)
    return changed


def _with_tail(program: cst.Module, forward: cst.FunctionDef, start: int, known: set[str]) -> cst.Module | None:
    """The program with the statements from `start` on in a compiled function; `known` are the names bound before."""
    text = "".join(program.code_for_node(statement) for statement in statements_of(forward)[start:])
    attributes = list(dict.fromkeys(re.findall(r"\bself\.(\w+)", text)))
    names = list(dict.fromkeys(name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text) if name in known))
    if set(attributes) & {*names, *(name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))}:
        return None
    body = re.sub(r"\bself\.", "", text)
    lines = "".join(f"    {line.strip()}\n" for line in body.splitlines())
    function = parse_statements(f"@torch.compile\ndef tail({', '.join([*names, *attributes])}):\n{lines}")
    arguments = ", ".join([*names, *(f"self.{attribute}" for attribute in attributes)])
    call = parse_statements(f"return tail({arguments})")
    changed = with_statements(program, forward, [*statements_of(forward)[:start], *call])
    at = next(place for place, statement in enumerate(changed.body) if isinstance(statement, cst.ClassDef))
    return changed.with_changes(body=[*changed.body[:at], *function, *changed.body[at:]])
