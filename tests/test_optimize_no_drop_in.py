"""That a file can get no drop-in, whatever is found, is said before anything is searched, and once more at the end."""

from pathlib import Path

import pytest

from flows.cli import main
from flows.optimizing.judging import FINAL
from tests.optimize_builders import SOURCE, GivenJudges, by_recipe, optimized, report_on, softmax_file

QUICK = ["--provider", "candidates", "--baselines", "eager", "--window-s", "0", "--workers", "1"]
CLASS = "class Softmax(torch.nn.Module):\n"
DRAWN = f"{CLASS}    def __init__(self):\n        super().__init__()\n        self.drawn = torch.rand(()).item()\n\n"
NO_DROP_IN = (
    "so what follows only tells whether it can be faster; change this to get one: Softmax is another one each time"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a candidate that is wrong."""
    (tmp_path / "candidates").mkdir()
    (tmp_path / "candidates" / "wrong.py").write_text(SOURCE.replace("Softmax", "ModelNew").replace("e /", "1 /"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("added", "words"),
    [
        pytest.param("Softmax = Softmax()", "line 13 gives the name Softmax to Softmax = Softmax()", id="a module"),
        pytest.param(
            "\nSoftmax = torch.compile(Softmax)",
            "line 14 gives the name Softmax to Softmax = torch.compile(Softmax)",
            id="wrapped",
        ),
        pytest.param(
            "if torch:\n    class Softmax(Softmax):\n        pass",
            "line 14 gives the name Softmax to class Softmax(Softmax)",
            id="another class",
        ),
        pytest.param(
            "def reset():\n    global Softmax\n    Softmax = None",
            "line 15 gives the name Softmax to Softmax = None",
            id="in a function",
        ),
        pytest.param(
            "try:\n    from fast import Softmax\nexcept ImportError:\n    torch.manual_seed(0)",
            "line 14 gives the name Softmax to from fast import Softmax",
            id="an import",
        ),
    ],
)
def test_a_name_that_is_given_to_something_else_is_refused_with_the_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str], added: str, words: str
) -> None:
    (folder / "softmax.py").write_text(f"{SOURCE}\n{added}\n")
    assert main(["optimize", "softmax.py", *QUICK]) == 1
    said = capsys.readouterr().err
    assert f"softmax.py: {words}" in said
    assert "call that otherwise" in said
    assert len(said.splitlines()) == 1
    assert not (folder / "softmax-optimized").exists()


def test_a_module_that_is_another_one_each_time_is_searched_after_a_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "softmax.py").write_text(SOURCE.replace(CLASS, DRAWN))
    assert main(["optimize", "softmax.py", *QUICK]) == 4
    assert NO_DROP_IN in capsys.readouterr().err
    assert "wrong_output" in (folder / "softmax-optimized" / "report.md").read_text()


def test_of_a_module_that_can_get_one_nothing_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "softmax.py").write_text(SOURCE)
    assert main(["optimize", "softmax.py", *QUICK]) == 4
    assert "drop-in" not in capsys.readouterr().err


def test_what_was_found_all_the_same_is_said_at_the_end(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, SOURCE.replace(CLASS, DRAWN))
    judges = GivenJudges(by_recipe(call_softmax=3.0))
    outcome = optimized(file, judges)
    assert outcome.winner is None
    assert FINAL not in [rung for rung, _ in judges.asked]
    words = "judged 3.00x (2.98 to 3.02) over eager, but no drop-in can be made of it: Softmax is another one each time"
    assert words in report_on(file, outcome).splitlines()[2]
