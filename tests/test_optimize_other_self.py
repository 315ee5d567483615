"""A class whose methods call their object otherwise than `self` is judged like any other."""

from pathlib import Path
from typing import Any

import libcst as cst
import pytest
import torch

from tasks.search.constructors import is_made_alike
from tasks.search.survey import survey
from tasks.search.texts import in_evaluation_mode, is_in_evaluation_mode, problem_texts
from tests.optimize_builders import softmax_file

SOURCE = """import torch


class Softmax(torch.nn.Module):
    def __init__({first}size=4):
        super(Softmax, me).__init__()
        me.size, me.drop = size, torch.nn.Dropout(0.5)

    def forward({first}x):
        return me.drop(torch.softmax(x * me.size, dim=1))


def example_inputs():
    return torch.randn(8, 4)
"""


@pytest.mark.parametrize("first", ["me, ", "me, /, "], ids=["usual", "by position only"])
def test_it_is_put_into_evaluation_mode(tmp_path: Path, first: str) -> None:
    file = softmax_file(tmp_path, SOURCE.format(first=first))
    texts = problem_texts(file, survey(file), precision="fp32")
    for source in (texts.shown.source, texts.judged.source):
        names: dict[str, Any] = {"__name__": "judged"}
        exec(source, names)
        model = names["Model"]()
        assert not model.training
        assert torch.equal(model(x := torch.randn(8, 4)), model(x))


def test_its_constructor_is_known_to_be_the_users_once_it_has_been_put_into_evaluation_mode() -> None:
    own = cst.parse_module(SOURCE.format(first="me, "))
    judged = in_evaluation_mode(own, "Softmax")
    assert [is_in_evaluation_mode(each, "Softmax") for each in (own, judged)] == [False, True]
    (candidate,), (users,) = ([e for e in m.body if isinstance(e, cst.ClassDef)] for m in (judged, own))
    assert is_made_alike(candidate, users, {}, is_put_into_evaluation=True)
    assert not is_made_alike(candidate, users, {}, is_put_into_evaluation=False)
