"""Größen und Wörter außerhalb von ASCII: 行の平均と標準偏差 ✓."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        μ = x.mean(dim=1, keepdim=True)  # der Mittelwert einer Zeile
        σ = ((x - μ).square().sum(dim=1) / (x.shape[1] - 1)).sqrt()
        print("σ ≈", float(σ[0]), "🚀")
        return μ[:, 0], σ
