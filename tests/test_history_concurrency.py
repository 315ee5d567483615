"""Writers and readers of one history killed at random: a short soak, and that taking turns works as it says."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from history_builders import run

from flows.soaks.history import soak
from tasks.history import turns
from tasks.history.inspection import inspect_history
from tasks.history.store import History


@pytest.mark.slow
def test_rows_acknowledged_to_killed_writers_are_there_once(tmp_path):
    soaked = soak(tmp_path, duration_s=8.0, seed=1)
    assert soaked.is_whole, soaked
    assert soaked.num_kills > 0
    assert soaked.num_acknowledged > 0
    assert soaked.num_queries > 0
    assert inspect_history(tmp_path / "history.duckdb").mistakes == ()


def test_a_soak_finds_rows_that_are_lost_or_torn(tmp_path, monkeypatch):
    """The soak's count must be able to fail: a history that loses what it acknowledges."""
    from flows.soaks import history

    stored = history._stored

    def lossy(path):
        counts = stored(path)
        lost = min(counts[0])
        return [{name: number for name, number in count.items() if name != lost} for count in counts]

    monkeypatch.setattr(history, "_stored", lossy)
    soaked = soak(tmp_path, duration_s=3.0, seed=2)
    assert not soaked.is_whole
    assert soaked.num_torn == 1


def test_a_soak_in_which_no_writer_gets_to_an_append_counts_all_the_same(tmp_path):
    """As on a machine whose processes take longer to start than the soak lasts."""
    soaked = soak(tmp_path, duration_s=0.01, seed=3)
    assert soaked.is_whole, soaked
    assert soaked.num_acknowledged > 0


ROOT = Path(__file__).parent.parent
# The code beside these tests, wherever the project is installed.
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}

# Has a turn as a reader or a writer, or the file open to read, until its stdin is closed.
HOLDER = """
import sys, time
from pathlib import Path
from tasks.history import turns

what, path = sys.argv[1], Path(sys.argv[2])
turns.TURN_S = 60
if what == "file":
    from tasks.history.connection import reading
    held = reading(path)
else:
    held = turns.turns(path, is_reader=what == "reader", deadline=time.monotonic() + 60)
print("asking", flush=True)
with held as own_turns:
    if what != "file":
        next(own_turns)
    print("held", flush=True)
    with open(path.with_name("order"), "a") as order:
        print(what, file=order)
    sys.stdin.read()
"""


@pytest.fixture
def ask():
    """Start processes that ask for something; they give it back when the test ends, or lets them."""
    holders = []

    def start(what, path):
        command = [sys.executable, "-c", HOLDER, what, path]
        holder = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=ENVIRONMENT)
        holders.append(holder)
        assert holder.stdout.readline() == "asking\n"
        return holder

    yield start
    let_go(*(holder for holder in holders if holder.stdin is not None))


@pytest.fixture
def hold(ask):
    """Start processes that have something."""

    def start(what, path):
        holder = ask(what, path)
        assert holder.stdout.readline() == "held\n"
        return holder

    return start


def wait_until_queued(path, *, by):
    """Until readers wait in the queue, or a writer has it, which is when nobody or no other can have it."""
    kind = fcntl.LOCK_EX if by == "reader" else fcntl.LOCK_SH
    end = time.monotonic() + 60
    with turns.locks_of(path).open("r+") as locks:
        while time.monotonic() < end:
            try:
                fcntl.lockf(locks, kind | fcntl.LOCK_NB, 1, turns._QUEUE)
            except BlockingIOError:
                return
            fcntl.lockf(locks, fcntl.LOCK_UN, 1, turns._QUEUE)
            time.sleep(0.01)
    raise TimeoutError(f"no {by} came")


def let_go(*holders):
    """Of all at once: who holds something now, and who will, give it back when they have it."""
    for holder in holders:
        holder.stdin.close()
        holder.stdin = None
    for holder in holders:
        holder.communicate(timeout=60)


def order_of(path):
    return path.with_name("order").read_text().split()


def test_readers_that_wait_go_before_the_next_writer(tmp_path, ask, hold):
    path = tmp_path / "history.duckdb"
    first = hold("writer", path)
    others = [ask("writer", path) for _ in range(3)]
    reader = ask("reader", path)
    wait_until_queued(path, by="reader")
    let_go(first, reader, *others)
    assert order_of(path) == ["writer", "reader", "writer", "writer", "writer"]


def test_a_writer_goes_before_readers_that_come_after_it(tmp_path, ask, hold):
    path = tmp_path / "history.duckdb"
    let_go(hold("writer", path))  # which makes the file of locks
    first = hold("reader", path)
    writer = ask("writer", path)
    wait_until_queued(path, by="writer")
    others = [ask("reader", path) for _ in range(3)]
    let_go(first, writer, *others)
    assert order_of(path) == ["writer", "reader", "writer", "reader", "reader", "reader"]


def test_readers_have_turns_side_by_side(tmp_path, hold):
    path = tmp_path / "history.duckdb"
    let_go(hold("writer", path))
    for _ in range(3):
        hold("reader", path)


def test_a_turn_ends_with_a_killed_process(tmp_path, hold):
    path = tmp_path / "history.duckdb"
    for what in ("writer", "reader", "writer"):
        holder = hold(what, path)
        holder.kill()
        holder.wait()


def own_turn(path, *, is_reader, wait_s):
    return turns.turns(path, is_reader=is_reader, deadline=time.monotonic() + wait_s)


@pytest.mark.parametrize("is_reader", [True, False], ids=["reader", "writer"])
def test_a_turn_that_does_not_come_is_given_up_at_the_deadline(tmp_path, hold, is_reader):
    path = tmp_path / "history.duckdb"
    hold("writer", path)
    with own_turn(path, is_reader=is_reader, wait_s=0.05) as own_turns:
        assert next(own_turns) <= time.monotonic()


@pytest.mark.parametrize("is_reader", [True, False], ids=["reader", "writer"])
def test_a_place_without_locks_keeps_nobody_waiting(tmp_path, is_reader):
    with own_turn(tmp_path / "missing" / "history.duckdb", is_reader=is_reader, wait_s=60) as own_turns:
        assert next(own_turns) > time.monotonic()


def test_a_question_leaves_nothing_beside_the_file(tmp_path):
    history = History(tmp_path / "history.duckdb")
    history.append(run())
    turns.locks_of(history.path).unlink()
    assert history.query("SELECT count(*) FROM runs").item() == 1
    assert list(tmp_path.iterdir()) == [history.path]


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
    writer = subprocess.Popen(command, env=ENVIRONMENT, stdout=PIPE, text=True)
    assert writer.stdout.readline() == "appending\n"
    for _ in range(3):
        assert history.query("SELECT count(*) FROM runs").item() == 1
    let_go(shell)
    writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert history.query("SELECT count(*) FROM runs").item() == 2
