"""Values that equal the judged ones are not always them: -0.0 equals 0.0, and True equals 1, but answers may differ.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from tasks.search.survey import Survey, survey
from tasks.search.user_file import read_user_file
from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x, option):
        return self.inner(x), repr(option)


def example_inputs():
    return [torch.randn(4), OPTION]
"""
MARKS = {"return self.inner(x)": "return 1 + self.inner(x)"}
EQUAL: dict[str, list[Any]] = {
    "0.0": [-0.0, 0, False],
    "-0.0": [0.0, 0, False],
    "1": [1.0, True],
    "True": [1, 1.0],
    "(0.0, 1)": [(-0.0, 1), (0.0, True)],
    "{'a': 0.0}": [{"a": -0.0}, {"a": False}],
    "{1: None}": [{True: None}, {1.0: None}],
    "{0.0: None}": [{-0.0: None}, {0: None}],
    "{(0, 'a'): None}": [{(False, "a"): None}, {(0.0, "a"): None}],
}


def surveyed(folder: Path, option: str) -> tuple[str, Survey]:
    source = SOURCE.replace("OPTION", option)
    path = folder / "surveyed.py"
    path.write_text(source)
    return source, survey(read_user_file(path, "Block"))


@torch.no_grad()
@pytest.mark.parametrize("option", EQUAL)
def test_what_only_equals_the_judged_value_leads_to_the_users_forward(tmp_path: Path, option: str) -> None:
    source, facts = surveyed(tmp_path, option)
    block, x = imported(tmp_path, source, facts=facts, marks=MARKS).Block().eval(), torch.zeros(4)
    for given in [eval(option), *EQUAL[option]]:
        found, text = block(x, given)
        assert text == repr(given)
        assert torch.equal(found, x + (text == option))


@torch.no_grad()
def test_keys_that_were_made_anew_are_the_judged_ones(tmp_path: Path) -> None:
    source, facts = surveyed(tmp_path, "{('a', 1000): None, 'a b': None}")
    block, x = imported(tmp_path, source, facts=facts, marks=MARKS).Block().eval(), torch.zeros(4)
    keys = ("a", int("1000")), " ".join("ab")
    assert torch.equal(block(x, dict.fromkeys(keys))[0], x + 1)
    assert torch.equal(block(x, dict.fromkeys(reversed(keys)))[0], x)
    assert torch.equal(block(x, dict.fromkeys(keys[:1]))[0], x)
