import json
import subprocess
import sys
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
    assert all(command in said for command in ("repro", "pipeline", "problems", "judge", "sql", "report"))


def test_wrong_usage_ends_with_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["no-such-command"])
    assert ended.value.code == 2


def test_problems_are_listed_from_anywhere_below_the_project(capsys, monkeypatch):
    monkeypatch.chdir(Path("data") / "problems")
    assert main(["problems"]) == 0
    assert "level1/diag_matmul" in capsys.readouterr().out


def test_outside_a_project_it_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["problems"]) == 3
    assert "is not inside a project" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reference_judged_against_itself_is_correct(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(Path.cwd())
    reference = Path("data/problems/level1/diag_matmul.py").resolve()
    candidate = tmp_path / "candidate.py"
    source = reference.read_text()
    candidate.write_text(source.replace("class Model(", "class ModelNew("))
    assert main(["judge", str(reference), str(candidate), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["status"] == "correct"
    assert verdict["speedup_low"] <= verdict["speedup"] <= verdict["speedup_high"]


def test_a_file_that_cannot_be_read_is_named(capsys):
    assert main(["judge", "missing.py", "other.py"]) == 1
    assert "missing.py cannot be read" in capsys.readouterr().err


def test_a_reference_that_is_no_problem_says_what_it_lacks(capsys, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("class Model: pass\n")
    assert main(["judge", str(file), str(file)]) == 1
    assert "lacks get_inputs, get_init_inputs" in capsys.readouterr().err


def test_sql_before_any_run_says_what_to_do(capsys, monkeypatch, tmp_path):
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["sql", "SELECT 1"]) != 0
    assert "history.duckdb" in capsys.readouterr().err
