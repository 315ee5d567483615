"""`cuda-l1 optimize` loses nothing that stands where it would write."""

from pathlib import Path

import pytest

from flows.cli import main

TWO = """import torch
from torch import nn


class One(nn.Module):
    def forward(self, x):
        return x + 1


class Other(nn.Module):
    def forward(self, x):
        return x + 2


def example_inputs():
    return torch.randn(8)
"""
ROW = '{"id": 1, "text": "of the user"}\n'
DROP_IN = "# Written by cuda-l1 optimize.\n\n\nclass One(ReferenceOne):\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two.py").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_class_that_is_named_has_a_folder_of_its_own(folder: Path) -> None:
    (folder / "none").mkdir()
    for name in ("One", "Other"):
        main(["optimize", f"two.py:{name}", "--provider", "none", "--baselines", "eager", "--window-s", "0"])
    assert {path.name for path in folder.glob("*-optimized")} == {"two-One-optimized", "two-Other-optimized"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("# The user's own.\n", id="a file of the user's own"),
        pytest.param(DROP_IN, id="the drop-in for another class"),
    ],
)
def test_what_it_has_not_written_for_this_class_is_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "two.py").write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["optimize", "two.py:Other", "--out", "out"])
    assert ended.value.code == 2
    assert "--out out has a two.py that is no drop-in for Other" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["two.py"]
    assert (out / "two.py").read_text() == content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("report.md", "# Notes of mine\n", id="a report"),
        pytest.param("verdict.json", '{"faster": true}\n', id="a verdict"),
        pytest.param("verdict.json", "guilty\n", id="a verdict that is no JSON"),
        pytest.param("journal.jsonl", ROW, id="a journal"),
        pytest.param("journal.jsonl", "Dear diary", id="a journal that is no JSON"),
        pytest.param("answers.jsonl", ROW, id="answers"),
        pytest.param("answers.jsonl", "42", id="answers that are no objects"),
    ],
)
def test_files_of_the_user_under_the_names_of_its_own_are_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    out = folder / "out"
    out.mkdir()
    (out / name).write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["optimize", "two.py:Other", "--out", "out"])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert f"--out out has a {name} that this command has not written" in complaint
    assert "move it away, or name another folder" in complaint
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == content


def test_a_folder_under_the_name_of_the_report_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out" / "report.md").mkdir(parents=True)
    with pytest.raises(SystemExit):
        main(["optimize", "two.py:Other", "--out", "out"])
    assert "--out out has a report.md that this command has not written" in capsys.readouterr().err


def test_what_it_has_written_itself_is_written_anew(folder: Path) -> None:
    command = ["optimize", "two.py:Other", "--provider", "none", "--baselines", "eager", "--window-s", "0"]
    (folder / "none").mkdir()
    out = folder / "two-Other-optimized"
    for _ in range(2):
        assert main(command) == 4
    with (out / "journal.jsonl").open("r+") as journal:  # as a kill leaves it
        journal.truncate(20)
    (out / "answers.jsonl").write_text('{"wri')
    assert main(command) == 4


def test_a_refused_run_leaves_no_folder_behind(folder: Path) -> None:
    (folder / "two.py").write_text(TWO.replace("randn(8)", "nowhere(8)"))
    assert main(["optimize", "two.py:Other", "--out", "some/out"]) == 1
    assert [path.name for path in folder.iterdir()] == ["two.py"]


def test_a_run_that_is_refused_by_the_judge_leaves_no_folder_behind(folder: Path) -> None:
    (folder / "none").mkdir()
    (folder / "two.py").write_text(TWO.replace("x + 2", "x + torch.rand(8)"))
    assert main(["optimize", "two.py:Other", "--provider", "none", "--window-s", "0", "--out", "out"]) == 1
    assert {path.name for path in folder.iterdir()} == {"two.py", "none"}


def test_a_folder_of_the_user_stays_where_a_run_is_refused(folder: Path) -> None:
    (folder / "two.py").write_text(TWO.replace("randn(8)", "nowhere(8)"))
    (folder / "out").mkdir()
    assert main(["optimize", "two.py:Other", "--out", "out"]) == 1
    assert (folder / "out").is_dir()
