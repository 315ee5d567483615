"""Commands work in any folder: files there that are called like modules of the library do not stand for them."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMAND = [sys.executable, "-c", "import sys; del sys.path[0]; from flows.cli import main; sys.exit(main())"]
REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("random", "string", "queue", "signal", "torch"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name}.py of the user')\n")
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "candidate.py").write_text(REFERENCE.replace("Model", "ModelNew"))
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    project = Path(__file__).resolve().parents[1]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project), "HOME": str(folder), "PYTHONSAFEPATH": ""}
    return subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_kernel_is_judged_beside_them(folder: Path) -> None:
    done = run(folder, "judge", "reference.py", "candidate.py")
    assert done.returncode == 0, done.stderr
    assert "correct" in done.stdout or "unstable" in done.stdout


def test_a_module_is_optimized_beside_them(folder: Path) -> None:
    done = run(folder, "optimize", "reference.py", "--candidates", "1", "--minutes", "1", "--baselines", "eager")
    assert done.returncode in (0, 4), done.stderr  # faster, or nothing that is
    assert "report.md" in done.stdout
