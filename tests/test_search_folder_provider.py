"""Candidates from a folder are judged in the mode that the reference is judged in, whether they think of it or not."""

from pathlib import Path

import pytest
import torch

from tasks.problems.problem import Problem, Split
from tasks.search.folder_provider import FolderProvider
from tasks.search.survey import Survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file

ORDINARY = """import torch
from torch import nn


class Mine(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(x)


def example_inputs():
    return torch.randn(2, 4)
"""
KERNELBENCH = ORDINARY.replace("Mine", "Model").replace("example_inputs", "get_inputs")
OWN = ORDINARY.partition("\n\n\ndef ")[0].replace("Mine", "ModelNew")
INHERITED = OWN.replace("ModelNew", "Model") + "\n\n\nclass ModelNew(Model):\n    pass\n"
MADE = OWN.replace("ModelNew", "Made") + "\n\n\ndef ModelNew(size=4):\n    return Made(size).eval()\n"
FACTS = Survey(inputs=(("tensor", "float32", (2, 4), (4, 1)),), named_inputs={}, constructor=())


def problem_of(folder: Path, source: str) -> Problem:
    path = folder / "mine.py"
    path.write_text(source)
    return problem_texts(read_user_file(path), FACTS).shown


def provided(folder: Path, problem: Problem, source: str) -> str:
    candidates = folder / "candidates"
    candidates.mkdir()
    (candidates / "one.py").write_text(source, encoding="utf-8")
    (candidate,) = FolderProvider(candidates).candidates(problem, seed=0)
    return candidate.source


@pytest.mark.parametrize("source", [OWN, INHERITED, MADE], ids=["own constructor", "inherited constructor", "function"])
def test_a_candidate_for_an_ordinary_module_is_in_evaluation_mode(tmp_path: Path, source: str) -> None:
    scope: dict[str, type[torch.nn.Module]] = {}
    exec(provided(tmp_path, problem_of(tmp_path, ORDINARY), source), scope)
    model = scope["ModelNew"](4)
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(MADE, id="a function"),
        pytest.param(OWN.replace("Dropout()\n", "Dropout()\n        self.eval()\n"), id="it does so itself"),
        pytest.param("class ModelNew(\n", id="it does not parse"),
        pytest.param("# é\nfrom elsewhere import ModelNew\n", id="it is no class of the file"),
    ],
)
def test_a_text_with_nothing_to_add_stays_as_it_is(tmp_path: Path, source: str) -> None:
    assert provided(tmp_path, problem_of(tmp_path, ORDINARY), source) == source


def test_a_candidate_for_a_problem_that_chooses_its_own_mode_chooses_it_too(tmp_path: Path) -> None:
    assert provided(tmp_path, problem_of(tmp_path, KERNELBENCH), OWN) == OWN


def test_a_problem_that_is_no_text_of_a_class_changes_no_candidate(tmp_path: Path) -> None:
    problem = Problem(problem_id="x", level=1, family="x", split=Split.HELD_OUT, source=KERNELBENCH + "Model = Model\n")
    assert provided(tmp_path, problem, OWN) == OWN
