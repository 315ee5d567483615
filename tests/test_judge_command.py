"""`cuda-l1 judge`: what it takes, what it prints and how it ends."""

import json
import os
import resource
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from flows.cli import main
from tests.case_builders import BROKEN, PAID, RIGHT, batch, verdicts, write_cases, write_texts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, outside of any project, with some texts in it."""
    write_texts(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_verdict_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "ref.py", "wrong.py"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("wrong_output: ")
    assert "FAILED  fresh_inputs" in said.out
    assert "behind walls: " in said.err


def test_checks_that_say_the_same_are_told_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "ref.py", "right.py"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "passed" in line]
    assert any("fresh_inputs (" in line and " times)" in line for line in lines)
    assert len({*lines}) == len(lines)


def test_what_a_candidate_calls_its_dtype_can_be_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = Path(__file__).parent / "kernels"
    reference, candidate = kernels / "problems/row_softmax.py", kernels / "hostile/answers_with_half_a_character.py"
    assert main(["judge", str(reference), str(candidate)]) == 0
    assert capsys.readouterr().out.startswith("crashed: a tensor of dtype ? and ")


def test_one_case_and_a_batch_have_the_same_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cases(folder / "cases.jsonl", "right.py")
    assert main(["judge", "ref.py", "right.py", "--json", "--device", "cpu"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert batch() == 0
    assert row["status"] in PAID
    assert row["id"] == "right.py"
    assert set(row) == set(verdicts(folder / "verdicts.jsonl")[0])


def test_a_reference_that_is_no_problem_is_a_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "right.py", "right.py", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["status"] == "bad_problem"
    assert "lacks Model" in row["detail"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "either REFERENCE and CANDIDATE or --batch", id="nothing"),
        pytest.param(["ref.py"], "either REFERENCE and CANDIDATE or --batch", id="no candidate"),
        pytest.param(["ref.py", "right.py", "--batch", "cases.jsonl"], "either", id="both ways"),
        pytest.param(["--batch", "cases.jsonl"], "--batch and --out go together", id="no out"),
        pytest.param(["ref.py", "right.py", "--out", "verdicts.jsonl"], "go together", id="no batch"),
        pytest.param(["ref.py", "right.py", "--workers", "2"], "--workers is for --batch", id="workers for one"),
        pytest.param(["--batch", "c", "--out", "v", "--workers", "0"], "not a number above 0", id="no workers"),
        pytest.param(["ref.py", "right.py", "--timeout-s", "inf"], "not a number of seconds above 0", id="no limit"),
        pytest.param(["ref.py", "right.py", "--device", "gpu"], "neither cpu nor cuda:N", id="unknown device"),
        pytest.param(
            ["ref.py", "right.py", "--device", "cuda"], "leave --device out, and set judge.device: cuda", id="all GPUs"
        ),
        pytest.param(["ref.py", "right.py", "--tier", "medium"], "invalid choice: 'medium'", id="unknown tier"),
        pytest.param(["ref.py", "right.py", "--precision", "fp8"], "invalid choice: 'fp8'", id="unknown precision"),
        pytest.param(["missing.py", "right.py"], "there is no file 'missing.py'", id="missing reference"),
        pytest.param(["ref.py", "missing.py"], "there is no file 'missing.py'", id="missing candidate"),
        pytest.param(["--batch", "missing", "--out", "v"], "missing cannot be read", id="missing cases"),
        pytest.param(["--batch", "ref.py", "--out", "v"], "line 1 is no case", id="cases are something else"),
        pytest.param(["--batch", "cases.jsonl", "--out", "."], "a file of its own", id="out is a folder"),
        pytest.param(["--batch", "cases.jsonl", "--out", "cases.jsonl"], "a file of its own", id="out is the cases"),
    ],
)
def test_wrong_usage_ends_with_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    write_cases(folder / "cases.jsonl", RIGHT)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        status = main(["judge", *arguments])
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    assert words in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_machine_that_cannot_judge_ends_with_status_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cases(folder / "cases.jsonl", RIGHT)
    assert main(["judge", "ref.py", "right.py", "--device", "cuda:97"]) == 3
    assert batch("--device", "cuda:97") == 3
    assert capsys.readouterr().err.count("cuda:97") >= 2
    assert verdicts(folder / "verdicts.jsonl") == []


def test_params_of_the_project_above_are_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dvc.yaml").touch()
    (folder / "params.yaml").write_text("seed: nought\n")
    assert main(["judge", "ref.py", "right.py"]) == 2
    assert "params.yaml has" in capsys.readouterr().err


def test_every_case_gets_a_line_in_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cases(folder / "cases.jsonl", "wrong.py", RIGHT, "missing.py", BROKEN, "right.py")
    assert batch("--workers", "1", out="new/folder/verdicts.jsonl") == 0
    rows = verdicts(folder / "new/folder/verdicts.jsonl")
    assert [row["id"] for row in rows] == [f"case {number}" for number in range(5)]
    statuses = [row["status"] for row in rows]
    assert [statuses[0], *statuses[2:4]] == ["wrong_output", "rejected", "compile_error"]
    assert {statuses[1], statuses[4]} <= set(PAID)
    said = capsys.readouterr()
    assert "5 verdicts in new/folder/verdicts.jsonl" in said.err
    assert "case/s" not in said.err  # nobody watches a bar here
    assert said.out == ""


def test_a_terminal_sees_the_rate_and_the_time_left(folder: Path) -> None:
    write_cases(folder / "cases.jsonl", *[BROKEN] * 3)
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with open(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "judge", "--batch", "cases.jsonl", "--out", "verdicts.jsonl"],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stderr=theirs,
        )
        assert process.wait(timeout=60) == 0
        os.close(theirs)
        seen = terminal.read(1 << 16).decode()
    assert "judge: 100%" in seen
    assert "case/s" in seen


def test_paths_are_relative_to_the_file_of_cases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cases(folder / "cases.jsonl", "wrong.py")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert batch(cases="../cases.jsonl") == 0
    assert [row["status"] for row in verdicts(folder / "below" / "verdicts.jsonl")] == ["wrong_output"]


def test_a_machine_on_which_the_judge_does_not_start_is_said_to_be_one(folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "flows.cli", "judge", "ref.py", "right.py"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY)),
    )
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.startswith("MachineError: ")
