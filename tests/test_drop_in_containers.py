"""A drop-in tells tuples from lists in its arguments: a user's forward may do other things with either.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import re
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from tasks.search.report import forms_in_words
from tasks.search.survey import Survey, survey
from tasks.search.user_file import read_user_file
from tests.drop_in_builders import imported

SOURCE = """
from collections import namedtuple

import torch
from torch import nn

Pair = namedtuple("Pair", "first second")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x[0]), type(x)


def example_inputs():
    return {}
"""
MARKS = {"return self.inner(x[0])": "return 1 + self.inner(x[0])"}
Pair = namedtuple("Pair", "first second")
Other = namedtuple("Other", "first second")
Turned = namedtuple("Pair", "second first")


class Longer(list[Any]):
    """A list with more methods."""


ONE, TWO = torch.zeros(4), torch.ones(4)
FAST_FOR = {"[[a, b]]": [[ONE, TWO]], "[(a, b)]": [(ONE, TWO)], "[Pair(a, b)]": [Pair(ONE, TWO)]}
CALLS = [
    [ONE, TWO],
    (ONE, TWO),
    Pair(ONE, TWO),
    Other(ONE, TWO),
    Turned(ONE, TWO),
    Longer([ONE, TWO]),
    (ONE,),
    [ONE, TWO, TWO],
]


def surveyed(folder: Path, returned: str) -> tuple[str, Survey]:
    source = SOURCE.replace("{}", re.sub(r"\b[ab]\b", "torch.randn(4)", returned))
    path = folder / "surveyed.py"
    path.write_text(source)
    return source, survey(read_user_file(path, "Block"))


@pytest.mark.parametrize("returned", FAST_FOR)
def test_only_the_container_that_was_judged_is_fast(tmp_path: Path, returned: str) -> None:
    source, facts = surveyed(tmp_path, returned)
    block = imported(tmp_path, source, facts=facts, marks=MARKS).Block().eval()
    for given in CALLS:
        is_judged = any(type(given) is type(judged) and len(given) == 2 for judged in FAST_FOR[returned])
        with torch.no_grad():
            found, kind = block(given)
        assert kind is type(given)
        assert torch.equal(found, given[0] + is_judged)


@pytest.mark.parametrize("returned", ["[[a]]", "([a],)"])
def test_what_holds_all_arguments_is_of_no_account(tmp_path: Path, returned: str) -> None:
    _, facts = surveyed(tmp_path, returned)
    assert facts.inputs == ([("tensor", "float32", (4,), (1,))],)


def test_a_tuple_in_a_tuple_counts_too(tmp_path: Path) -> None:
    source, facts = surveyed(tmp_path, "[(a, (b, 1))]")
    block = imported(tmp_path, source, facts=facts, marks=MARKS).Block().eval()
    with torch.no_grad():
        for inside, extra in (((TWO, 1), 1), ([TWO, 1], 0)):
            assert torch.equal(block((ONE, inside))[0], ONE + extra)


@torch.no_grad()
@pytest.mark.parametrize("number", ["inf", "-inf"])
def test_a_number_may_be_infinite(tmp_path: Path, number: str) -> None:
    source, facts = surveyed(tmp_path, f"[[a, float('{number}')]]")
    block = imported(tmp_path, source, facts=facts, marks=MARKS).Block().eval()
    for given, extra in ((float(number), 1), (-float(number), 0), (1.0, 0)):
        assert torch.equal(block([ONE, given])[0], ONE + extra)


def test_the_report_says_which_is_meant(tmp_path: Path) -> None:
    _, facts = surveyed(tmp_path, "[(a, [b, 2])]")
    assert forms_in_words(facts) == "(float32 [4], [float32 [4], 2])"
