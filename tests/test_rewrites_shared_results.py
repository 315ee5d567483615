"""A forward that uses every result twice is rewritten in time that grows with its length, not with its paths."""

from itertools import islice, pairwise

import pytest

from tasks.problems.problem import Problem, Split
from tasks.variants.recipes import RecipeProvider
from tasks.variants.rewrites import rewrites_for
from tests.program_builders import problem, rewritten

STEPS = 24


def doubling(step):
    names = ["x", *(f"x{number}" for number in range(1, STEPS + 1))]
    lines = [f"{new} = {step.format(old)}" for old, new in pairwise(names)]
    return problem("\n".join([*lines, f"return {names[-1]}"]), "torch.randn(64, 64)")


ANY = pytest.mark.parametrize(
    "step",
    ["torch.cat([{0}.flip(0), {0}.flip(1)])[:64]", "torch.relu({0}) + torch.sigmoid({0})", "torch.relu({0}) @ {0}"],
    ids=["called", "elementwise", "multiplied"],
)


@ANY
@pytest.mark.timeout(60)
def test_recipes_for_a_gpu(step):
    asked = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=doubling(step))
    assert len(list(islice(RecipeProvider("cuda").candidates(asked, seed=0), 3))) == 3


@ANY
@pytest.mark.timeout(60)
def test_every_rewrite_for_a_processor(step):
    source = doubling(step)
    assert len([each.name for each in rewrites_for("cpu") if rewritten(source, each)]) > 1
