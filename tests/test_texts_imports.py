"""The text that is judged calls the user's class Model, and imports what the file imports, whatever that is called."""

import types
from pathlib import Path

import pytest

from tasks.problems.problem import Problem, Split
from tasks.search.drop_in import ENTRY
from tasks.search.survey import Survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file
from tasks.search.wrapping import wrapped_case
from tasks.variants.candidate import Candidate

SOURCE = """import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 4)
"""
KERNELBENCH = SOURCE.replace("class Linear", "class Model").replace("example_inputs", "get_inputs")
FACTS = Survey(inputs=(("tensor", "float32", (3, 4), (4, 1)),), named_inputs={}, constructor=())
OTHERS = {"Model": 1, "OtherModel": 2, "ModelNew": 3, "get_inputs": 4}


@pytest.fixture(autouse=True)
def _others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside the user's that has what the judge's names are too; the current folder, which programs change."""
    (tmp_path / "library_of_others.py").write_text("".join(f"{name} = {value}\n" for name, value in OTHERS.items()))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def run(source: str) -> dict[str, object]:
    names = vars(types.ModuleType("program"))
    exec(source, names)
    return names


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        pytest.param("from torch.nn import Linear as Plain", "Plain", "Linear", id="what the class is called"),
        pytest.param("from torch.nn import Linear", None, None, id="the name of the class"),
        pytest.param("from library_of_others import Model as Theirs", "Theirs", 1, id="Model"),
        pytest.param("from library_of_others import get_inputs as theirs", "theirs", 4, id="get_inputs"),
        pytest.param("from library_of_others import Model", "OtherModel", 1, id="under the name Model"),
    ],
)
def test_imports_stay_what_they_are(tmp_path: Path, line: str, name: str | None, value: object) -> None:
    path = tmp_path / "linear.py"
    path.write_text(SOURCE.replace("import torch\n", f"import torch\n{line}\n", 1))
    texts = problem_texts(read_user_file(path, "Linear"), FACTS)
    for text in (texts.judged.source, texts.shown.source):
        names = run(text)
        assert "inner" in vars(names["Model"]())["_modules"]  # type: ignore[operator]
        if name:
            assert getattr(names[name], "__name__", names[name]) == value


def test_a_module_around_a_program_leaves_its_imports_as_they_are() -> None:
    line = "import torch\nfrom library_of_others import Model as Theirs, ModelNew as Newer\n"
    source = KERNELBENCH.replace("import torch\n", line, 1)
    problem = Problem(problem_id="x", level=1, family="Model", split=Split.HELD_OUT, source=source)
    made = Candidate(problem_id="x", source=source.replace("class Model", f"class {ENTRY}"), origin="test")
    answer = "return self.inner(*inputs, **named)"
    for program, name in zip(wrapped_case(problem, made, answer=answer, origin="test"), ("Model", ENTRY), strict=True):
        names = run(program.source)
        assert (names["Theirs"], names["Newer"]) == (1, 3)
        assert "inner" in vars(names[name]())["_modules"]  # type: ignore[operator]
