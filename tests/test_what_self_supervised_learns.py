"""Stage self_supervised learns from any success alike, however fast, and replays variants as sft was taught them."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from flows import self_supervised
from flows.engine import Stage
from tasks.params import load_params
from tasks.training.examples import Example
from tasks.variants.prompts import Exemplar
from tests.training_builders import SCALED_BY_CLAMP, SCALED_IN_PLACE, exemplar, policy, problem

ONE = problem("one")
FAST, SLOW = exemplar(SCALED_IN_PLACE, speedup=100.0), exemplar(SCALED_BY_CLAMP, speedup=0.01)
REPLAYED = [replace(each, source=each.source.replace("2.0", "(2.0)")) for each in (FAST, SLOW)]


@pytest.fixture
def learnt(tmp_path) -> Callable[..., Sequence[Example]]:
    """What an iteration trains on, given its successes; half of it is replayed."""
    params = load_params()
    changed = replace(params.self_supervised, steps=250, batch_size=8, replay_share=0.5, exemplar_share=0.0)
    params = replace(params, self_supervised=changed, sft=replace(params.sft, renamed_share=0.0))
    stage = Stage(name="self_supervised", params=params, key="k", folder=tmp_path, run_id="r", started_at=0.0)
    given: list[Sequence[Example]] = []

    def train(function: object, policy: object, examples: Sequence[Example], **_: Any) -> None:
        given.append(examples)

    def learn(successes: Sequence[Exemplar]) -> Sequence[Example]:
        self_supervised._learn(
            stage,
            SimpleNamespace(train=train),
            policy(context_tokens=4000, completion_tokens=600),
            {ONE.problem_id: ONE},
            {ONE.problem_id: REPLAYED},
            {ONE.problem_id: successes},
            1,
            Mock(),
            SimpleNamespace(metered=lambda purpose: nullcontext(Mock())),
        )
        return given[-1]

    return learn


def share(examples: Sequence[Example], text: str, *, of: str) -> float:
    those = [each for each in examples if of in each.completion]
    return sum(text in each.completion for each in those) / len(those)


def test_a_fast_success_is_taught_as_often_as_a_slow_one_and_a_fast_variant_more_often(learnt):
    examples = learnt([FAST, SLOW])
    assert len(examples) == 2000
    assert share(examples, "relu_", of="mul_(2.0)") == pytest.approx(1 / 2, abs=0.06)
    assert share(examples, "relu_", of="mul_((2.0))") == pytest.approx(3.0 / 3.1, abs=0.03)


def test_how_many_examples_are_left_out_is_said(learnt, capsys):
    cut_off = exemplar(SCALED_IN_PLACE + "# and on\n" * 900)  # a sample that came to no end
    examples = learnt([SLOW, cut_off])
    left_out = 2000 - len(examples)
    assert left_out == pytest.approx(500, abs=70)
    assert f"{left_out} of 2000 examples are left out" in capsys.readouterr().err
    learnt([FAST, SLOW])
    assert "left out" not in capsys.readouterr().err
