"""What is computed with blocks, once on small ones: CuPy compiles an operation at its first use.

That takes up to a second each, once on a machine since CuPy keeps them, and nobody should wait for it in a turn of the
device.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tasks.judge import equality
from tasks.judge.changed_inputs import change_mismatch
from tasks.judge.close_look import CloseLook, compare_closely
from tasks.judge.degenerate import effortless_answers
from tasks.judge.distributions import DISTRIBUTIONS, domains, mixed, transformed
from tasks.judge.right_answers import RightAnswers
from tasks.judge.wire import TensorSpec, offsets

SPEC = TensorSpec.from_json(["float32", [64, 64]])
SEVERAL = [TensorSpec.from_json([dtype, [3_000]]) for dtype in ("float32", "int64")]
"""Outputs whose rows are in no one piece, nor cut into equal ones."""


def compile_all(placed: Callable[[np.ndarray], np.ndarray]) -> None:
    """Draw, move and compare small blocks in every way.

    Args:
        placed: puts a block where blocks are.
    """
    rng = np.random.default_rng(0)
    for draw in (rng.standard_normal, rng.random, np.ones):
        blocks = [np.asarray(draw(SPEC.num_items), dtype=np.float32).view(np.uint8) for _ in range(3)]
        where = domains(blocks, [SPEC])
        one, other = (placed(block) for block in blocks[:2])
        for name in DISTRIBUTIONS:
            equality.is_same(transformed(one, [SPEC], where, name, rng), one)
        mixed(one, other, [SPEC], where, rng)
        _compare_in_every_way(one, other)
        for _, answer in effortless_answers(one, other, [SPEC]):
            equality.compare(answer, one, [SPEC], [1e-6])
    whole = rng.integers(0, 2, offsets(SEVERAL)[1], dtype=np.uint8)
    for specs, block in ([SPEC], one), (SEVERAL, placed(whole)):
        _compare_together(np.stack([block, block]), specs)


def _compare_together(rows: np.ndarray, specs: Sequence[TensorSpec]) -> None:
    equality.quick_errors(rows, rows, specs, [1e-6] * len(specs))
    equality.are_same(rows, list(rows))
    answers = RightAnswers(specs)
    answers.add(list(rows), list(rows))
    answers.has(rows[0], rows[1])


def _compare_in_every_way(one: np.ndarray, other: np.ndarray) -> None:
    exact = one.view(np.float32).astype(np.float64).view(np.uint8)
    look = CloseLook(exact, [SPEC])
    look.add(exact)
    for ours in (one, other):
        equality.own_errors(ours, exact, [SPEC])
        equality.compare(ours, one, [SPEC], [1e-6])
        equality.compare(exact, exact, equality.widened([SPEC]), [1e-6])
        equality.differ_grossly(ours, one, [SPEC])
        equality.rows_agree(ours, one, [SPEC])
        change_mismatch(ours, one, other, SPEC)
        compare_closely(ours, one, [SPEC], look, by_row=True, by_value=True)
    for block in (one, exact):
        equality.is_as_finite(block, block, [SPEC])
        equality.has_numbers(block, [SPEC])
