"""Several referee processes of one machine are one judge to whoever asks, and leave nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tasks.errors import MachineError, WorkerError
from tasks.judge import turnstile
from tasks.judge.judge import Judge
from tasks.judge.referees import MAX_THREADS, Referees, local_judge
from tasks.judge.turnstile import Turnstile
from tests.judge_builders import KERNELS, PARAMS, kernel, with_source

MANY = replace(PARAMS, workers=MAX_THREADS + 2)
NAMES = ("honest/in_place", "hostile/nan_wildcard", "broken/no_forward")


@pytest.fixture(scope="module")
def referees() -> Iterator[Referees]:
    with Referees(MANY) as referees:
        yield referees


def test_few_candidates_at_once_need_one_process_and_many_need_more() -> None:
    assert isinstance(local_judge(replace(PARAMS, workers=MAX_THREADS)), Judge)
    many = local_judge(MANY)
    assert isinstance(many, Referees)
    assert [referee.num_seats for referee in many._referees] == [3, 3]


def test_one_problem_keeps_the_seats_of_all_processes_busy_before_any_has_more_in_hand() -> None:
    referees = Referees(MANY)
    for referee in referees._referees:
        referee.in_hand = 8
    with contextlib.ExitStack() as stack:
        chosen = [stack.enter_context(referees._chosen("one problem")) for _ in range(8)]
        assert [chosen.index(each) for each in chosen] == [0, 0, 0, 3, 3, 3, 0, 3]
        assert sum(referee.num_busy for referee in referees._referees) == 8
    assert not any(referee.num_busy for referee in referees._referees)


def test_they_say_what_one_judge_says(referees: Referees) -> None:
    chosen = [kernel(KERNELS / f"{name}.py") for name in NAMES]
    with Judge(PARAMS) as judge, ThreadPoolExecutor(MANY.workers) as pool:
        assert (referees.device, referees.environment, referees.protocol) == (
            judge.device,
            judge.environment,
            judge.protocol,
        )
        found = list(pool.map(lambda each: referees.judge(each.problem, each.candidate, seed=0), chosen * 2))
    assert [
        verdict.status.value in (*each.expected, "unstable") for verdict, each in zip(found, chosen * 2, strict=True)
    ] == [True] * 6
    assert [verdict.candidate_id for verdict in found[:3]] == [each.candidate.candidate_id for each in chosen]


def test_killed_processes_cost_their_questions_and_are_replaced(referees: Referees) -> None:
    same = kernel(KERNELS / "honest/same.py")
    sleeps = with_source(same, "import time\ntime.sleep(60)\nclass ModelNew: pass\n")
    with ThreadPoolExecutor(MANY.workers) as pool:
        asked = [pool.submit(referees.judge, sleeps.problem, sleeps.candidate, seed=0) for _ in range(MANY.workers)]
        while any(referee.num_busy < referee.num_seats for referee in referees._referees):
            assert not any(future.done() for future in asked)
            time.sleep(0.05)
        time.sleep(0.5)  # until all have been asked
        for referee in referees._referees:
            assert referee._running is not None
            os.kill(referee._running.manager._process.pid, signal.SIGKILL)
        for future in asked:
            with pytest.raises(WorkerError, match="has ended"):
                future.result(timeout=30)
        found = list(pool.map(lambda seed: referees.judge(same.problem, same.candidate, seed=seed), range(4)))
    assert all(verdict.status.value in ("correct", "unstable") for verdict in found)


def test_a_machine_that_cannot_judge_is_told_of() -> None:
    with pytest.raises(MachineError), Referees(replace(MANY, device="cuda:7")):
        pass


def test_referees_end_with_whoever_asked_them() -> None:
    program = (
        "import time\n"
        "from tasks.judge.referees import Referees\n"
        "from tests.test_referees import MANY\n"
        "if __name__ == '__main__':\n"
        "    with Referees(MANY):\n"
        "        print('open', flush=True)\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        started = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(started) > 4
    assert not psutil.wait_procs(started, timeout=20)[1]


def test_one_process_at_a_time_has_its_turn(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from tasks.judge import turnstile as module\n"
        "module.FOLDER = Path(sys.argv[1])\n"
        "turnstile = module.Turnstile('device')\n"
        "for _ in range(100):\n"
        "    with turnstile.turn():\n"
        "        os.close(os.open(sys.argv[2], os.O_CREAT | os.O_EXCL))\n"
        "        time.sleep(0.001)\n"
        "        os.unlink(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(tmp_path / "inside")]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]


def test_somebody_at_large_in_another_process_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "FOLDER", tmp_path)
    ours, theirs = Turnstile("device"), Turnstile("device")
    assert not ours.is_anybody_at_large()
    with theirs.at_large():
        with theirs.at_large():
            assert ours.is_anybody_at_large()
        assert ours.is_anybody_at_large()
        assert theirs.is_anybody_at_large()
    assert not ours.is_anybody_at_large()
    ours.close()
    theirs.close()


def test_a_lock_that_is_never_given_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "FOLDER", tmp_path)
    monkeypatch.setattr(turnstile, "WAIT_S", 0.1)
    ours, theirs = Turnstile("device"), Turnstile("device")
    with theirs.turn(), pytest.raises(WorkerError, match=r"cuda-l1-device\.turn locked"), ours.turn():
        pass
    with ours.turn():
        pass
