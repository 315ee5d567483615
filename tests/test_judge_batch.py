"""Many cases get verdicts in their order, whatever is in them; one case gets one through a single function."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tasks.judge
from tasks.errors import MachineError, WorkerError
from tasks.judge.batch import changed, judge_cases, judge_source
from tasks.judge.cases import MAX_FILE_BYTES, Case
from tasks.judge.judge import Judge
from tasks.judge.timing import PROTOCOLS
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tests.case_builders import PAID, REFERENCE, RIGHT, WRONG, case
from tests.judge_builders import KERNELS, PARAMS

POISON = RIGHT + "# poison\n"


class FallibleJudge(Judge):
    """A judge whose own part fails, once it is told to, on texts with a word in them, some times or always."""

    _times = 0

    def fail(self, word: str, *, times: int, error: Exception) -> None:
        self._word, self._times, self._error = word, times, error

    def recover(self) -> None:
        self._times = 0

    def judge(self, problem: Problem, candidate: Candidate, **how: Any) -> Verdict:
        if self._times > 0 and self._word in candidate.source:
            self._times -= 1
            raise self._error
        return super().judge(problem, candidate, **how)


class ContagiousJudge(Judge):
    """A judge that one text always brings down, and with it whatever is judged at the same time."""

    def __init__(self) -> None:
        super().__init__(PARAMS)
        self._falls = 0
        self._is_falling = threading.Event()

    def judge(self, problem: Problem, candidate: Candidate, **how: Any) -> Verdict:
        if "poison" in candidate.source:
            self._is_falling.set()
            time.sleep(0.5)
            self._falls += 1
            self._is_falling.clear()
            raise WorkerError("brought down")
        falls = self._falls
        verdict = super().judge(problem, candidate, **how)
        if self._is_falling.is_set() or self._falls != falls:
            raise WorkerError("brought down by another")
        return verdict


@pytest.fixture(scope="module")
def judge() -> Iterator[FallibleJudge]:
    with FallibleJudge(PARAMS) as judge:
        yield judge


@pytest.fixture
def fallible(judge: FallibleJudge) -> Iterator[FallibleJudge]:
    """The judge, which never fails again after the test."""
    yield judge
    judge.recover()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.judge.batch.RETRY_DELAYS_S", (0.0, 0.0, 0.0))


def rows(judge: Judge, *cases: Case) -> list[dict[str, Any]]:
    return list(judge_cases(judge, cases, params=PARAMS, seed=0))


def test_verdicts_come_in_the_order_of_the_cases_though_some_take_longer(judge: Judge) -> None:
    slow = f"import time\ntime.sleep(1)\n{WRONG}"
    candidates = [slow, RIGHT, WRONG, "class\n", slow, RIGHT, WRONG]
    given = rows(judge, *(case(text, case_id=index) for index, text in enumerate(candidates)))
    assert [row["id"] for row in given] == list(range(len(candidates)))
    expected = ["wrong_output", "paid", "wrong_output", "compile_error", "wrong_output", "paid", "wrong_output"]
    assert ["paid" if row["status"] in PAID else row["status"] for row in given] == expected


def test_a_row_has_all_fields_and_is_json(judge: Judge) -> None:
    right, wrong = rows(judge, case(RIGHT), case(WRONG))
    fields = "id status detail speedup speedup_low speedup_high baseline reference_ms candidate_ms max_error checks "
    fields += "track device protocol tier precision seconds rounds environment case"
    assert set(fields.split()) <= set(right)
    assert set(right) == set(wrong)
    assert right["protocol"] == PROTOCOLS["cpu"]
    assert right["device"] == judge.device
    assert json.loads(json.dumps([right, wrong], allow_nan=False)) == [right, wrong]
    assert {"name", "passed", "evidence"} == set(right["checks"][0])
    assert wrong["speedup"] is wrong["reference_ms"] is wrong["rounds"] is None


def test_times_of_a_row_are_medians_of_its_rounds() -> None:
    for _ in range(3):  # a busy machine may leave a timing unsettled
        row = judge_source(REFERENCE, RIGHT, params=PARAMS)
        if row["status"] == "correct":
            break
    assert row["status"] == "correct"
    assert row["speedup_low"] <= row["speedup"] <= row["speedup_high"]
    for name in ("reference_ms", "candidate_ms"):
        times = sorted(row["rounds"][name])
        assert times[0] <= row[name] <= times[-1]


def binary(folder: Path) -> Path:
    path = folder / "binary.py"
    path.write_bytes(b"\xff\xfe\x00\n")
    return path


def huge(folder: Path) -> Path:
    path = folder / "huge.py"
    path.write_text("#" * (MAX_FILE_BYTES + 1))
    return path


UNREADABLE = [
    pytest.param(lambda folder: folder / "missing.py", "there is no file", id="missing"),
    pytest.param(lambda folder: folder, "there is no file", id="folder"),
    pytest.param(lambda folder: Path("/dev/zero"), "there is no file", id="endless device"),
    pytest.param(lambda folder: "I cannot help with that.", "there is no file", id="one line of prose"),
    pytest.param(lambda folder: "", "there is no file", id="empty"),
    pytest.param(lambda folder: "x" * 5000, "", id="too long for a path"),
    pytest.param(lambda folder: "a\0b", "", id="null byte in a path"),
    pytest.param(binary, "cannot be read", id="not text"),
    pytest.param(huge, "more than", id="huge"),
]


@pytest.mark.parametrize(("make", "words"), UNREADABLE)
def test_a_text_that_cannot_be_read_gets_a_verdict(judge: Judge, tmp_path: Path, make: Any, words: str) -> None:
    as_candidate, as_reference = rows(judge, case(make(tmp_path)), case(RIGHT, reference=make(tmp_path)))
    assert (as_candidate["status"], as_reference["status"]) == ("rejected", "bad_problem")
    assert as_candidate["detail"]
    assert words in as_candidate["detail"]
    assert words in as_reference["detail"]


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        pytest.param("def\n", "does not parse", id="no syntax"),
        pytest.param("class Model:\n    pass\n", "lacks get_inputs", id="lacks generators"),
        pytest.param("x = " + "-" * 50_000 + "1\n", "does not parse", id="too deep for the parser"),
        pytest.param("x = '\ud800'\n", "does not parse", id="half a character"),
        pytest.param("x = 1\0\n", "does not parse", id="null byte"),
        pytest.param(REFERENCE.replace("torch.relu(x) + 1", "x.nothing"), "nothing", id="raises"),
    ],
)
def test_a_reference_that_is_none_makes_a_bad_problem(judge: Judge, reference: str, words: str) -> None:
    (row,) = rows(judge, case(RIGHT, reference=reference))
    assert row["status"] == "bad_problem"
    assert words in row["detail"]


@pytest.mark.parametrize("source", ["x = '\ud800'\n", "\0\n", "\n", "(" * 100_000 + "\n"], ids=repr)
def test_a_candidate_that_is_no_program_gets_a_verdict(judge: Judge, source: str) -> None:
    (row,) = rows(judge, case(source[:100_000]))
    assert row["status"] in ("compile_error", "rejected")
    assert json.dumps(row)


@pytest.mark.parametrize("error", [WorkerError("gone"), KeyError("a mistake of ours")], ids=["worker", "bug"])
@pytest.mark.usefixtures("hasty")
def test_a_failure_of_the_judge_that_passes_is_not_seen(fallible: FallibleJudge, error: Exception) -> None:
    fallible.fail("poison", times=2, error=error)
    given = rows(fallible, case(RIGHT), case(POISON), case(WRONG))
    assert [row["status"] == "wrong_output" for row in given] == [False, False, True]
    assert given[1]["status"] in PAID


@pytest.mark.usefixtures("hasty")
def test_a_case_on_which_the_judge_always_fails_does_not_stop_the_others(fallible: FallibleJudge) -> None:
    fallible.fail("poison", times=1000, error=WorkerError("gone"))
    given = rows(fallible, case(WRONG), case(POISON), case(WRONG))
    assert [row["status"] for row in given] == ["wrong_output", "crashed", "wrong_output"]
    assert "no verdict was reached" in given[1]["detail"]
    assert "WorkerError: gone" in given[1]["detail"]


@pytest.mark.usefixtures("hasty")
def test_a_case_that_brings_the_judge_down_does_not_harm_its_neighbours() -> None:
    with ContagiousJudge() as judge:
        given = rows(judge, case(POISON), *[case(WRONG)] * 3, case(POISON), *[case(WRONG)] * 3)
    assert [row["status"] for row in given] == ["crashed", *["wrong_output"] * 3] * 2


@pytest.mark.usefixtures("hasty")
def test_a_judge_that_fails_on_everything_stops_after_what_is_done(fallible: FallibleJudge) -> None:
    fallible.fail("class", times=1000, error=WorkerError("gone"))
    cases = [case("x\n"), case(RIGHT), case(RIGHT)]
    verdicts = judge_cases(fallible, cases, params=changed(PARAMS, workers=1), seed=0)
    assert next(verdicts)["status"] == "rejected"
    with pytest.raises(MachineError, match="fails on every case"):
        next(verdicts)


@pytest.mark.usefixtures("hasty")
def test_a_full_disk_is_nobodys_verdict(fallible: FallibleJudge) -> None:
    fallible.fail("poison", times=1000, error=MachineError("the disk is full"))
    with pytest.raises(MachineError, match="the disk is full"):
        rows(fallible, case(POISON))


def test_no_cases_give_no_verdicts(judge: Judge) -> None:
    assert rows(judge) == []


def test_one_function_judges_files_and_sources(tmp_path: Path) -> None:
    (tmp_path / "candidate.py").write_text(WRONG)
    reference = KERNELS / "problems" / "linear_relu.py"
    assert judge_source(reference, tmp_path / "candidate.py", params=PARAMS)["status"] in ("crashed", "wrong_output")
    assert judge_source(REFERENCE, str(tmp_path / "candidate.py"), params=PARAMS)["status"] == "wrong_output"


def test_a_device_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(MachineError, match="cuda:97"):
        judge_source(REFERENCE, RIGHT, device="cuda:97")


def test_params_are_checked_when_they_are_changed() -> None:
    assert changed(PARAMS, workers=5).workers == 5
    with pytest.raises(ValueError, match="device"):
        changed(PARAMS, device="tpu")


def test_the_package_offers_its_functions_and_stays_light() -> None:
    program = "import sys, tasks.judge; print('pydantic' in sys.modules, 'numpy' in sys.modules); tasks.judge.{}"
    program = program.format("judge_source; print('torch' in sys.modules)")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "False", "False"]
    assert all(getattr(tasks.judge, name) is not None for name in tasks.judge.__all__)
    with pytest.raises(AttributeError, match="no attribute 'jugde'"):
        _ = tasks.judge.jugde
