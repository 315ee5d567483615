"""Nobody is timed on a GPU while somebody trains there."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tasks.errors import PreemptedError
from tasks.judge.turnstile import FOLDER, Turnstile
from tasks.training.turns import Turns

JUDGE = """
import sys
from tasks.judge.turnstile import Turnstile
turnstile = Turnstile(sys.argv[1])
print("waiting", flush=True)
with turnstile.turn():
    print("timing", flush=True)
    sys.stdin.readline()
print("done", flush=True)
"""


@pytest.fixture
def device() -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    yield name
    for file in FOLDER.glob(f"cuda-l1-{name}.*"):
        file.unlink()


@contextmanager
def judge(device: str) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for its turn on the device and keeps it until it is told to go on."""
    command = [sys.executable, "-c", JUDGE, device]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_judge_waits_while_there_is_training_and_gets_in_when_it_yields(device):
    turns = Turns()
    with turns.held([device]), judge(device) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        with turns.yielded():
            assert process.stdout.readline() == "timing\n"
            process.stdin.write("\n")
            process.stdin.flush()
        # Training goes on only when the judge has left.
        assert process.stdout.readline() == "done\n"


def test_who_leaves_by_an_error_waits_for_no_turn(device):
    turns = Turns()
    with judge(device) as process, turns.held([]):
        assert process.stdout.readline() == "timing\n"
        turns._turnstiles = [Turnstile(device)]
        with pytest.raises(PreemptedError), turns.yielded():  # would else wait for a judge that never ends
            raise PreemptedError


def test_training_that_ends_leaves_the_device_to_others(device):
    turns = Turns()
    with turns.held([device]):
        pass
    with judge(device) as process:
        assert process.stdout.readline() == "timing\n"


def test_without_devices_nothing_is_held():
    turns = Turns()
    with turns.held([]), turns.yielded():
        pass
    with turns.yielded():
        pass
