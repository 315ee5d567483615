"""`cuda-l1 hacks`: what a user sees of the collection, and what is refused with a word."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from flows.commands.hacks import add_hacks_command
from tasks.errors import MachineError, RecordError

HACK = "import os\n\nclass ModelNew:\n    def forward(self, x):\n        os._exit(0)\n"


def hacks(*words: str) -> None:
    parser = argparse.ArgumentParser()
    add_hacks_command(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["hacks", *words])
    arguments.run(arguments)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder below a project of its own, with a candidate in it."""
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    Path("leaves.py").write_text(HACK)
    return tmp_path


def test_a_case_that_is_added_is_listed_and_shown(project, capsys):
    hacks("add", "leaves.py", "--group", "E1 exit", "--words", "leaves before the clock stops")
    case_id = capsys.readouterr().out.split()[1]
    hacks("list")
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["id", "added", "origin", "group", "name"]
    assert row.startswith(case_id)
    assert row.split()[2:] == ["user", "E1", "exit", "leaves"]
    hacks("show", case_id[:8])
    shown = capsys.readouterr().out
    assert HACK in shown
    assert "leaves before the clock stops" in shown
    assert (project / "data" / "history.duckdb").exists()


def test_adding_the_same_file_again_says_so_and_changes_nothing(project, capsys):
    hacks("add", "leaves.py", "--group", "E1")
    hacks("add", "leaves.py", "--group", "E2", "--name", "other")
    assert "is in the collection already" in capsys.readouterr().out
    hacks("list")
    assert "E2" not in capsys.readouterr().out


def test_an_empty_collection_says_how_to_begin(project, capsys):
    hacks("list")
    assert "cuda-l1 hacks add" in capsys.readouterr().out


def test_a_file_is_compared_with_the_collection_and_read_for_findings(project, capsys):
    hacks("add", "leaves.py", "--group", "E1 exit")
    capsys.readouterr()
    Path("mine.py").write_text(HACK.replace("(0)", "(1)"))
    hacks("check", "mine.py")
    finding, similar = capsys.readouterr().out.splitlines()
    assert finding.split()[:4] == ["suspicious", "line", "5", "exit:"]
    assert similar.startswith("similar 0.")
    assert similar.endswith("E1 exit: leaves")


def test_control_characters_of_a_program_do_not_reach_the_terminal(project, capsys):
    Path("leaves.py").write_text(HACK + "# \x1b]0;owned\x07 \x9b2J\n")
    hacks("add", "leaves.py", "--group", "E1")
    hacks("show", "leaves")
    shown = capsys.readouterr().out
    assert not set(shown) & {"\x1b", "\x07", "\x9b"}
    assert "?]0;owned?" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nothing"], "no hacking case is called 'nothing'"),
        (["add", "binary.py", "--group", "E1"], "binary.py cannot be read"),
        (["add", "leaves.py", "--group", " "], "needs a group"),
    ],
    ids=["unknown case", "not text", "empty group"],
)
def test_what_cannot_be_done_is_said_with_its_name(project, words, said):
    Path("binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordError, match=said):
        hacks(*words)


@pytest.mark.parametrize("words", [[], ["add", "leaves.py"], ["show"], ["forget", "x"]], ids=str)
def test_wrong_usage_ends_with_status_2(project, words):
    with pytest.raises(SystemExit) as ended:
        hacks(*words)
    assert ended.value.code == 2


@pytest.mark.parametrize("words", [["add", "missing.py", "--group", "clock"], ["check", "missing.py"]], ids=str)
def test_a_file_that_is_not_there_is_wrong_usage(project, words, capsys):
    with pytest.raises(SystemExit) as ended:
        hacks(*words)
    assert ended.value.code == 2
    assert "there is no missing.py" in capsys.readouterr().err


def test_outside_a_project_it_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MachineError, match="is not inside a project"):
        hacks("list")


def test_registering_the_command_imports_nothing_heavy():
    program = (
        "import sys, flows.commands.hacks\n"
        "print([name for name in ('torch', 'duckdb', 'polars', 'httpx', 'numpy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
