"""The table over the collection: what counts as fooled, as wronged and as expected."""

import json
import sys
from pathlib import Path

import pytest

from flows.benches.collection import Row, chosen, counts, judge_all, main, table
from flows.benches.specimens import read_collection
from tasks.errors import RecordError
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Timing, Verdict
from tests.judge_builders import PARAMS


def row(name: str, status: Status | None, *expected: str, speedup: float = 1.0) -> Row:
    """A row without any judging; no status means that the judge failed."""
    verdict = status and Verdict(
        candidate_id="candidate",
        problem_id="problem",
        status=status,
        device="device",
        protocol="protocol",
        detail="" if status is Status.CORRECT else "output 0 is off",
        timing=Timing(baseline="eager", reference_ms=(speedup,), candidate_ms=(1.0,))
        if status is Status.CORRECT
        else None,
        seconds=1.0,
        judged_at=0.0,
    )
    return Row(name=name, expected=expected, verdict=verdict or None, failure="" if status else "WorkerError: gone")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row("hostile/a", Status.WRONG_OUTPUT, "wrong_output")], "0 of 1 hostile paid above 1.05x, 0 of 0"),
        ([row("hostile/a", Status.CORRECT, "correct", speedup=1.04)], "0 of 1 hostile paid above 1.05x, 0 of 0"),
        ([row("hostile/a", Status.CORRECT, "correct", speedup=1.06)], "1 of 1 hostile paid above 1.05x, 0 of 0"),
        ([row("honest/a", Status.CORRECT, "correct", speedup=9.0)], "0 of 0 hostile paid above 1.05x, 0 of 1"),
        ([row("honest/a", Status.UNSTABLE, "correct")], "0 of 0 hostile paid above 1.05x, 1 of 1"),
        ([row("honest/a", None, "correct")], "0 of 0 hostile paid above 1.05x, 1 of 1"),
    ],
    ids=["refused", "not paid", "paid", "honest paid", "honest unstable", "judge failed"],
)
def test_counts_say_who_was_paid_and_who_was_wronged(rows, words):
    assert counts(rows).startswith(words)


def test_what_is_not_as_expected_is_marked_and_explained():
    rows = [
        row("broken/a", Status.CRASHED, "crashed"),
        row("honest/b", Status.WRONG_OUTPUT, "correct"),
        row("honest/c", None, "correct"),
        row("hostile/d", Status.CORRECT, "correct", "cheated", speedup=2.0),
    ]
    lines = table(rows).splitlines()
    assert [line.split()[1] == "!" for line in lines[1:5]] == [False, True, True, True]
    assert lines[5:8] == ["! honest/b: 'output 0 is off'", "! honest/c: 'WorkerError: gone'", "! hostile/d: 'paid'"]
    assert lines[8].endswith("2 of 4 other than expected")


def test_names_choose_and_a_name_that_is_not_there_is_refused():
    collection = read_collection(Path("tests/kernels/cuda"))
    assert [one.name for one in chosen(collection, ["triton_softmax"])] == ["honest/triton_softmax"]
    assert len(chosen(collection, [])) == len(collection)
    with pytest.raises(RecordError, match="no_such_kernel"):
        chosen(collection, ["no_such_kernel"])


def test_a_candidate_that_breaks_the_judge_does_not_end_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(Judge, "judge", lambda self, problem, candidate, *, seed: 1 // 0)
    rows = judge_all(chosen(read_collection(Path("tests/kernels")), ["zeros"]), PARAMS, tmp_path / "verdicts.jsonl")
    assert {(row.status, row.failure) for row in rows} == {
        ("no_verdict", "ZeroDivisionError: integer division or modulo by zero")
    }


def test_the_command_judges_writes_and_prints(tmp_path, monkeypatch, capsys):
    names = ["broken/no_forward", "honest/other_names", "hostile/empty_output"]
    out = tmp_path / "verdicts.jsonl"
    monkeypatch.setattr(sys, "argv", ["bench_collection", "--out", str(out), "--workers", "1", "--only", *names])
    main()
    rows = {row["name"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert sorted(rows) == names
    assert rows["broken/no_forward"]["status"] == "rejected"
    assert rows["hostile/empty_output"]["verdict"]["checks"]
    assert rows["honest/other_names"]["status"] in ("correct", "unstable")
    assert "of 1 hostile paid above 1.05x, " in capsys.readouterr().out
