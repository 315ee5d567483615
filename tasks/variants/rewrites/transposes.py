"""Algebra of transpositions: cancelled, or moved behind what they commute with."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import ranks
from tasks.variants.rewrites.forward import find_method, writes_in_place
from tasks.variants.rewrites.rules import replace_all, replace_one, rule
from tasks.variants.rewriting import rewrite


@rewrite("algebra")
def multiply_from_the_left(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Linear layers on a transposed tensor multiply from the left instead, with what lies between them.

    Assumes that the layers have biases, and that nothing but x * sigmoid(x), F.silu or torch.relu lies between them.
    """
    left = "torch.matmul({w}, {x}) + {b}[:, None]"
    inner = left.format(w="_v", x="_x", b="_c")
    condition = ranks(v=2, c=1, w=2, b=1)
    before = "F.linear(_x.mT, _v, _c)"
    rules = [
        rule(
            f"F.linear({between.format(before)}, _w, _b).mT",
            f"inner = {inner}\n{left.format(w='_w', x=after, b='_b')}",
            when=condition,
        )
        for between, after in (
            ("{0} * torch.sigmoid({0})", "inner * torch.sigmoid(inner)"),
            ("F.silu({0})", "F.silu(inner)"),
            ("torch.relu({0})", "torch.relu(inner)"),
        )
    ]
    rules.append(rule(f"{before}.mT", inner, when=ranks(v=2, c=1)))
    return replace_one(program, rng, rules)


@rewrite("algebra")
def cancel_transposes(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A tensor transposed twice is the tensor. Assumes that forward writes in place nowhere, which is checked."""
    forward = find_method(program, "forward")
    if forward is None or writes_in_place(forward):
        return None
    return replace_all(program, rng, [rule("_x.mT.mT", "_x")])
