"""What a drop-in with a kernel in C leaves behind where it is imported: nothing."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch

from tasks.variants.kernels.template import PROLOGUE

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the kernels, and is not installed")
DOUBLES = "void run(float *x, long n) { for (long i = 0; i < n; i++) x[i] *= 2; }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_kernel_that_is_built_works_without_its_file(folder: Path) -> None:
    names: dict[str, object] = {}
    exec(PROLOGUE % DOUBLES, names)
    assert not [*folder.iterdir()]
    x = torch.ones(3)
    names["run"]([x], 3)  # type: ignore[operator]
    assert torch.equal(x, torch.full((3,), 2.0))


def test_a_kernel_that_cannot_be_built_leaves_nothing_either(folder: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        exec(PROLOGUE % "void run( {", {})
    assert not [*folder.iterdir()]
