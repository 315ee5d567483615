"""Writers and readers of one history killed at random: a short soak, and that taking turns works as it says."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from history_builders import run

from flows.soak_history import soak
from tasks.history.inspection import inspect_history
from tasks.history.store import History
from tasks.history.turns import turn


@pytest.mark.slow
def test_rows_acknowledged_to_killed_writers_are_there_once(tmp_path):
    soaked = soak(tmp_path, duration_s=15.0, seed=1)
    assert soaked.is_whole, soaked
    assert soaked.num_kills > 0
    assert soaked.num_acknowledged > 0
    assert soaked.num_queries > 0
    assert inspect_history(tmp_path / "history.duckdb").mistakes == ()


def test_a_soak_finds_rows_that_are_lost_or_torn(tmp_path, monkeypatch):
    """The soak's count must be able to fail: a history that loses what it acknowledges."""
    from flows import soak_history

    stored = soak_history._stored

    def lossy(path):
        counts = stored(path)
        lost = min(counts[0])
        return [{name: number for name, number in count.items() if name != lost} for count in counts]

    monkeypatch.setattr(soak_history, "_stored", lossy)
    soaked = soak(tmp_path, duration_s=3.0, seed=2)
    assert not soaked.is_whole
    assert soaked.num_torn == 1


def in_turn(path, *, wait_s):
    now = time.monotonic()
    return turn(path, is_reader=True, begun=now, deadline=now + wait_s)


def test_only_one_has_a_turn(tmp_path):
    path, order = tmp_path / "history.duckdb", []

    def second():
        with in_turn(path, wait_s=60):
            order.append("second")

    with in_turn(path, wait_s=60):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_turn_that_does_not_come_is_given_up_at_the_deadline(tmp_path):
    path = tmp_path / "history.duckdb"
    with in_turn(path, wait_s=60), in_turn(path, wait_s=0.05) as until:
        assert until <= time.monotonic()


def test_a_folder_that_cannot_be_locked_keeps_nobody_waiting(tmp_path):
    with in_turn(tmp_path / "missing" / "history.duckdb", wait_s=60) as until:
        assert until > time.monotonic()


ROOT = Path(__file__).parent.parent
# The code beside these tests, wherever the project is installed.
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}

# Takes a turn, or holds the file open to read, until its stdin is closed.
HOLDER = """
import sys, time
from pathlib import Path
from tasks.history import connection
from tasks.history.turns import turn

path, now = Path(sys.argv[2]), time.monotonic()
held = turn(path, is_reader=True, begun=now, deadline=now + 60) if sys.argv[1] == "turn" else connection.reading(path)
with held:
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Start processes that hold something; they end with the test."""
    holders = []

    def start(what, path):
        command = [sys.executable, "-c", HOLDER, what, path]
        holders.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        )
        assert holders[-1].stdout.readline() == "held\n"
        return holders[-1]

    yield start
    for holder in holders:
        holder.communicate(timeout=60)


def test_a_turn_ends_with_a_killed_process(tmp_path, hold):
    path = tmp_path / "history.duckdb"
    holder = hold("turn", path)
    holder.kill()
    holder.wait()
    with in_turn(path, wait_s=60) as until:
        assert until > time.monotonic()


WRITER = """
import sys
from pathlib import Path
from history_builders import run
from tasks.history import connection
from tasks.history.store import History

connection.WAIT_S = 60.0
print("appending", flush=True)
History(Path(sys.argv[1])).append(run("another"))
"""


def test_readers_get_by_while_a_writer_waits_for_another_reader(tmp_path, hold):
    """As with a DuckDB shell that only reads: it keeps writers out, and nobody else."""
    history = History(tmp_path / "history.duckdb")
    history.append(run())
    shell = hold("file", history.path)
    command = [sys.executable, "-c", WRITER, history.path]
    writer = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "appending\n"
    for _ in range(3):
        assert history.query("SELECT count(*) FROM runs").item() == 1
    shell.communicate(timeout=60)
    writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert history.query("SELECT count(*) FROM runs").item() == 2
