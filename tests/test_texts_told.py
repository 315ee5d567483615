"""Providers are shown the shapes of inputs, by position and by name, and values that every draw has."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file
from tasks.variants.rewrites import rewrites_for
from tasks.variants.rewriting import as_candidate_program

SOURCE = """import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x, gate, share=0.5, mask=None):
        y = torch.tanh(x) * torch.sigmoid(gate) + share * x
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def example_inputs():
    x, gate = torch.randn(4, 8), torch.rand(4, 8)
    return INPUTS
"""
OWN = "example_inputs()"


def shown(folder: Path, inputs: str) -> str:
    """What providers are shown of the file with these inputs."""
    path = folder / "gated.py"
    path.write_text(SOURCE.replace("INPUTS", inputs))
    file = read_user_file(path, "Gated")
    return problem_texts(file, survey(file)).shown.source


def inputs_told(source: str) -> Sequence[Any] | Mapping[str, Any]:
    program: dict[str, Any] = {}
    exec(source, program)
    returned: Sequence[Any] | Mapping[str, Any] = program["get_inputs"]()
    return returned


def rewrites_of(source: str) -> list[str]:
    program = as_candidate_program(source)
    found = [each for each in rewrites_for("cpu") if each.group in ("fusion", "kernel")]
    return [each.name for each in found if each.apply(program, random.Random(0)) is not None]


@pytest.mark.parametrize(
    "inputs",
    [
        '{"x": x, "gate": gate.half()}',
        '{"gate": gate.half(), "x": x, "mask": None, "share": 0.25}',
        '{"x": x, "gate": gate.half(), "share": torch.tensor(3)}',
        "x, gate.half(), 0.25",
        '[x, gate.half(), 2, "a text"]',
    ],
)
def test_what_is_given_is_told_by_position_or_by_name(tmp_path: Path, inputs: str) -> None:
    source = shown(tmp_path, inputs)
    assert OWN not in source
    told = inputs_told(source)
    given = eval(inputs, {"torch": torch, "x": torch.ones(4, 8), "gate": torch.ones(4, 8)})
    items = given.items() if isinstance(given, dict) else enumerate(given)
    assert len(told) == len(given)
    for key, value in items:
        if isinstance(value, torch.Tensor):
            assert (told[key].shape, told[key].dtype) == (value.shape, value.dtype)
        else:
            assert told[key] == value


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param('{"x": x, "gate": gate, "mask": [x]}', id="a container"),
        pytest.param("x, gate, float('inf')", id="what has no literal"),
        pytest.param("x, gate, torch.rand(()).item()", id="another value each time"),
    ],
)
def test_where_not_all_can_be_told_the_file_says_it_itself(tmp_path: Path, inputs: str) -> None:
    assert OWN in shown(tmp_path, inputs)


@pytest.mark.parametrize(
    "inputs",
    ['{"x": x, "gate": gate}', '{"gate": gate, "x": x, "mask": None}', "x, gate, 0.5", "x, gate, 0.5, None"],
)
def test_rewrites_find_the_same_however_inputs_are_given(tmp_path: Path, inputs: str) -> None:
    found = rewrites_of(shown(tmp_path, inputs))
    assert found == rewrites_of(shown(tmp_path, "x, gate"))
    assert {"call_rms_norm", "reduction_in_c"} <= set(found)
