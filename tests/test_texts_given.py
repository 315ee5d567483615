"""A candidate is handed what its arguments are made of, whether or not its own text needs the classes for that."""

from pathlib import Path

from tasks.judge.judge import Judge
from tasks.judge.verdict import Status
from tasks.params import JudgeParams
from tasks.search.survey import survey
from tasks.search.texts import ProblemTexts, problem_texts
from tasks.search.user_file import read_user_file
from tasks.variants.rewriting import as_candidate_program, candidate_of

SOURCE = """from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

WIDTH = 4


@dataclass
class Noise:
    share: float = 0.5


@dataclass
class Config:
    width: int = WIDTH
    noise: Noise = field(default_factory=Noise)
    next: Config | None = None


def shifted(x):
    return x + 1


class Other(nn.Module):
    def forward(self, x):
        return x


class Block(nn.Module):
    def __init__(self, config, act):
        super().__init__()
        self.config, self.act = config, act
        self.inner = nn.Linear(config.width, config.width)

    def forward(self, x):
        return self.act(self.inner(x)) * self.config.noise.share


def example_init():
    return [Config(), shifted]


def example_inputs():
    return torch.randn(3, WIDTH)
"""


def texts_of(folder: Path, source: str) -> ProblemTexts:
    path = folder / "block.py"
    path.write_text(source)
    file = read_user_file(path, "Block")
    return problem_texts(file, survey(file))


def test_a_candidate_that_names_no_configuration_is_judged(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, SOURCE)
    plain = candidate_of(texts.shown, as_candidate_program(texts.shown.source), ())
    assert "Config" not in plain.source
    judged = texts.as_judged(plain)
    assert all(f"class {name}:" in judged.source for name in ("Noise", "Config"))
    assert "class Other" not in judged.source
    with Judge(JudgeParams(trials=2, rounds=5, settled_error=0.12)) as judge:
        verdict = judge.judge(texts.judged, judged, seed=0)
    assert verdict.status in (Status.CORRECT, Status.UNSTABLE), verdict.detail


def test_a_text_that_has_them_stays_as_it_is(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, SOURCE)
    plain = candidate_of(texts.shown, as_candidate_program(texts.shown.source), ())
    whole = texts.as_judged(plain)
    assert texts.as_judged(whole).source == whole.source


def test_no_candidate_gets_the_reference_for_it(tmp_path: Path) -> None:
    texts = texts_of(
        tmp_path, SOURCE.replace("    return x + 1\n", "    assert not isinstance(x, Block)\n    return x + 1\n")
    )
    plain = candidate_of(texts.shown, as_candidate_program(texts.shown.source), ())
    assert "class Model(" not in texts.as_judged(plain).source
