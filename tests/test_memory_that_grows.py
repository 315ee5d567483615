"""What a training tells PyTorch of a GPU's memory before it is used, for itself and the processes that it starts."""

import os

import pytest

from flows.parts.launching import trainers
from tasks.params import load_params

NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, id="nothing said"),
        pytest.param({"PYTORCH_ALLOC_CONF": "a:1"}, {"PYTORCH_ALLOC_CONF": "a:1"}, id="said otherwise"),
        pytest.param({"PYTORCH_CUDA_ALLOC_CONF": "a:1"}, {"PYTORCH_CUDA_ALLOC_CONF": "a:1"}, id="by its older name"),
    ],
)
def test_blocks_grow_unless_the_user_has_set_the_allocator(tmp_path, monkeypatch, said, expected):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    with trainers(load_params(), folder=tmp_path):
        assert {name: value for name, value in os.environ.items() if name in NAMES} == expected
