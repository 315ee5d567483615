"""What happens by chance for one draw of its inputs makes no problem degenerate."""

import pytest

from tasks.judge.examine import examine_problem
from tests.judge_builders import problem_of

SOURCE = """
import itertools

import torch
import torch.nn as nn

MEANS = itertools.chain(FIRST_MEANS, itertools.repeat(2.0))


class Model(nn.Module):
    def forward(self, x):
        return x.mean()


def get_inputs():
    x = torch.randn(64, 64)
    return [x - x.mean() + next(MEANS)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("first_means", "is_bad"),
    [
        pytest.param([1.0, 3.0], False, id="one loss is 1"),
        pytest.param([3.0, 3.0, 4.0], False, id="two losses are the same"),
        pytest.param([2.0], True, id="all are the same"),
    ],
)
def test_one_coincidence_is_not_enough(first_means: list[float], is_bad: bool) -> None:
    findings = examine_problem(problem_of(SOURCE.replace("FIRST_MEANS", str(first_means))))
    assert any(finding.is_fatal for finding in findings) == is_bad, findings
