"""Uses its scratch folder and a subprocess."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import subprocess
import tempfile

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 1000)
        subprocess.run(["true"], check=True)
        return torch.softmax(x, dim=-1) * x
