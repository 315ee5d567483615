"""Arguments of a constructor that contain themselves lead to the user's own forward, and inputs that do are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tasks.errors import ProblemError
from tasks.search.survey import survey
from tasks.search.user_file import read_user_file
from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, links=None):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
OF_ITS_OWN = {"super().__init__()": "super().__init__()\n        self.more = 1"}
IN_ITSELF: list[Any] = []
IN_ITSELF.append(IN_ITSELF)
BY_NAME: dict[str, Any] = {}
BY_NAME["self"] = [BY_NAME]
RETURNED = "links = [torch.randn(3, 2, 4)]\n    links.append(links)\n    return links"


@pytest.mark.parametrize("argument", [IN_ITSELF, BY_NAME, (IN_ITSELF,)], ids=["a list", "a mapping", "in a tuple"])
def test_a_constructor_that_gets_what_contains_itself_makes_a_module_that_warns(tmp_path: Path, argument: Any) -> None:
    module = imported(tmp_path, SOURCE, marks=OF_ITS_OWN)
    block, x = module.Block(argument), module.example_inputs()
    with pytest.warns(UserWarning, match="stays as slow .*an argument .* contains itself"), torch.no_grad():
        assert torch.equal(block(x), block.inner(x))


def test_an_attribute_that_contains_itself_leads_to_the_own_forward(tmp_path: Path) -> None:
    module = imported(tmp_path, SOURCE)
    block, x = module.Block(), module.example_inputs()
    with torch.no_grad():
        assert torch.equal(block(x), 1 + block.inner(x))
        block.links = IN_ITSELF
        with pytest.warns(UserWarning, match="stays as slow"):
            assert torch.equal(block(x), block.inner(x))
        assert torch.equal(block(x), block.inner(x))


def test_inputs_that_contain_themselves_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.replace("return torch.randn(3, 2, 4)", RETURNED))
    with pytest.raises(ProblemError, match=r"mine.py: example_inputs\(\) contains itself: .*") as refused:
        survey(read_user_file(path))
    assert len(str(refused.value).splitlines()) == 1


def test_arguments_of_the_constructor_that_contain_themselves_are_no_plain_data(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    returned = RETURNED.replace("torch.randn(3, 2, 4)", "1").replace("return links", "return [links]")
    path.write_text(f"{SOURCE}\n\ndef example_init():\n    {returned}\n")
    assert survey(read_user_file(path)).constructor is None
