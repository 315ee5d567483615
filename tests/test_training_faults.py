"""What trainings answer to numbers out of range, to a lost judge and to SIGTERM."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from transformers import TrainerControl, TrainerState, TrainingArguments

from tasks.errors import HistoryBusyError, MachineError, PreemptedError, TrainingError, WorkerError
from tasks.judge.verdict import Verdict
from tasks.params import EngineParams
from tasks.training import checkpoints as checkpointing
from tasks.training import team
from tasks.training.checkpoints import CheckpointCallback, checkpointed_steps, settle
from tasks.training.policy import Policy
from tasks.training.sft import _CompletionTrainer
from tasks.training.turns import own_turns
from tasks.variants.candidate import Candidate
from tests import test_sft
from tests.test_grpo import judge_by_length, talkative, train
from tests.training_builders import policy


@pytest.fixture(autouse=True)
def saving_every_step(monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[dict[str, float]]:
    """Rows of a training that nothing interrupts."""
    return train(tmp_path_factory.mktemp("whole"), exemplars="none")[0]


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
    with pytest.raises(TrainingError, match=r"step 1: weights of the policy are not finite any more"):
        test_sft.train(tmp_path, learning_rate=1e38)
    assert checkpointed_steps(tmp_path) <= 1


def test_a_checkpoint_that_a_lost_judge_asks_for_is_not_whole_either(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    made = talkative()

    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        if any(rounds):
            with torch.no_grad():
                next(made.model.parameters()).fill_(float("nan"))
            raise WorkerError("the referee died")
        rounds.append(True)
        return judge_by_length(candidates)

    rounds: list[bool] = []
    with pytest.raises(TrainingError, match=r"step 1: weights of the policy are not finite any more"):
        train(tmp_path, made=made, judge=judge, exemplars="none")
    assert checkpointed_steps(tmp_path) == 0


def test_a_loss_that_is_not_finite_is_missing_in_its_own_row_only(tmp_path, monkeypatch):
    compute_loss = _CompletionTrainer.compute_loss

    def spoilt(trainer, *arguments, **named):
        return compute_loss(trainer, *arguments, **named) * (float("nan") if trainer.state.global_step == 2 else 1.0)

    monkeypatch.setattr(_CompletionTrainer, "compute_loss", spoilt)
    rows, _ = test_sft.train(tmp_path, steps=5)
    assert [row["step"] for row in rows if "loss" not in row] == [3]


@pytest.mark.parametrize(("took_s", "interval_s"), [(0.5, 30.0), (1.5, 30.0), (60.0, 1200.0)])
def test_checkpoints_that_take_long_are_rarer(tmp_path, monkeypatch, took_s, interval_s):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 30.0)
    now = 0.0
    monkeypatch.setattr(checkpointing.time, "monotonic", lambda: now)
    args = TrainingArguments(output_dir=str(tmp_path), logging_steps=1)
    callback = CheckpointCallback(tmp_path)
    state, control = TrainerState(global_step=1, max_steps=9), TrainerControl()
    (tmp_path / "checkpoint-1").mkdir()
    now = 30.0
    assert callback.on_step_end(args, state, control).should_save
    now += took_s
    callback.on_save(args, state, control, model=torch.nn.Linear(1, 1))
    now += interval_s - 0.5
    assert not callback.on_step_end(args, state, control).should_save
    now += 0.5
    assert callback.on_step_end(args, state, control).should_save


# Another engine


@pytest.mark.parametrize(
    ("wrote", "reads"),
    [
        ({}, {"zero_stage": 2}),
        ({"zero_stage": 2, "processes": 2}, {}),
        ({"zero_stage": 2, "processes": 2}, {"zero_stage": 3, "processes": 2}),
        ({"zero_stage": 2, "processes": 2}, {"zero_stage": 2, "processes": 4}),
        ({"zero_stage": 3}, {"zero_stage": 3, "offload": "cpu"}),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_engine_is_left_alone_and_named(tmp_path, monkeypatch, wrote, reads):
    def use(engine: dict[str, Any]) -> None:
        monkeypatch.setattr(team, "_joined", team.Team(engine=EngineParams(**engine)))

    save = CheckpointCallback(tmp_path).on_save
    (tmp_path / "checkpoint-3").mkdir()
    for name in ("optimizer.pt", "scheduler.pt"):  # which transformers writes without DeepSpeed
        (tmp_path / "checkpoint-3" / name).touch()
    use(wrote)
    save(TrainingArguments(), TrainerState(global_step=3), TrainerControl(), model=torch.nn.Linear(1, 1))
    settle(tmp_path)
    use(reads)
    with pytest.raises(TrainingError, match=r"checkpoint-3 was written .*Set engine back.*or delete .* anew"):
        settle(tmp_path)
    assert checkpointed_steps(tmp_path) == 3
    use(wrote | {"compiles": True, "generator": "continuous_batching"})
    settle(tmp_path)


def test_training_does_not_begin_upon_a_checkpoint_of_another_engine(tmp_path, monkeypatch):
    test_sft.train(tmp_path)
    monkeypatch.setattr(team, "_joined", team.Team(engine=EngineParams(zero_stage=2)))
    with pytest.raises(TrainingError, match=r"was written without DeepSpeed.*asks for training under ZeRO-2"):
        test_sft.train(tmp_path)


# A judge that is gone


@pytest.mark.parametrize("error", [WorkerError("the referee died"), MachineError("no judge is left")], ids=str)
def test_a_judge_that_gives_out_stops_training_at_the_last_whole_step(tmp_path, monkeypatch, whole, error):
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
    assert rows == whole


@pytest.mark.parametrize(
    "error",
    [TypeError("no such argument"), OSError(28, "No space left on device"), HistoryBusyError("locked")],
    ids=repr,
)
@pytest.mark.parametrize("groups_at_once", [None, 1], ids=["at the end", "early"])
def test_what_is_no_fault_of_the_judge_is_not_said_to_be(tmp_path, error, groups_at_once):
    def judge(candidates: Sequence[Candidate]) -> list[Verdict]:
        raise error

    with pytest.raises(type(error)) as raised:
        train(tmp_path, judge=judge, groups_at_once=groups_at_once)
    assert raised.value is error


def test_a_gpu_that_another_process_keeps_is_not_a_lost_judge(tmp_path, monkeypatch):
    error = WorkerError("somebody has kept the GPU for an hour")
    monkeypatch.setattr(own_turns, "_take", Mock(side_effect=[None, error]))
    with pytest.raises(WorkerError) as raised:
        train(tmp_path)
    assert raised.value is error


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
def test_sigterm_leaves_a_checkpoint_and_the_same_step_is_next(tmp_path, monkeypatch, whole, ask):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(PreemptedError, match=r"SIGTERM.*the same command continues"):
        ask(tmp_path / "killed")
    assert signal.getsignal(signal.SIGTERM) == before
    assert checkpointed_steps(tmp_path / "killed") == 2
    rows, steps = train(tmp_path / "killed", exemplars="none")
    assert len(steps) == 2
    assert rows == whole


def test_sigterm_ends_fine_tuning_too(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 1e9)
    made = policy()
    calls: list[int] = []
    made.model.get_input_embeddings().register_forward_hook(lambda *_: ask_to_end() if _count(calls) == 3 else None)
    with pytest.raises(PreemptedError):
        test_sft.train(tmp_path / "killed", made=made)
    done = checkpointed_steps(tmp_path / "killed")
    assert 0 < done < 8
    rows, seen = test_sft.train(tmp_path / "killed")
    assert seen == list(range(done + 1, 9))
    assert rows == test_sft.train(tmp_path / "whole")[0]


def test_sigterm_during_the_last_step_is_obeyed_when_it_is_done(tmp_path, whole):
    with pytest.raises(PreemptedError):
        train(tmp_path / "killed", exemplars="none", on_step=lambda step, _: ask_to_end() if step == 4 else None)
    assert checkpointed_steps(tmp_path / "killed") == 4
    assert train(tmp_path / "killed", exemplars="none")[0] == whole


def _count(calls: list[int]) -> int:
    calls.append(0)
    return len(calls)


def test_warnings_are_silent_where_nothing_happens(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="tasks"):
        train(tmp_path, steps=2)
    assert [record for record in caplog.records if record.name.startswith("tasks")] == []
