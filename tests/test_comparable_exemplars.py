"""Prompts of contrastive_rl show speedups that were found on such a device, by such a protocol, and no others."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.contrastive_rl import contrastive_rl
from flows.engine import run_stage
from flows.parts import judging
from flows.parts.journal import read_rows
from tasks.history.exemplars import ExemplarPool
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.training import checkpoints, grpo
from tasks.training.policy import save_policy
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import RolloutScorer
from tasks.variants.candidate import Candidate
from tests.exact_runs import JudgeByLength
from tests.stage_runs import CLOSED, PROBLEM_ID, candidate_rows, workspace, write_generated, write_rows
from tests.test_grpo import talkative
from tests.training_builders import verdict

CANDIDATES = [Candidate.from_json(row) for row in candidate_rows()]


class JudgeHere(JudgeByLength):
    environment = {"torch": "2.13.0"}  # noqa: RUF012 - as that of the class above

    def judge(self, problem: Problem, candidate: Candidate, **_: Any) -> Verdict:
        return replace(super().judge(problem, candidate), environment=self.environment)


class JudgeThere(JudgeHere):
    """Another device, on which all is half as fast."""

    device = "another"

    def judge(self, problem: Problem, candidate: Candidate, **_: Any) -> Verdict:
        here = super().judge(problem, candidate)
        there = verdict(candidate, speedup=here.speedup and here.speedup / 2)
        return replace(there, device=self.device, environment=self.environment)


@contextmanager
def judge_here(params: JudgeParams) -> Iterator[JudgeHere]:
    yield JudgeHere()


@contextmanager
def judge_there(params: JudgeParams) -> Iterator[JudgeThere]:
    yield JudgeThere()


@pytest.fixture
def pools(tmp_path, monkeypatch) -> list[ExemplarPool]:
    """A project where contrastive_rl is next, and the pools that its trainings begin with."""
    root = workspace(tmp_path, policy__completion_tokens=384, contrastive_rl__steps=2)
    write_generated(root, candidate_rows())
    write_rows(root / "data/self_supervised/candidates.jsonl", [])
    write_rows(root / "data/self_supervised/verdicts.jsonl", [])
    save_policy(talkative(), root / "data/self_supervised/policy")
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(judging, "open_judge", judge_here)
    given = []
    train = grpo.train_grpo

    def watched(policy: Any, problems: Any, pool: ExemplarPool, *others: Any, **named: Any) -> Any:
        given.append([each.speedup for each in pool.of(PROBLEM_ID)])
        return train(policy, problems, pool, *others, **named)

    monkeypatch.setattr(grpo, "train_grpo", watched)
    return given


HERE = {"device": "test", "protocol": "test", "environment": {"torch": "2.13.0"}}


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        pytest.param([HERE, HERE], [3.0, 2.0], id="both here"),
        pytest.param([HERE | {"device": "another"}, HERE], [2.0], id="another device"),
        pytest.param([HERE, HERE | {"protocol": "older"}], [3.0], id="an older protocol"),
        pytest.param([HERE, HERE | {"environment": {"torch": "2.12.0"}}], [3.0], id="another version"),
        pytest.param([HERE | {"device": "another"}] * 2, [], id="none here"),
    ],
)
def test_the_pool_begins_with_what_can_be_compared(pools, capsys, found, shown):
    verdicts = [
        replace(verdict(candidate, speedup=speedup), **where)
        for candidate, speedup, where in zip(CANDIDATES, (3.0, 2.0), found, strict=True)
    ]
    write_rows(Path("data/filter_variants/verdicts.jsonl"), (each.to_json() for each in verdicts))
    run_stage("contrastive_rl", contrastive_rl)
    assert pools == [shown]
    assert Path("data/contrastive_rl/curve.csv").read_text().count("\n") == 3
    said = capsys.readouterr().err
    left_out = len(CANDIDATES) - len(shown)
    assert ("correct candidates are no exemplars in this run" in said) == bool(left_out)
    assert f"{left_out} correct candidates" in said or not left_out


def test_a_run_that_moves_begins_with_what_it_finds_where_it_is(pools, monkeypatch):
    """Its checkpoint's scale is of the device before; so are the verdicts that its journal holds."""
    monkeypatch.setattr(checkpoints, "INTERVAL_S", 0.0)
    here = replace(verdict(CANDIDATES[0], speedup=3.0), **HERE)
    write_rows(Path("data/filter_variants/verdicts.jsonl"), [here.to_json()])
    scales, shown = [], []
    scale_of = grpo._reward_scale

    def noted(problems: Any, pool: ExemplarPool, **named: Any) -> RewardScale:
        scale = scale_of(problems, pool, **named)
        scales.append(scale.state_dict())
        shown.append({each.problem_id: [one.speedup for one in pool.of(each.problem_id)] for each in problems})
        return scale

    monkeypatch.setattr(grpo, "_reward_scale", noted)
    score, steps = RolloutScorer.score, []

    def interrupted(self: RolloutScorer, completions: Any) -> Any:
        steps.append(completions)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return score(self, completions)

    with monkeypatch.context() as patch:
        patch.setattr(RolloutScorer, "score", interrupted)
        with pytest.raises(SystemExit):
            run_stage("contrastive_rl", contrastive_rl)
    monkeypatch.setattr(judging, "open_judge", judge_there)
    run_stage("contrastive_rl", contrastive_rl)
    assert pools[0] == [3.0]
    found = [Verdict.from_json(row) for row in read_rows(Path("data/contrastive_rl/verdicts.jsonl"))]
    assert {each.device for each in found} == {"another"}
    moved = [(problem_id, speedup) for problem_id, speedups in shown[1].items() for speedup in speedups]
    assert moved, "the first step found nothing, and there is nothing to compare"
    assert set(moved) <= {(each.problem_id, each.speedup) for each in found}
    of_pool = RewardScale(clip=1.5)
    for problem_id, speedup in moved:
        of_pool.observe(problem_id, speedup)
    assert scales[1] == of_pool.state_dict()
