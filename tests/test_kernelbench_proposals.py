"""Candidates for a problem set are written by several processes, which end with whoever asked for them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernelbench_builders import reference

from flows.kernelbench import proposals as proposing
from flows.kernelbench.proposals import proposals
from tasks.errors import MachineError
from tasks.problems.problem import Problem, Split

ROOT = Path(__file__).parent.parent
PROBLEMS = [
    Problem(problem_id=f"level1/{number}", level=1, family="", split=Split.HELD_OUT, source=reference(number))
    for number in (3, 1, 2)
]
ASKS = """
import multiprocessing
import os
import time

from test_kernelbench_proposals import PROBLEMS

from flows.kernelbench import proposals

if __name__ == "__main__":
    os.sched_getaffinity = lambda _: {0, 1}
    written = proposals._all_written(PROBLEMS, device="cuda", count=1)
    next(written)
    print([process.pid for process in multiprocessing.active_children()], flush=True)
    time.sleep(100)
"""


def ends_at_once() -> None:
    os._exit(1)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def num_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)))
    return int(request.param)


def test_they_come_in_the_problems_order_each_problems_first_ones_first(num_processes: int, tmp_path: Path) -> None:
    found = proposals(PROBLEMS, tmp_path, device="cuda:0", count=2)
    expected = [(each, row["candidate_id"]) for each in PROBLEMS for row in proposing._written(each, "cuda", 2)]
    assert len(expected) > len(PROBLEMS)
    assert [(each.problem_id, each.candidate.candidate_id) for each in found if each.candidate] == [
        (each.problem_id, candidate_id) for each, candidate_id in expected
    ]


def test_what_is_written_is_kept_at_once_and_not_written_again(num_processes: int, tmp_path: Path) -> None:
    proposals(PROBLEMS[:2], tmp_path, device="cuda:0", count=1)
    before = (tmp_path / "proposals.jsonl").read_text()
    proposals(PROBLEMS, tmp_path, device="cuda:0", count=1)
    after = (tmp_path / "proposals.jsonl").read_text()
    assert after.startswith(before)
    assert {json.loads(line)["problem_hash"] for line in after.removeprefix(before).splitlines()} == {
        PROBLEMS[2].problem_hash
    }


def test_a_process_that_has_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(proposing, "_begin_process", ends_at_once)
    with pytest.raises(MachineError, match="a process that writes candidates has gone"):
        proposals(PROBLEMS, tmp_path, device="cuda:0", count=1)


def test_they_end_with_the_process_that_asked(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    asking = subprocess.Popen(
        [sys.executable, str(tmp_path / "asks.py")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout is not None
    pids = json.loads(asking.stdout.readline())
    assert pids
    assert all(is_there(pid) for pid in pids)
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    deadline = time.monotonic() + 30.0
    while any(is_there(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(is_there(pid) for pid in pids)
