"""That a file can get no drop-in, whatever is found, is said before anything is searched, and once more at the end."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.optimizing.judging import FINAL
from tasks.search.drop_in import drop_in
from tasks.search.foreseen import fast_once, obstacle, require_name_of_its_own
from tasks.search.names import Said
from tasks.search.user_file import UserFile, read_user_file
from tasks.variants.candidate import Candidate
from tests.optimize_builders import FACTS, SOURCE, GivenJudges, by_recipe, optimized, report_on, softmax_file

QUICK = ["--provider", "candidates", "--baselines", "eager", "--window-s", "0", "--workers", "1"]
CLASS = "class Softmax(torch.nn.Module):\n"
DRAWN = f"{CLASS}    def __init__(self):\n        super().__init__()\n        self.drawn = torch.rand(()).item()\n\n"
LONG_SUM = " + ".join(["1.0"] * 400)
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


def has_both_classes(file: UserFile, name: str) -> bool:
    """Whether the drop-in's fast class inherits from the file's own."""
    candidate = Candidate(problem_id="softmax", source=SOURCE.replace("Softmax", "ModelNew"), origin="test")
    names: dict[str, Any] = {"__name__": "softmax"}
    exec(drop_in(file, FACTS, candidate, problem_id="softmax").source, names)
    return issubclass(names[name], names[f"Reference{name}"])


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
        pytest.param("from fast import Softmax", "line 13 gives the name Softmax to from fast import", id="imported"),
        pytest.param(
            f"SUM = {LONG_SUM}\nSoftmax = SUM; {LONG_SUM}",
            "line 14 gives the name Softmax to Softmax = SUM, but",
            id="beside long sums",
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


@pytest.mark.parametrize(
    ("above", "below"),
    [
        pytest.param("Softmax: type\n", "", id="an annotation"),
        pytest.param("if typing.TYPE_CHECKING:\n    from fast import Softmax\n", "", id="for type checkers"),
        pytest.param("", "\nif TYPE_CHECKING:\n    from fast import Softmax\n", id="for type checkers below"),
    ],
)
def test_a_name_that_means_the_class_in_the_end_can_get_one(tmp_path: Path, above: str, below: str) -> None:
    header = f"import typing\nfrom typing import TYPE_CHECKING\n{above}"
    file = softmax_file(tmp_path, SOURCE.replace("import torch\n", f"import torch\n{header}") + below)
    require_name_of_its_own(file)
    assert obstacle(file, FACTS) is None
    assert has_both_classes(file, "Softmax")


@pytest.mark.parametrize(
    "above",
    [
        pytest.param("from torch.nn import Identity as Model", id="at once"),
        pytest.param("try:\n    import torch as Model\nexcept ImportError:\n    pass", id="tried"),
    ],
)
def test_an_import_that_the_class_replaces_is_allowed_where_the_judge_uses_the_name_too(
    tmp_path: Path, above: str
) -> None:
    path = tmp_path / "model.py"
    kernelbench = SOURCE.replace("Softmax", "Model").replace("example_inputs", "get_inputs")
    path.write_text(kernelbench.replace("import torch\n", f"import torch\n{above}\n"))
    file = read_user_file(path)
    require_name_of_its_own(file)
    assert obstacle(file, FACTS) is None
    assert has_both_classes(file, "Model")


def test_an_import_that_the_class_replaces_is_allowed_whatever_the_class_is_called(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, SOURCE.replace("import torch\n", "import torch\nfrom torch.nn import Softmax\n"))
    require_name_of_its_own(file)
    assert obstacle(file, FACTS) is None
    assert has_both_classes(file, "Softmax")


def test_a_long_sum_is_no_other_use_of_the_name(tmp_path: Path) -> None:
    require_name_of_its_own(softmax_file(tmp_path, f"{SOURCE}\nSUM = {LONG_SUM}\n"))


def test_a_file_that_is_nested_too_deeply_is_not_refused_but_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(_: str) -> Said:
        raise RecursionError

    monkeypatch.setattr(Said, "by", too_deep)
    file = softmax_file(tmp_path, SOURCE)
    require_name_of_its_own(file)
    assert "nested too deeply" in (obstacle(file, FACTS) or "")


@pytest.mark.parametrize(
    ("class_text", "words"),
    [
        pytest.param(
            f"{CLASS}    def __init_subclass__(cls):\n        raise TypeError('final')\n\n",
            "what the module is made of cannot be told: TypeError: final",
            id="no subclass",
        ),
        pytest.param(
            f"{CLASS}    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('far', torch.zeros(2, device='meta'))\n\n",
            "makes far on meta",
            id="a buffer elsewhere",
        ),
    ],
)
def test_an_obstacle_is_one_line_in_terms_of_the_file(tmp_path: Path, class_text: str, words: str) -> None:
    said = obstacle(softmax_file(tmp_path, SOURCE.replace(CLASS, class_text)), FACTS)
    assert said is not None
    assert words in said
    assert len(said.splitlines()) == 1
    assert "_Described" not in said


CALLED = """import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = None

    def forward(self, x):
        self.rows = x.detach()
        return x


class Softmax(nn.Module):
    total = 0
    lengths = {{}}
    sizes = []

    def __init__(self):
        super().__init__()
        self.spare = nn.Identity()
        self.table = {table}
        self.calls, self.seen, self.cache = 0, [], None
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", None)

    def forward(self, x):
        {called}
        return torch.softmax(self.table(x), dim=1)


def example_inputs():
    return torch.randn(32, 64)
