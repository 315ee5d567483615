"""The screen refuses what cannot be a candidate, and nothing else."""

import pytest

from tasks.judge.screen import screen
from tasks.judge.verdict import Status

FORWARD = "    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("class ModelNew(nn.Module):\n" + FORWARD, id="the usual form"),
        pytest.param("class ModelNew(Base):\n    pass\n", id="forward inherited"),
        pytest.param("class Fast(nn.Module):\n" + FORWARD + "ModelNew = Fast\n", id="another name"),
        pytest.param("from fast import Fast as ModelNew\n", id="imported"),
        pytest.param("class ModelNew(nn.Module):\n    pass\n\n\nModelNew.forward = f\n", id="forward set later"),
        pytest.param("globals()['ModelNew'] = type('M', (nn.Module,), {'forward': f})\n", id="made at run time"),
        pytest.param("import os, time, subprocess\ntry:\n    exec('')\nexcept E:\n    pass\nModelNew = 1", id="words"),
    ],
)
def test_what_might_run_passes(source: str) -> None:
    assert screen(source).status is None


@pytest.mark.parametrize(
    ("source", "status"),
    [
        pytest.param("class ModelNew(", Status.COMPILE_ERROR, id="cut off"),
        pytest.param("", Status.REJECTED, id="empty"),
        pytest.param("class Model(nn.Module):\n" + FORWARD, Status.REJECTED, id="wrong name"),
        pytest.param("class ModelNew(nn.Module):\n    pass\n", Status.REJECTED, id="no forward"),
        pytest.param("x = 1\0", Status.COMPILE_ERROR, id="zero byte"),
        pytest.param("\ud800", Status.COMPILE_ERROR, id="half a surrogate pair"),
        pytest.param("-" * 200_000 + "1", Status.COMPILE_ERROR, id="too deep to parse"),
        pytest.param("a" + ".a" * 100_000, Status.COMPILE_ERROR, id="too deep to walk"),
        pytest.param("ModelNew = '" + "x" * (1 << 20) + "'", Status.REJECTED, id="too long"),
    ],
)
def test_what_cannot_run_is_refused_in_words(source: str, status: Status) -> None:
    screened = screen(source)
    assert screened.status is status
    assert screened.detail
