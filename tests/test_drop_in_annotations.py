"""In a file whose annotations are texts, a drop-in's parts are of the file's own classes."""

from pathlib import Path

import torch

from tasks.search.drop_in import drop_in
from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file
from tasks.variants.rewriting import as_candidate_program, candidate_of
from tests.drop_in_builders import is_fast, of_text

SOURCE = """from __future__ import annotations

import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, by: float = 1.0) -> None:
        super().__init__()
        self.by: float = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by


class Block(nn.Module):
    def __init__(self, by: float = 1.0) -> None:
        super().__init__()
        self.inner = Inner(by)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def example_inputs() -> torch.Tensor:
    return torch.randn(3, 2, 4)
"""


def test_a_part_with_annotations_is_no_other_kind_of_part(tmp_path: Path) -> None:
    path = tmp_path / "user_module.py"
    path.write_text(SOURCE)
    file = read_user_file(path, "Block")
    facts = survey(file)
    shown = problem_texts(file, facts).shown
    program = as_candidate_program(shown.source.replace("return self.inner(x)", "return 1 + self.inner(x)"))
    written = drop_in(file, facts, candidate_of(shown, program, ()), problem_id="x").source
    assert written.count("class Inner") == 1
    module = of_text(written, tmp_path)
    assert is_fast(module, module.Block().eval())
    assert torch.equal(module.Block()(torch.ones(3, 2, 4)), torch.ones(3, 2, 4))