"""


@pytest.mark.parametrize(
    ("called", "table", "names"),
    [
        pytest.param("self.calls += 1", "Table() and nn.Identity()", "calls", id="a number that counts"),
        pytest.param("self.seen.append(x.shape[0])", "Table() and nn.Identity()", "seen", id="a list that grows"),
        pytest.param("self.cache = x.detach()", "Table() and nn.Identity()", "cache", id="a tensor that was none"),
        pytest.param(
            "self.mean = x.detach().mean(0)", "Table() and nn.Identity()", "mean", id="a buffer that was none"
        ),
        pytest.param("pass", "Table()", "table.rows", id="in a module inside"),
        pytest.param("self.calls += 1; self.seen.append(0)", "Table()", "calls, seen, table.rows", id="several"),
        pytest.param(
            "Softmax.total += 1", "Table() and nn.Identity()", "Softmax.total", id="an attribute of the class"
        ),
        pytest.param(
            "self.lengths[x.shape[0]] = len(self.lengths)",
            "Table() and nn.Identity()",
            "Softmax.lengths",
            id="a mapping of the class that is filled",
        ),
        pytest.param(
            "self.sizes.append(x.shape[0])",
            "Table() and nn.Identity()",
            "Softmax.sizes",
            id="a list of the class that grows",
        ),
        pytest.param(
            "self.last = nn.Identity(); del self.last, self.spare",
            "Table() and nn.Identity()",
            "spare",
            id="a part that is gone",
        ),
    ],
)
def test_after_what_a_call_changes_for_good_a_drop_in_is_fast_once(
    tmp_path: Path, called: str, table: str, names: str
) -> None:
    file = softmax_file(tmp_path, CALLED.format(called=called, table=table))
    assert obstacle(file, FACTS) is None
    said = fast_once(file, FACTS)
    assert said == (
        f"a call of Softmax changes {names}, after which it is not what was judged: let it keep that in buffers that "
        f"are there from the beginning, or in attributes of its own that its constructor does not set"
    )


@pytest.mark.parametrize(
    "called",
    [
        pytest.param("self.count += 1", id="a buffer that counts"),
        pytest.param("self.last = x.detach()", id="an attribute that was not there"),
        pytest.param("self.calls += 1; self.calls -= 1", id="what is put back"),
        pytest.param("assert not torch.is_tensor(x)", id="and fails"),
        pytest.param(
            "self.calls += not getattr(nn, 'is_known', False); nn.is_known = True",
            id="what only the first call changes",
        ),
    ],
)
def test_after_what_else_a_call_leaves_a_drop_in_stays_fast(tmp_path: Path, called: str) -> None:
    file = softmax_file(tmp_path, CALLED.format(called=called, table="Table() and nn.Identity()"))
    assert obstacle(file, FACTS) is None
    assert fast_once(file, FACTS) is None


def test_that_a_drop_in_would_be_fast_once_is_not_said_as_if_there_were_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "softmax.py").write_text(CALLED.format(called="self.calls += 1", table="nn.Identity()"))
    assert main(["optimize", "softmax.py:Softmax", *QUICK]) == 4
    said = capsys.readouterr()
    words = "would be fast once, since a call of Softmax changes calls, after which it is not what was judged: let it"
    assert f"a drop-in for Softmax {words}" in said.err
    assert "no drop-in can be written" not in (said.err + said.out).lower()
    verdict = json.loads((folder / "softmax-Softmax-optimized" / "verdict.json").read_text())
    assert verdict["no_drop_in_because"] is None
    assert words in verdict["not_written_because"]


def test_of_a_file_that_gets_none_it_is_not_said_that_a_drop_in_would_be_fast_once(tmp_path: Path) -> None:
    assert fast_once(softmax_file(tmp_path, SOURCE.replace(CLASS, DRAWN)), FACTS) is None


def test_a_module_that_is_another_one_each_time_is_searched_after_a_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "softmax.py").write_text(SOURCE.replace(CLASS, DRAWN))
    assert main(["optimize", "softmax.py", *QUICK]) == 4
    said = capsys.readouterr()
    assert NO_DROP_IN in said.err
    words = "change this to get one: Softmax is another one each time that it is made"
    report = (folder / "softmax-optimized" / "report.md").read_text()
    assert "wrong_output" in report
    assert f"No drop-in can be written for Softmax, whatever is found; {words}" in report
    assert words in said.out
    verdict = json.loads((folder / "softmax-optimized" / "verdict.json").read_text())
    assert verdict["no_drop_in_because"].startswith("Softmax is another one each time that it is made")


def test_of_a_module_that_can_get_one_nothing_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "softmax.py").write_text(SOURCE)
    assert main(["optimize", "softmax.py", *QUICK]) == 4
    said = capsys.readouterr()
    assert "no drop-in can be written" not in (said.err + said.out).lower()
    assert json.loads((folder / "softmax-optimized" / "verdict.json").read_text())["no_drop_in_because"] is None


def test_what_was_found_all_the_same_is_said_at_the_end(tmp_path: Path) -> None:
    file = softmax_file(tmp_path, SOURCE.replace(CLASS, DRAWN))
    judges = GivenJudges(by_recipe(call_softmax=3.0))
    outcome = optimized(file, judges)
    assert outcome.winner is None
    assert FINAL not in [rung for rung, _ in judges.asked]
    words = "judged 3.00x (2.98 to 3.02) over eager, but no drop-in can be made of it: Softmax is another one each time"
    assert words in report_on(file, outcome).splitlines()[2]
