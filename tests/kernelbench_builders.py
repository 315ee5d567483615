"""Small look-alikes of a benchmark's problems and of files with released kernels."""

import json
from pathlib import Path

REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.linear = nn.Linear(factor, factor)

    def forward(self, x):
        return torch.relu(self.linear(x)) * {scale}


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return [32]
"""
RIGHT = REFERENCE.split("\n\n\ndef ")[0].replace("Model", "ModelNew")
CONSTANT = REFERENCE.replace("torch.relu(self.linear(x))", "torch.zeros_like(x)").format(scale=2)


def reference(scale: int = 2) -> str:
    return REFERENCE.format(scale=scale)


def right(scale: int = 2) -> str:
    return RIGHT.format(scale=scale)


def wrong(scale: int = 2) -> str:
    return right(scale).replace("torch.relu", "torch.abs")


def released(number: int, *, level: int = 1, code: object = None, ref: object = None, **scores: float) -> dict:
    """A line as CUDA-L1's files have them."""
    return {
        "level_id": level,
        "task_id": number,
        "ref_code": reference(number) if ref is None else ref,
        "custom_code": code,
        "cuda_graph_code": "import torch\n",
        "score_default": scores.get("eager"),
        "score_torch_compile_default": scores.get("compile"),
        "score_cuda_graph": scores.get("cuda_graph"),
    }


def write_lines(path: Path, *rows: object) -> Path:
    """JSON lines; a string is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def write_checkout(folder: Path, **texts: str) -> Path:
    """A checkout; names such as level1__3_relu stand for KernelBench/level1/3_relu.py."""
    for name, text in texts.items():
        path = folder / "KernelBench" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
