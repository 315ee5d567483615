"""What ends a team is said as what it is: a machine's wish, a training's failure, or a process that is lost."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flows.parts.launching import _Crew, trainers
from tasks.errors import MachineError, PreemptedError, TrainingError
from tasks.params import EngineParams, load_params
from tasks.training import loading, team

LIMIT_S = 120.0


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (PreemptedError("asked to end"), PreemptedError),
        (TrainingError("diverged"), TrainingError),
        (RuntimeError("connection lost"), MachineError),
    ],
    ids=str,
)
def test_a_training_that_ends_by_itself_is_not_taken_for_a_lost_process(tmp_path, raised, said):
    crew = _Crew(EngineParams(processes=2), folder=tmp_path)
    crew._processes = {1: subprocess.Popen([sys.executable, "-c", ""])}
    crew._processes[1].wait()
    with pytest.raises(said), crew.watched():
        raise raised


@pytest.mark.parametrize(
    ("lost", "signal_number", "said"),
    [
        (1, signal.SIGSTOP, "training process 1 of 2, on node 1, has not been heard of for 4 s"),
        (1, signal.SIGKILL, "training process 1 of 2, on node 1, has not been heard of for"),
        (0, signal.SIGSTOP, "training process 0, on node 0, has not been heard of for 4 s"),
    ],
    ids=["another machine falls silent", "a process on another machine is killed", "the stage's machine falls silent"],
)
def test_who_is_lost_on_another_machine_is_named_in_minutes_not_days(tmp_path, lost, signal_number, said):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with ExitStack() as stack:
        logs = [tmp_path / f"{number}.log" for number in range(2)]
        both = [stack.enter_context(silent_team(number, address, logs[number])) for number in range(2)]
        until(lambda: all("met" in log.read_text() for log in logs))
        both[lost].send_signal(signal_number)
        assert both[1 - lost].wait(LIMIT_S) != 0
        assert said in logs[1 - lost].read_text()


@contextmanager
def silent_team(number: int, address: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.silent_team", str(number), address, str(log.parent)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not found():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)


def test_a_process_that_trains_alone_has_the_engine_that_params_ask_for(tmp_path):
    engine = EngineParams(compiles=True, generator="continuous_batching")
    with trainers(replace(load_params(), engine=engine), folder=tmp_path) as crew:
        assert crew.train(lambda: team.team().engine) == engine
    assert team.team().engine == EngineParams()


class Placed:
    """Notes where it was put."""

    def __init__(self) -> None:
        self.places: list[str] = []

    def cuda(self, number: int) -> None:
        self.places.append(f"cuda:{number}")

    def cpu(self) -> None:
        self.places.append("cpu")


@pytest.mark.parametrize(("zero_stage", "places"), [(2, ["cuda:0"]), (3, [])])
def test_a_model_that_zero_3_shares_out_is_never_whole_on_a_gpu_but_to_sample(monkeypatch, zero_stage, places):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(team, "_joined", team.Team(engine=EngineParams(zero_stage=zero_stage)))
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    model = Placed()
    loading.place_model(model, None)
    assert model.places == places
    with loading.on_gpu(model):
        assert model.places == ["cuda:0"]
    assert model.places[len(places) :] == (["cuda:0", "cpu"] if zero_stage == 3 else [])
