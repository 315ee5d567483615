"""What trainings answer to numbers out of range, to batches that do not fit, to a lost judge and to SIGTERM."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from flows import judging
from flows.contrastive_rl import require_apart
from flows.engine import Stage
from flows.judging import Court
from tasks.errors import MachineError, ParamsError, PreemptedError, TrainingError, WorkerError
from tasks.judge.verdict import Verdict
from tasks.params import load_params
from tasks.problems.problem import Problem
from tasks.training import checkpoints as checkpointing
from tasks.training.checkpoints import checkpointed_steps
from tasks.training.early_judging import EarlyJudge
from tasks.training.grpo_trainer import ContrastiveTrainer
from tasks.training.policy import Policy
from tasks.variants.candidate import Candidate
from tests import test_sft
from tests.test_grpo import PROBLEMS, judge_by_length, talkative, train
from tests.training_builders import policy, verdict

FIXED = load_params()


@pytest.fixture(autouse=True)
def saving_every_step(monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)


def weights(made: Policy) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in made.model.parameters()]


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))


class Spoiler:
    """Makes a gradient not finite while it is told to."""

    def __init__(self, made: Policy, value: float) -> None:
        self.is_on = False
        next(made.model.parameters()).register_hook(lambda grad: grad * value if self.is_on else grad)


# Numbers out of range


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=["nan", "inf"])
def test_an_update_whose_gradient_is_not_finite_is_left_out_and_told_of(tmp_path, caplog, value):
    made = talkative()
    spoiler = Spoiler(made, value)
    after: list[list[torch.Tensor]] = []

    def on_rollouts(step: int, *_: object) -> None:
        spoiler.is_on = step == 3

    rows, _ = train(
        tmp_path, made=made, on_rollouts=on_rollouts, on_step=lambda *_: after.append(weights(made)), steps=5
    )
    assert are_equal(after[2], after[1])
    assert not are_equal(after[3], after[2])
    assert [row["step"] for row in rows if "grad_norm" not in row] == [3]
    assert all(bool(weight.isfinite().all()) for weight in weights(made))
    assert "step 3: the gradient's norm is nan; this update is left out" in caplog.text


def test_a_training_that_diverges_ends_with_a_word_and_its_last_good_checkpoint(tmp_path):
    made = talkative()
    spoiler = Spoiler(made, float("nan"))

    def on_rollouts(step: int, *_: object) -> None:
        spoiler.is_on = step >= 3

    with pytest.raises(TrainingError, match=r"step 5: the gradient's norm is nan.*Lower learning_rate"):
        train(tmp_path / "killed", made=made, on_rollouts=on_rollouts, steps=8, exemplars="none")
    assert checkpointed_steps(tmp_path / "killed") == 2
    resumed, _ = train(tmp_path / "killed", steps=8, exemplars="none")
    assert resumed == train(tmp_path / "whole", steps=8, exemplars="none")[0]


def test_weights_that_are_not_finite_are_never_in_a_checkpoint(tmp_path):
    with pytest.raises(TrainingError, match=r"step 2: weights of the policy are not finite any more"):
        test_sft.train(tmp_path, learning_rate=1e38)
    assert checkpointed_steps(tmp_path) <= 1


# Batches that do not fit


def small_memory(made: Policy, rows: int, *, in_backward: bool = False) -> Policy:
    """A policy whose model cannot train on more rows at once."""

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def on_embedded(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if torch.is_grad_enabled() and output.requires_grad and len(output) > rows:
            output.register_hook(refuse) if in_backward else refuse()

    made.model.get_input_embeddings().register_forward_hook(on_embedded)
    return made


@pytest.mark.parametrize("in_backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("updates", [1, 2], ids=["one update", "two updates"])
def test_a_group_that_does_not_fit_is_done_in_parts_to_the_same_gradient(tmp_path, caplog, in_backward, updates):
    whole, tight = talkative(), small_memory(talkative(), 1, in_backward=in_backward)
    expected, _ = train(tmp_path / "whole", made=whole, updates_per_step=updates, steps=2)
    rows, _ = train(tmp_path / "tight", made=tight, updates_per_step=updates, steps=2)
    for one, other in zip(rows, expected, strict=True):
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-4)
        assert one["reward"] == other["reward"]
        assert one["rows_at_once"] == 1
        assert "rows_at_once" not in other
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(weights(tight), weights(whole), strict=True))
    assert "4 rows do not fit into memory" in caplog.text
    assert "2 rows do not fit into memory" in caplog.text


def test_a_batch_of_examples_that_does_not_fit_is_done_in_parts_to_the_same_gradient(tmp_path):
    expected, _ = test_sft.train(tmp_path / "whole")
    rows, _ = test_sft.train(tmp_path / "tight", made=small_memory(policy(), 3, in_backward=True))
    for one, other in zip(rows, expected, strict=True):
        assert one["rows_at_once"] == 2
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-4)
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_a_single_row_that_does_not_fit_ends_training_with_what_to_change(tmp_path):
    with pytest.raises(TrainingError, match=r"update 1: 1 row\(s\) do not fit.*Lower policy\.context_tokens"):
        test_sft.train(tmp_path, made=small_memory(policy(), 0))


# A judge that is gone


@pytest.mark.parametrize("error", [WorkerError("the referee died"), MachineError("no judge is left")], ids=str)
def test_a_judge_that_gives_out_stops_training_at_the_last_whole_step(tmp_path, monkeypatch, error):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    calls = 0

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise error
        return judge_by_length(candidates)

    with pytest.raises(TrainingError, match=rf"step 3: the judge gave out: {error}.*continues with step 3 of 4"):
        train(tmp_path / "killed", judge=judge, exemplars="none")
    assert checkpointed_steps(tmp_path / "killed") == 2
    rows, steps = train(tmp_path / "killed", exemplars="none")
    assert len(steps) == 2
    assert rows == train(tmp_path / "whole", exemplars="none")[0]


# A machine that wants its place back


def ask_to_end(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def during_judging(folder: Path) -> None:
    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        if checkpointed_steps(folder) == 0 and len(begun) == 2:
            ask_to_end()
            released.wait(20)  # far longer than anybody may take
        begun.append(candidates)
        return judge_by_length(candidates)

    begun: list[Sequence[Candidate]] = []
    released = threading.Event()
    # Once the checkpoint is there, the judge may end.
    threading.Thread(target=lambda: (_wait_for(lambda: checkpointed_steps(folder) == 2), released.set())).start()
    train(folder, judge=judge, exemplars="none")


def after_a_step(folder: Path) -> None:
    train(folder, exemplars="none", on_rollouts=lambda step, *_: ask_to_end() if step == 2 else None)


def _wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(400):
        if is_so():
            return
        threading.Event().wait(0.05)


@pytest.mark.parametrize("ask", [during_judging, after_a_step])
def test_sigterm_leaves_a_checkpoint_and_the_same_step_is_next(tmp_path, monkeypatch, ask):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(PreemptedError, match=r"SIGTERM.*the same command continues"):
        ask(tmp_path / "killed")
    assert signal.getsignal(signal.SIGTERM) == before
    assert checkpointed_steps(tmp_path / "killed") == 2
    rows, steps = train(tmp_path / "killed", exemplars="none")
    assert len(steps) == 2
    assert rows == train(tmp_path / "whole", exemplars="none")[0]


def test_sigterm_ends_fine_tuning_too(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    made = policy()
    calls: list[int] = []
    made.model.register_forward_pre_hook(lambda *_: calls.append(0))
    made.model.get_input_embeddings().register_forward_hook(lambda *_: ask_to_end() if _count(calls) == 3 else None)
    with pytest.raises(PreemptedError):
        test_sft.train(tmp_path / "killed", made=made)
    done = checkpointed_steps(tmp_path / "killed")
    assert 0 < done < 8
    rows, seen = test_sft.train(tmp_path / "killed")
    assert seen == list(range(done + 1, 9))
    assert rows == test_sft.train(tmp_path / "whole")[0]


def _count(calls: list[int]) -> int:
    calls.append(0)
    return len(calls)


# Judging while others are still sampled


def test_groups_are_judged_while_later_ones_are_sampled(tmp_path, monkeypatch):
    from tasks.training import grpo_trainer

    judging = threading.Event()
    sample, sampled = grpo_trainer.sample_ids, []

    def sample_ids(*arguments: object, **named: object) -> list[list[list[int]]]:
        if len(sampled) % 2:  # the second group of a step
            assert judging.wait(20), "nobody judges what was sampled before"
        judging.clear()
        sampled.append(arguments)
        return sample(*arguments, **named)

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        judging.set()
        return judge_by_length(candidates)

    monkeypatch.setattr(grpo_trainer, "sample_ids", sample_ids)
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
        with pytest.raises(WorkerError, match="gone"):
            early.judge(candidates("a", "b"))


def test_warnings_are_silent_where_nothing_happens(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="tasks"):
        train(tmp_path, steps=2)
    assert [record for record in caplog.records if record.name.startswith("tasks")] == []


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
    ("device", "ray", "groups_at_once", "is_refused"),
    [
        pytest.param("cpu", None, 2, True, id="the same device"),
        pytest.param("cpu", "local", 2, True, id="the same, through Ray"),
        pytest.param("cpu", "10.0.0.7:6379", 2, False, id="a cluster"),
        pytest.param("cuda", None, 2, False, id="all GPUs, none of which samples"),
        pytest.param("cpu", None, None, False, id="one after the other"),
    ],
)
def test_judging_meanwhile_on_the_device_that_samples_is_refused(monkeypatch, device, ray, groups_at_once, is_refused):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    params = replace(
        FIXED,
        judge=replace(FIXED.judge, device=device, ray=ray),
        contrastive_rl=replace(FIXED.contrastive_rl, groups_at_once=groups_at_once),
    )
    with pytest.raises(ParamsError, match="while others are sampled there") if is_refused else nullcontext():
        require_apart(params)
