"""A class with a decorator that writes constructors is refused: a class in its place would get another one."""

from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.search.survey import survey
from tasks.search.user_file import read_user_file

SOURCE = """import dataclasses
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(eq=False)
class Part(nn.Module):
    size: int = 4

    def __post_init__(self):
        super().__init__()
        self.linear = nn.Linear(self.size, self.size)

    def forward(self, x):
        return self.linear(x)


class Whole(Part):
    pass


class Mine(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.part = Part(size)

    def forward(self, x):
        return self.part(x)


def example_inputs():
    return torch.randn(2, 4)
"""
OWN = "class Mine(nn.Module):\n"


@pytest.mark.parametrize(
    ("old", "new", "name", "words"),
    [
        pytest.param("", "", "Part", "@dataclass(eq=False) in line 8 writes constructors, ", id="alone"),
        pytest.param(OWN, f"@dataclass(eq=False)\n{OWN}", "Mine", "@dataclass(eq=False) in line 24", id="beside one"),
        pytest.param(
            "@dataclass(eq=False)\n",
            "@(lambda kind: kind)\n@dataclasses.dataclass(eq=False, repr=False)\n",
            "Part",
            "@dataclasses.dataclass(eq=False, repr=False) in line 9 writes constructors, ",
            id="below another decorator",
        ),
    ],
)
def test_a_constructor_that_a_decorator_writes_is_refused_with_the_line_and_the_remedy(
    tmp_path: Path, old: str, new: str, name: str, words: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(ProblemError) as refused:
        survey(read_user_file(path, name))
    said = str(refused.value).removeprefix(f"{path}: ")
    assert said.startswith(words)
    assert f"in the place of {name} would have another one: write __init__ out" in said


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        pytest.param("", "", "Mine", id="of a part"),
        pytest.param("", "", "Whole", id="of a parent"),
        pytest.param(OWN, f"@dataclass(eq=False, init=False)\n{OWN}", "Mine", id="that has to write none"),
    ],
)
def test_a_dataclass_whose_constructor_stays_is_not_refused(tmp_path: Path, old: str, new: str, name: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace(old, new, 1))
    assert survey(read_user_file(path, name)).inputs
