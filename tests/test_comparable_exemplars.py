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
from tasks.history.exemplars import ExemplarPool
from tasks.params import JudgeParams
from tasks.training import grpo
from tasks.training.policy import save_policy
from tasks.variants.candidate import Candidate
from tests.exact_runs import JudgeByLength
from tests.stage_runs import CLOSED, PROBLEM_ID, candidate_rows, workspace, write_generated, write_rows
from tests.training_builders import policy, verdict

CANDIDATES = [Candidate.from_json(row) for row in candidate_rows()]


class JudgeHere(JudgeByLength):
    environment = {"torch": "2.13.0"}  # noqa: RUF012 - as that of the class above


@contextmanager
def judge_here(params: JudgeParams) -> Iterator[JudgeHere]:
    yield JudgeHere()


@pytest.fixture
def pools(tmp_path, monkeypatch) -> list[ExemplarPool]:
    """A project where contrastive_rl is next, and the pools that its trainings begin with."""
    root = workspace(tmp_path, policy__completion_tokens=384, contrastive_rl__steps=1)
    write_generated(root, candidate_rows())
    write_rows(root / "data/self_supervised/candidates.jsonl", [])
    write_rows(root / "data/self_supervised/verdicts.jsonl", [])
    save_policy(policy(), root / "data/self_supervised/policy")
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
    assert Path("data/contrastive_rl/curve.csv").read_text().count("\n") == 2
    said = capsys.readouterr().err
    left_out = len(CANDIDATES) - len(shown)
    assert ("correct candidates are no exemplars in this run" in said) == bool(left_out)
    assert f"{left_out} correct candidates" in said or not left_out
