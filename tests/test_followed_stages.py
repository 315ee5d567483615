"""One command on another machine follows stage after stage, whatever becomes of them, until it is asked to end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from stage_runs import Started, free_address, started

from flows.parts.gathering import INVITATION
from flows.workspace import make_workspace

pytestmark = pytest.mark.slow

STAGE = """
import sys, time
from pathlib import Path
from flows.engine import run_stage
from flows.parts.launching import trainers
from tasks.errors import TrainingError

def short():
    pass

def long():
    from tasks.training.preemption import Preemption
    from tasks.training.team import team
    asked = Preemption()
    with asked.awaited():
        team().wait()
        Path("began").touch()
        while not asked._agreed():
            time.sleep(0.05)

def diverges():
    raise TrainingError("the loss is not finite")

def lacks():
    import a_library_that_the_other_machine_has

def work(stage):
    with trainers(stage.params, folder=stage.folder) as crew:
        crew.train(globals()[sys.argv[2]])

if __name__ == "__main__":
    import stage as ours
    run_stage(sys.argv[1], ours.work)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project on two machines whose stages train what they are told to, and miss each other in two seconds."""
    changes = {"engine.nodes": 2, "engine.address": free_address()}
    root = make_workspace(tmp_path / "project", profile="tiny", changes=changes)
    stage = {"deps": ["params.yaml"], "params": ["seed"]}
    (root / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"sft": stage, "self_supervised": stage}}))
    (root / "stage.py").write_text(STAGE)
    heartbeats = root / "flows" / "parts" / "heartbeats.py"
    heartbeats.write_text(heartbeats.read_text().replace("BEAT_S = 5.0", "BEAT_S = 0.5"))
    return root


@contextmanager
def follower(root: Path) -> Iterator[Started]:
    with started(root, "-m", "flows.following", "--node", "1") as command:
        yield command


def test_one_command_follows_stage_after_stage_until_it_is_asked_to_end(root):
    with follower(root) as follows:
        for name in ("sft", "self_supervised"):
            with started(root, "stage.py", name, "short") as stage:
                assert stage.status() == 0, stage.said
            follows.says(f"node 1: following work/{name}/", f"node 1: work/{name}/")
        follows.until(lambda: follows.said.count("waiting in") == 3)
        follows.process.terminate()
        assert follows.status() == 143
        assert follows.said.count(" has ended") == 2
        assert not (root / INVITATION).exists()


def test_a_stage_that_is_killed_is_followed_again(root):
    with follower(root) as follows:
        with started(root, "stage.py", "sft", "long") as stage:
            stage.until((root / "began").exists)
            stage.process.kill()
        follows.says(" is lost, see work/following; once it runs again, it goes on from its newest checkpoint")
        with started(root, "stage.py", "sft", "short") as stage:
            assert stage.status() == 0, stage.said
        follows.says(" has ended")
        follows.process.send_signal(signal.SIGINT)
        assert follows.status() == 130


def test_a_node_that_is_asked_to_end_lets_the_training_write_its_checkpoint(root):
    with follower(root) as follows, started(root, "stage.py", "sft", "long") as stage:
        stage.until((root / "began").exists)
        follows.process.terminate()
        assert (stage.status(), follows.status()) == (143, 143)
        assert "every step until now is in a checkpoint" in stage.said
        assert "node 1: ending work/sft/" in follows.said


@pytest.mark.parametrize(("fails", "why"), [("diverges", "TrainingError"), ("lacks", "ModuleNotFoundError")])
def test_a_failure_that_another_run_would_repeat_ends_the_command(root, fails, why):
    with follower(root) as follows, started(root, "stage.py", "sft", fails) as stage:
        assert (stage.status(), follows.status()) == (1, 1)
        assert "MachineError: processes of node 1 failed, see work/following: exit statuses {1: 1}" in follows.said
        assert why in (root / "work/following/process-1.log").read_text()
