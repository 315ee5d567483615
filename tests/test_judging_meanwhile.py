"""Groups are judged while others are still sampled, by a judge that is waited for."""

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from flows.contrastive_rl import contrastive_rl
from flows.engine import Stage
from flows.parts import judging
from flows.parts.judging import Court
from flows.parts.launching import require_apart
from tasks.errors import ParamsError, PreemptedError, WorkerError
from tasks.judge.verdict import Verdict
from tasks.params import load_params
from tasks.problems.problem import Problem
from tasks.training import generation
from tasks.training.early_judging import EarlyJudge, JudgeLostError
from tasks.training.grpo_trainer import ContrastiveTrainer
from tasks.variants.candidate import Candidate
from tests.test_grpo import PROBLEMS, judge_by_length, train
from tests.training_builders import verdict

FIXED = load_params()


def test_groups_are_judged_while_later_ones_are_sampled(tmp_path, monkeypatch):
    judging = threading.Event()
    sample, sampled = generation.sample_ids, []

    def sample_ids(*arguments: object, **named: object) -> list[list[list[int]]]:
        if len(sampled) % 2:  # the second group of a step
            assert judging.wait(20), "nobody judges what was sampled before"
        judging.clear()
        sampled.append(arguments)
        return sample(*arguments, **named)

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        judging.set()
        return judge_by_length(candidates)

    monkeypatch.setattr(generation, "sample_ids", sample_ids)
    train(tmp_path, judge=judge, groups_at_once=1)
    assert len(sampled) == 8


def test_what_is_judged_early_is_what_would_be_judged_late(tmp_path, monkeypatch):
    early, one = train(tmp_path / "early", groups_at_once=1)
    monkeypatch.setattr(ContrastiveTrainer, "_hand_over", lambda *_: None)
    late, other = train(tmp_path / "late", groups_at_once=1)
    assert early == late
    assert one == other


def candidates(*texts: str) -> list[Candidate]:
    return [Candidate(problem_id="level1/one", source=text, origin="test") for text in texts]


def test_each_text_is_judged_once_in_the_order_it_was_handed_over():
    calls: list[list[str]] = []

    def judge(asked: Sequence[Candidate]) -> list[Verdict]:
        calls.append([each.source for each in asked])
        return [verdict(each, speedup=float(len(each.source))) for each in asked]

    with EarlyJudge(judge) as early:
        early.hand_over(candidates("a", "bb", "a"))
        early.hand_over(candidates("bb", "ccc"))
        found = early.judge(candidates("dddd", "ccc", "a"))
        assert [each.speedup for each in found] == [4.0, 3.0, 1.0]
        early.judge(candidates("a"))
    assert calls == [["a", "bb"], ["ccc"], ["dddd"], ["a"]]


def test_what_an_early_judge_raises_is_raised_where_verdicts_are_asked_for():
    def judge(asked: Sequence[Candidate]) -> list[Verdict]:
        raise WorkerError("gone")

    with EarlyJudge(judge) as early:
        early.hand_over(candidates("a"))
        with pytest.raises(JudgeLostError, match="gone"):
            early.judge(candidates("a", "b"))


class PatientlyAwaited:
    """A judge that cannot be reached at first."""

    device, protocol, workers = "test", "test", 1
    environment: ClassVar[dict[str, str]] = {}

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.asked = threading.Event()

    def judge(self, problem: Problem, candidate: Candidate, **_: object) -> Verdict:
        self.asked.set()
        self.left -= 1
        if self.left >= 0:
            raise WorkerError("nobody answers")
        return verdict(candidate, speedup=2.0)


@pytest.fixture
def court_of(tmp_path, monkeypatch) -> Callable[[PatientlyAwaited], Court]:
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text("stages: {contrastive_rl: {params: [seed]}}")
    folder = tmp_path / "work"
    stage = Stage(name="contrastive_rl", params=FIXED, key="k", folder=folder, run_id="run-1", started_at=1.7e9)
    return lambda judge: Court(stage, judge, {"level1/one": PROBLEMS[0]}, known=(), journal="v", workers=1)


@pytest.mark.parametrize(("failures", "is_reached"), [(5, True), (6, False)])
def test_a_judge_that_cannot_be_reached_is_tried_for_a_minute(court_of, monkeypatch, failures, is_reached):
    waited: list[float] = []
    court = court_of(PatientlyAwaited(failures))
    monkeypatch.setattr(court._closing, "wait", waited.append)
    if is_reached:
        assert [each.speedup for each in court.judge(candidates("a"))] == [2.0]
    else:
        with pytest.raises(WorkerError, match="nobody answers"):
            court.judge(candidates("a"))
    court.close()
    assert waited == [2.0, 4.0, 8.0, 16.0, 32.0]


def test_who_waits_for_a_judge_stops_waiting_when_the_court_closes(court_of, monkeypatch):
    monkeypatch.setattr(judging, "RETRY_DELAY_S", 1e4)
    judge = PatientlyAwaited(100)
    court = court_of(judge)
    with pytest.raises(PreemptedError), EarlyJudge(court.judge) as early:  # noqa: PT012 - what is left is the point
        early.hand_over(candidates("a", "b"))
        assert judge.asked.wait(20)
        raise PreemptedError
    court.close()
    early._thread.shutdown()  # for good: it would take hours otherwise
    assert judge.left == 99


@pytest.mark.parametrize(
    ("processes", "device", "ray", "groups_at_once", "is_refused"),
    [
        pytest.param(None, "cpu", None, 2, True, id="the same device"),
        pytest.param(None, "cpu", "local", 2, True, id="the same, through Ray"),
        pytest.param(None, "cpu", "10.0.0.7:6379", 2, False, id="a cluster"),
        pytest.param(None, "cuda", None, 2, False, id="all GPUs, none of which samples"),
        pytest.param(None, "cpu", None, None, False, id="one after the other"),
        pytest.param(2, "cuda:1", None, 2, True, id="the second process's GPU"),
        pytest.param(2, "cuda", None, 2, True, id="all GPUs, two of which sample"),
        pytest.param(2, "cuda:2", None, 2, False, id="a GPU of its own"),
    ],
)
def test_judging_meanwhile_on_a_device_that_samples_is_refused(
    monkeypatch, processes, device, ray, groups_at_once, is_refused
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: processes is not None)
    params = replace(
        FIXED,
        engine=replace(FIXED.engine, processes=processes or 1),
        judge=replace(FIXED.judge, device=device, ray=ray),
        contrastive_rl=replace(FIXED.contrastive_rl, groups_at_once=groups_at_once),
    )
    with pytest.raises(ParamsError, match="while others are sampled there") if is_refused else nullcontext():
        require_apart(params)


def test_the_stage_that_does_so_refuses_it_before_it_reads_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    params = replace(FIXED, contrastive_rl=replace(FIXED.contrastive_rl, groups_at_once=1))
    with pytest.raises(ParamsError, match="groups would be judged on cpu while others are sampled there"):
        contrastive_rl(Stage(name="any", params=params, key="k", folder=tmp_path, run_id="run-1", started_at=1.7e9))
