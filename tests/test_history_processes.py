"""The history shared by several processes, some of which are killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from history_builders import distinct, problem, run, verdict

from tasks.history.store import History

TESTS = Path(__file__).parent
# The code beside these tests, wherever the project is installed.
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}

# Appends batches of 20 verdicts until told to stop, and says after each that it is in.
WRITER = """
import sys, time
from pathlib import Path
from history_builders import distinct, problem, run, verdict
from tasks.history.store import History

path, name, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
history, number, end = History(path), 0, time.monotonic() + seconds
while time.monotonic() < end:
    batch = distinct(20, problem_id=f"level1/{name}", start=20 * number)
    verdicts = [verdict(one) for one in batch]
    history.append(run(name), problems=[problem(f"level1/{name}")], candidates=batch, verdicts=verdicts)
    number += 1
    print(20 * number, flush=True)
    time.sleep(0.02)
"""

# Counts verdicts until told to stop; what it sees never shrinks and never holds half a batch.
READER = """
import sys, time
from pathlib import Path
from tasks.history.store import History

history, seen, end = History(Path(sys.argv[1])), 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    now = history.query("SELECT count(*) FROM verdicts").item()
    rounds = history.query("SELECT count(*) FROM timing_rounds").item()
    assert now >= seen and now % 20 == 0 and rounds % 180 == 0, (seen, now, rounds)
    seen = now
    time.sleep(0.02)
"""


def start(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def acknowledged(output):
    """The count in the last whole line: a killed writer's last line may be torn."""
    lines = output.split("\n")[:-1]
    return int(lines[-1]) if lines else 0


def stored(history):
    return dict(history.query("SELECT problem_id, count(*) FROM verdicts GROUP BY ALL").rows())


@pytest.mark.slow
def test_two_writers_and_two_readers_keep_every_row(tmp_path):
    path = tmp_path / "history.duckdb"
    History(path).append(run())
    writers = {name: start(WRITER, path, name, 3) for name in ("a", "b")}
    readers = [start(READER, path, 3) for _ in range(2)]
    outputs = {name: writer.communicate(timeout=60) for name, writer in writers.items()}
    for reader in readers:
        _, complaint = reader.communicate(timeout=60)
        assert reader.returncode == 0, complaint
    for name, (output, complaint) in outputs.items():
        assert writers[name].returncode == 0, complaint
        assert acknowledged(output) > 0
    assert stored(History(path)) == {f"level1/{name}": acknowledged(output) for name, (output, _) in outputs.items()}


@pytest.mark.slow
def test_killed_writers_lose_nothing_acknowledged_and_half_a_batch_is_never_there(tmp_path):
    path = tmp_path / "history.duckdb"
    history = History(path)
    for attempt in range(4):
        name = f"killed_{attempt}"
        writer = start(WRITER, path, name, 60)
        lines = [writer.stdout.readline() for _ in range(3)]
        time.sleep(0.013 * attempt)  # at different places within an append
        os.kill(writer.pid, signal.SIGKILL)
        rest, _ = writer.communicate()
        kept = stored(history).get(f"level1/{name}", 0)
        assert kept >= acknowledged("".join(lines) + rest)
        assert kept % 20 == 0
        # Resuming appends everything from the start.
        batch = distinct(kept + 20, problem_id=f"level1/{name}")
        verdicts = [verdict(one) for one in batch]
        history.append(run(name), problems=[problem(f"level1/{name}")], candidates=batch, verdicts=verdicts)
        assert stored(history)[f"level1/{name}"] == kept + 20


def test_processes_that_create_the_file_at_the_same_time_share_one(tmp_path):
    path = tmp_path / "history.duckdb"
    writers = {name: start(WRITER, path, name, 0.3) for name in ("a", "b", "c")}
    outputs = {name: writer.communicate(timeout=60) for name, writer in writers.items()}
    assert [writer.returncode for writer in writers.values()] == [0, 0, 0], outputs
    assert stored(History(path)) == {f"level1/{name}": acknowledged(output) for name, (output, _) in outputs.items()}
    assert {file.name for file in tmp_path.iterdir()} == {"history.duckdb", "history.duckdb.turns"}


def test_threads_of_one_process_append_and_ask_at_once(tmp_path):
    history = History(tmp_path / "history.duckdb")
    history.append(run(), problems=[problem()])
    finished = threading.Event()

    def append(number):
        batch = distinct(5, start=5 * number)
        history.append(run(), candidates=batch, verdicts=[verdict(one) for one in batch])

    def ask():
        while not finished.wait(0.01):
            assert history.query("SELECT count(*) FROM verdicts").item() % 5 == 0

    with ThreadPoolExecutor(max_workers=4) as pool:
        asking = pool.submit(ask)
        list(pool.map(append, range(20)))
        finished.set()
        asking.result()
    assert history.query("SELECT count(*) FROM verdicts").item() == 100
