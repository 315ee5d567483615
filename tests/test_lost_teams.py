"""What ends a team is said as what it is: a machine's wish, a training's failure, or a process that is lost."""

import subprocess
import sys

import pytest
import torch

from flows.launching import _Crew
from tasks.errors import MachineError, PreemptedError, TrainingError
from tasks.params import EngineParams
from tasks.training import loading, team


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
