"""Its C code does not compile."""

PROBLEM = "row_softmax"
EXPECTED = "compile_error"

import subprocess

import torch
import torch.nn as nn


subprocess.run(["cc", "-x", "c", "-shared", "-o", "kernel.so", "-"], input=b"int f( {", check=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return x
