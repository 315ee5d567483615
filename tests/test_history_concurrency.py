"""Writers and readers of one history killed at random: a short soak, and that taking turns works as it says."""

import os
import threading
import time

import pytest
from history_builders import distinct, problem, run, verdict

from flows.soak_history import soak
from tasks.errors import HistoryBusyError
from tasks.history import connection
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
        for count in counts:
            count.pop(sorted(set(counts[0]) & set(counts[1]))[0], None)
        return counts

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


def test_a_turn_ends_with_a_killed_process(tmp_path):
    path = tmp_path / "history.duckdb"
    taken, told = os.pipe()
    child = os.fork()
    if not child:
        with in_turn(path, wait_s=60):
            os.write(told, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(taken, 1)
    os.kill(child, 9)
    os.waitpid(child, 0)
    with in_turn(path, wait_s=60) as until:
        assert until > time.monotonic()


def test_readers_get_by_while_a_writer_waits_for_another_reader(tmp_path, monkeypatch):
    """As with a DuckDB shell that only reads: it keeps writers out, and nobody else."""
    monkeypatch.setattr(connection, "WAIT_S", 2.0)
    history = History(tmp_path / "history.duckdb")
    judged = distinct(3)
    history.append(run(), problems=[problem()], candidates=judged, verdicts=[verdict(one) for one in judged])
    reading, leave = os.pipe(), os.pipe()
    shell = os.fork()
    if not shell:
        with connection.reading(history.path):
            os.write(reading[1], b"x")
            os.read(leave[0], 1)
        os._exit(0)
    os.read(reading[0], 1)
    writer = os.fork()
    if not writer:
        try:
            history.append(run("another"))
        except HistoryBusyError:
            os._exit(7)
        os._exit(0)
    try:
        for _ in range(3):
            assert history.query("SELECT count(*) FROM verdicts").item() == 3
    finally:
        os.write(leave[1], b"x")
        assert os.waitpid(shell, 0)[1] == 0
        assert os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) in (0, 7)
