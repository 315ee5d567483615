"""Members of enumerations and the like are no plain data to a survey, though they inherit from a number or a string."""

from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.search.survey import survey
from tasks.search.user_file import read_user_file

SOURCE = """import enum
from collections import namedtuple

import numpy
import torch
from torch import nn

Sizes = namedtuple("Sizes", "wide high")


class Mode(str, enum.Enum):
    SUM = "sum"


class Order(enum.IntEnum):
    FIRST = 1


class Mine(nn.Module):
    def __init__(self, argument=None):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, argument=None):
        return self.linear(x)


def example_inputs():
    return [torch.rand(2, 4), None]


def example_init():
    return [None]
"""
KINDS = {"Mode.SUM": "Mode", "Order.FIRST": "Order", "numpy.float64(2.0)": "float64"}


@pytest.mark.parametrize("value", [*KINDS, "Sizes(1, 2)", "[Mode.SUM]", "[Sizes(1, 2)]"])
def test_arguments_of_the_constructor_that_are_more_than_plain_data_stay_with_the_file(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("return [None]", f"return [{value}]"))
    assert survey(read_user_file(path, "Mine")).constructor is None


@pytest.mark.parametrize("value", ["float('inf')", "[-float('inf')]", "float('nan')"])
def test_numbers_that_cannot_be_written_down_stay_with_the_file_too(tmp_path: Path, value: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("return [None]", f"return [{value}]"))
    assert survey(read_user_file(path, "Mine")).constructor is None


@pytest.mark.parametrize("value", KINDS)
def test_inputs_that_are_more_than_plain_data_are_refused_by_their_kind(tmp_path: Path, value: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("4), None]", f"4), {value}]"))
    with pytest.raises(ProblemError) as refused:
        survey(read_user_file(path, "Mine"))
    assert f"example_inputs()[1] is a {KINDS[value]}, but arguments can be tensors, numbers" in str(refused.value)


@pytest.mark.parametrize("key", ["Mode.SUM", "(1, Mode.SUM)", "float('inf')"])
def test_keys_that_are_more_than_plain_data_are_refused_by_their_kind(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("4), None]", f"4), {{{key}: 1}}]"))
    with pytest.raises(
        ProblemError, match=r"example_inputs\(\)\[1\] has a (Mode|tuple|float) among its keys, which can be"
    ):
        survey(read_user_file(path, "Mine"))


def test_tuples_of_plain_data_may_be_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("4), None]", "4), {(1, 2): 1}]"))
    assert survey(read_user_file(path, "Mine")).inputs[1] == {(1, 2): ("value", 1)}


@pytest.mark.parametrize("values", ["1, 1.0", "True, 1", "None, 'sum'"])
def test_plain_data_of_another_kind_at_the_next_call_are_refused(tmp_path: Path, values: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("4), None]", "4), next(values)]") + f"\n\nvalues = iter([{values}])\n")
    with pytest.raises(ProblemError, match=r"in one call and a .* in the next: let it always give the same"):
        survey(read_user_file(path, "Mine"))
