"""Kernels in C are not written for what they would compute wrongly."""

import random

import pytest

from tasks.variants.rewrites.kernel import (
    cumulation_in_c,
    elementwise_in_c,
    recurrence_in_c,
    reduction_in_c,
    series_in_c,
)
from tasks.variants.rewriting import Rewrite, as_candidate_program
from tests.program_builders import MATRIX, MOVING_AVERAGE, SERIES, problem, rewritten


@pytest.mark.parametrize(
    ("rewrite", "source"),
    [
        (elementwise_in_c, problem("return torch.relu(x)", MATRIX)),
        (elementwise_in_c, problem("return torch.matmul(x, x.t())", MATRIX)),
        (elementwise_in_c, problem("x.mul_(2.0)\nreturn torch.relu(x) + 1.0", MATRIX)),
        (elementwise_in_c, problem("return torch.relu(x) + 1.0", "torch.load('x.pt')")),
        (elementwise_in_c, problem("return x * 2 + 1", "torch.randint(0, 9, (4, 4))")),
        (elementwise_in_c, problem("return torch.relu(x.reshape(-1) * 2.5) + 0.5", "torch.randint(0, 9, (4, 4))")),
        (elementwise_in_c, problem("return torch.relu(x.T * 2.5) + 0.5", "torch.randint(0, 9, (4, 4))")),
        (elementwise_in_c, problem("return torch.relu((x > 0).t() * 2.5) + 0.5", MATRIX)),
        (elementwise_in_c, problem("return torch.relu(x * 2.5) + 0.5", "torch.randint(0, 9, (20,)).view(4, 5)")),
        (elementwise_in_c, problem("return torch.where(y, x, x + 1.0)", f"{MATRIX}, {MATRIX} > 0", arguments="x, y")),
        (elementwise_in_c, problem("return (x + 1.0) * 2.0 > 0.5", MATRIX)),
        (elementwise_in_c, problem("if x.sum() > 0:\n    x = x + 1.0\nreturn torch.relu(x) * 2.0", MATRIX)),
        (reduction_in_c, problem("return torch.sum(x > 0, dim=1)", MATRIX)),
        (reduction_in_c, problem("return torch.max(x, dim=1)", MATRIX)),
        (reduction_in_c, problem("return x - torch.mean(x, dim=1)", "torch.randn(8, 8)")),
        (
            reduction_in_c,
            problem("return torch.sum(torch.sum(x * x, dim=1, keepdim=True) * x, dim=0)", "torch.randn(8, 8)"),
        ),
        (reduction_in_c, problem("return torch.softmax(x * 2.0, int(x[0, 0] > 0))", MATRIX)),
        (reduction_in_c, problem("return torch.sum(x * 2.0, int(x[0, 0] > 0))", MATRIX)),
        (reduction_in_c, problem("return torch.norm(x, 1, dim=1)", MATRIX)),
        (reduction_in_c, problem("return torch.linalg.norm(x, 2)", "torch.randn(8, 8)")),
        (
            series_in_c,
            problem(
                SERIES.replace("range(1, 12)", "range(1, self.n)"), MATRIX, init="self.n = size0", init_arguments="9"
            ),
        ),
        (series_in_c, problem(SERIES.replace("term * y", "torch.matmul(term, y)"), "torch.randn(4, 4)")),
        (cumulation_in_c, problem("return torch.cumsum(x, dim=1, dtype=torch.float64)", MATRIX)),
        (recurrence_in_c, problem(MOVING_AVERAGE.replace("0.9 * h", "torch.matmul(h, h.t())"), "torch.randn(4, 4, 4)")),
        (recurrence_in_c, problem(MOVING_AVERAGE.replace("x.shape[1])", "x.shape[1] - 1)"), MATRIX)),
        (recurrence_in_c, problem(MOVING_AVERAGE.replace("dim=1", "dim=0"), MATRIX)),
    ],
    ids=[
        "one operation",
        "nothing elementwise",
        "in place",
        "unknown shape",
        "integers",
        "integers moved",
        "integers transposed",
        "a mask transposed",
        "integers that come moved",
        "boolean mask",
        "boolean result",
        "branch",
        "count",
        "pair",
        "misaligned",
        "two dimensions reduced",
        "a dimension unknown",
        "a dimension summed over unknown",
        "another norm",
        "a norm of a matrix",
        "unknown bounds",
        "not elementwise",
        "another dtype",
        "state is mixed",
        "not all steps",
        "stacked elsewhere",
    ],
)
def test_a_rewrite_stays_away_from_what_it_cannot_compute(rewrite: Rewrite, source: str) -> None:
    assert rewritten(source, rewrite) is None


def test_there_is_one_kernel_to_a_candidate() -> None:
    program = as_candidate_program(problem("return torch.relu(x) * 2.0", MATRIX))
    once = elementwise_in_c.apply(program, random.Random(0))
    assert once is not None
    assert elementwise_in_c.apply(once, random.Random(0)) is None
