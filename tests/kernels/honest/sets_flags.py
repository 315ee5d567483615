"""Sets flags of the library for itself."""

PROBLEM = "conv_norm_eval"
EXPECTED = "correct"

import torch
import torch.nn as nn


torch.set_num_threads(2)
torch.set_grad_enabled(False)
torch.set_float32_matmul_precision("highest")


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()

    def forward(self, x):
        torch.use_deterministic_algorithms(True)
        torch.set_flush_denormal(True)
        torch.backends.cudnn.benchmark = True
        return torch.relu(self.norm(self.conv(x)))
