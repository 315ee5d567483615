"""No candidate leaves a process, a file, a handle or a changed setting behind; looked for after each of many."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flows.benches.specimens import read_collection
from flows.soaks.footprint import footprint, private_folders
from flows.soaks.judge import COLLECTION, Soaked, report, soak
from tasks.judge.judge import Judge
from tests.judge_builders import PARAMS

JUDGEMENTS = 60
NUM_PROBLEMS = 4


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    """What was found after many candidates, hostile ones above all, for few problems: studying one takes longer."""
    specimens = read_collection(COLLECTION)
    most = Counter(each.problem.problem_id for each in specimens).most_common(NUM_PROBLEMS)
    specimens = [each for each in specimens if each.problem.problem_id in dict(most)]
    hostile = [each for each in specimens if each.name.startswith("hostile/")]
    others = [each for each in specimens if not each.name.startswith("hostile/")]
    chosen = hostile[:: max(1, len(hostile) // 45)][:45] + others[:: max(1, len(others) // 15)]
    with (
        private_folders(tmp_path_factory.mktemp("soak")) as folders,
        Judge(replace(PARAMS, workers=1, trials=2, rounds=5, timeout_s=3.0)) as judge,
    ):
        return soak(judge, chosen[:JUDGEMENTS], folders, judgements=JUDGEMENTS)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[list[Path]]:
    with private_folders(tmp_path) as folders:
        yield folders


def test_nothing_is_left_after_any_judgement(soaked: Soaked) -> None:
    assert soaked.num_judgements == JUDGEMENTS
    assert not soaked.leftovers, report(soaked)
    assert soaked.is_clean


def test_what_was_found_can_be_written_down(soaked: Soaked) -> None:
    written = json.loads(json.dumps(soaked.to_json()))
    assert written["statuses"] == soaked.statuses
    assert sum(written["statuses"].values()) == written["num_judgements"] == JUDGEMENTS


def test_all_kinds_of_verdicts_were_among_them(soaked: Soaked) -> None:
    assert {"correct", "wrong_output", "crashed"} <= set(soaked.statuses)


def test_a_file_in_any_of_the_folders_is_found(folders: list[Path]) -> None:
    before = footprint(folders)
    (folders[0] / "planted").touch()
    (folders[1] / ".profile").touch()
    assert [words.split("/")[-1] for words in before.leftovers(footprint(folders))] == [".profile", "planted"]


def test_a_file_handle_and_a_setting_are_found(folders: list[Path]) -> None:
    before = footprint(folders)
    reading, writing = os.pipe()
    mask = os.umask(0o011)
    left = before.leftovers(footprint(folders))
    os.umask(mask)
    os.close(reading)
    os.close(writing)
    assert len(left) == 2
    assert left[0].endswith("before")
    assert "file handles" in left[0]
    assert left[1].startswith("umask is 0o11")
    assert not before.leftovers(footprint(folders))


def test_a_process_is_found(folders: list[Path]) -> None:
    before = footprint(folders)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert any("processes" in words for words in before.leftovers(footprint(folders)))
    child.communicate(b"\n")
    deadline = time.monotonic() + 5
    while before.leftovers(footprint(folders)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not before.leftovers(footprint(folders))


@pytest.mark.parametrize(
    ("mebibytes", "is_clean"),
    [
        pytest.param([200, 180, 190, 185], True, id="steady"),
        pytest.param([100, 180, 190, 185], True, id="warming up"),
        pytest.param([180, 200, 230, 260], False, id="growing"),
    ],
)
def test_memory_that_grows_from_round_to_round_is_no_clean_judge(mebibytes: list[int], is_clean: bool) -> None:
    sizes = [size << 20 for size in mebibytes]
    assert Soaked(referee_bytes=sizes).is_clean is is_clean
    assert Soaked(fork_server_bytes=sizes).is_clean is is_clean


def test_a_large_problem_at_the_end_of_a_round_is_no_growth(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    specimens = read_collection(Path(__file__).parent / "kernels")[:2]
    scripted = iter([200, 210, 201, 600])
    monkeypatch.setattr("flows.soaks.judge.memory_bytes", lambda pid: next(scripted) << 20 if pid == os.getpid() else 0)
    monkeypatch.setattr("flows.soaks.judge._fork_server", lambda: -1)
    monkeypatch.setattr("flows.soaks.judge._judged", lambda *_: "correct")
    with Judge(replace(PARAMS, workers=1, trials=2, rounds=5)) as judge:
        found = soak(judge, specimens, folders, judgements=4)
    assert [size >> 20 for size in found.referee_bytes] == [200, 201]
    assert found.is_clean
