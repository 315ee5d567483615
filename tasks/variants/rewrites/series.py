"""Loops over the terms of a series: evaluated backwards, or known to the library by name."""

import math
import random

import libcst as cst

from tasks.variants.rewrites.blocks import block_rule, replace_block
from tasks.variants.rewrites.conditions import numbers
from tasks.variants.rewrites.matching import Match, unify
from tasks.variants.rewrites.reading import Reader
from tasks.variants.rewriting import rewrite

_SERIES = """
    _term = torch.ones_like(_y)
    _total = torch.ones_like(_y)
    for _k in range(1, _n):
        _term = _term * _y / (_k * _k)
        _total = _total + _term
"""
_DIGAMMA = """
    _x = torch.abs(_z) + _c
    _total = torch.zeros_like(_x)
    for _k in range(_n):
        _total = _total + 1.0 / _x
        _x = _x + 1.0
"""
_QUARTER_SQUARE = Reader().read(cst.parse_expression("0.25 * torch.clamp(torch.abs(_v), max=_c) ** 2"))
_ROUNDING = 1e-7


@rewrite("algebra")
def evaluate_series_backwards(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A power series is evaluated by Horner's rule, which needs no running term. Assumes a number of terms."""
    replacement = """
        _total = torch.ones_like(_y)
        for _k in range(_m, 0, -1):
            _total = _total * _y / (_k * _k) + 1.0
    """
    return replace_block(program, rng, [block_rule(_SERIES, replacement, when=numbers("n"), given=_last_index)])


@rewrite("memory")
def evaluate_series_in_place(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A power series is evaluated by Horner's rule in one tensor. Assumes a number of terms and only a forward pass."""
    replacement = """
        _total = torch.ones_like(_y)
        for _k in range(_m, 0, -1):
            _total.mul_(_y).div_(_k * _k).add_(1.0)
    """
    return replace_block(program, rng, [block_rule(_SERIES, replacement, when=numbers("n"), given=_last_index)])


@rewrite("fusion")
def call_bessel(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The series of y^k / k!^2 is torch.special.i0(2 sqrt(y)).

    Assumes y = x^2 / 4 with an x that is clamped so that the terms left out are below rounding.
    """
    rule = block_rule(_SERIES, "_total = torch.special.i0(2.0 * torch.sqrt(_y))", when=_has_converged)
    return replace_block(program, rng, [rule])


@rewrite("fusion")
def call_digamma(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Recurrence and asymptotic series together are torch.digamma. Assumes at least 6 steps, from a positive start."""
    asymptotic = """
    _y = 1.0 / (_x * _x)
    _out = torch.log(_x) - 0.5 / _x - _y * (1.0 / 12.0 - _y * (1.0 / 120.0 - _y / 252.0))
    _r = _out - _total
"""
    rule = block_rule(_DIGAMMA + asymptotic, "_r = torch.digamma(torch.abs(_z) + _c)", when=_starts_positive)
    return replace_block(program, rng, [rule])


def _last_index(match: Match) -> dict[str, str]:
    return {"_m": repr(int(match.number("_n") or 1) - 1)}


def _starts_positive(match: Match) -> bool:
    start, steps = match.number("_c"), match.number("_n")
    return start is not None and start > 0 and steps is not None and steps >= 6


def _has_converged(match: Match) -> bool:
    """Whether y is a quarter of the square of something clamped, and the first term left out is below rounding."""
    terms = match.number("_n")
    held = match.view.definitions.get(match.holes["_y"].head)
    if held is None or terms is None:
        return False
    for found, _, _ in unify(_QUARTER_SQUARE, held):
        bound = found["_c"].number
        if bound is not None:
            series = [(bound * bound / 4) ** k / math.factorial(k) ** 2 for k in range(int(terms) + 1)]
            return series[-1] < _ROUNDING * sum(series)
    return False
