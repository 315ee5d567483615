import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from flows.cli import main

HEAVY = ("torch", "prefect", "mlflow", "polars", "duckdb", "transformers")


def test_help_names_every_command_and_imports_nothing_heavy():
    program = (
        "import sys\ntry:\n    from flows import cli; cli.main(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.rstrip().endswith("[]"), said
    assert all(command in said for command in ("repro", "pipeline", "problems", "judge", "hacks", "sql", "report"))


def test_the_version_is_that_of_the_installed_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"cuda-l1 {version('cuda-l1-pipeline')}\n"


def test_wrong_usage_ends_with_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["no-such-command"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "command",
    [
        *(["judge"], ["kernelbench"], ["optimize"], ["fits"], ["problems"], ["sql"], ["report"]),
        *(["history"], ["history", "check"], ["hacks"], ["hacks", "add"]),
    ],
    ids=" ".join,
)
def test_the_help_of_a_command_says_its_exit_codes(capsys, command):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    said = " ".join(capsys.readouterr().out.split()).lower()
    assert "exit codes: 0 " in said
    assert "2 wrong usage" in said


@pytest.mark.parametrize(
    "command",
    [
        ["optimize", "none.py"],
        ["kernelbench", "none.json", "--out", "out"],
        ["judge", "none.py", "none.py"],
        ["judge", "--batch", "none.jsonl", "--out", "verdicts.jsonl"],
        ["sql", "FROM runs", "--history", "none.duckdb"],
        ["history", "check", "none.duckdb"],
        ["hacks", "check", "none.py"],
        ["report", "--history", "none.duckdb"],
        ["problems", "--from", "none.jsonl"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_named_and_not_there_is_wrong_usage_for_every_command(capsys, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(command)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert "none." in capsys.readouterr().err


@pytest.mark.parametrize("command", [["history", "check", "."], ["history", "rebuild", "--out", "."]], ids=" ".join)
def test_a_folder_instead_of_a_history_is_wrong_usage(capsys, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "is a folder; name a file" in capsys.readouterr().err


def test_a_full_disk_under_the_output_is_said():
    command = [sys.executable, "-m", "flows.cli", "problems"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr == "MachineError: the output cannot be written: No space left on device; free some space\n"


def test_problems_are_listed_from_anywhere_below_the_project(capsys, monkeypatch):
    monkeypatch.chdir(Path("data") / "problems")
    assert main(["problems"]) == 0
    assert "level1/diag_matmul" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [["problems"], ["history", "diff", "a", "b"], ["history", "check"], ["hacks", "list"], ["sql", "SELECT 1"]],
    ids=" ".join,
)
def test_outside_a_project_it_says_so_with_the_remedy(capsys, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 3
    complaint = capsys.readouterr().err
    assert "is not inside a project" in complaint
    assert "; cd into one" in complaint


def test_a_history_that_can_be_checked_outside_a_project_is_named_in_the_remedy(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["history", "check"]) == 3
    assert "; cd into one, or name the FILE to check" in capsys.readouterr().err


def test_sql_before_any_run_says_what_to_do(capsys, monkeypatch, tmp_path):
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["sql", "SELECT 1"]) != 0
    assert "history.duckdb" in capsys.readouterr().err
