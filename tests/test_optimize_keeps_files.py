"""`cuda-l1 optimize` loses nothing that stands where it would write."""

from pathlib import Path

import pytest

from flows.cli import main

TWO = """import torch
from torch import nn


class One(nn.Module):
    def forward(self, x):
        return x + 1


class Other(nn.Module):
    def forward(self, x):
        return x + 2


def example_inputs():
    return torch.randn(8)
"""
DROP_IN = "# Written by cuda-l1 optimize.\n\n\nclass One(ReferenceOne):\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two.py").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_class_that_is_named_has_a_folder_of_its_own(folder: Path) -> None:
    (folder / "none").mkdir()
    for name in ("One", "Other"):
        main(["optimize", f"two.py:{name}", "--provider", "none", "--baselines", "eager", "--window-s", "0"])
    assert {path.name for path in folder.glob("*-optimized")} == {"two-One-optimized", "two-Other-optimized"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("# The user's own.\n", id="a file of the user's own"),
        pytest.param(DROP_IN, id="the drop-in for another class"),
    ],
)
def test_what_it_has_not_written_for_this_class_is_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "two.py").write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["optimize", "two.py:Other", "--out", "out"])
    assert ended.value.code == 2
    assert "--out out has a two.py that is no drop-in for Other" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["two.py"]
    assert (out / "two.py").read_text() == content
