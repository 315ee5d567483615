import torch
import torch.nn as nn


class Model(nn.Module):
    """Log densities, and densities, which are tiny in so many dimensions."""

    def forward(self, x, centres):
        square = (x[:, None] - centres[None]).square().sum(-1)
        log_density = -0.5 * square - 0.5 * x.shape[1] * 1.8378770664093453
        return log_density[:, :1].contiguous(), torch.exp(log_density)


def get_inputs():
    return [torch.randn(64, 128, dtype=torch.float64), torch.randn(32, 128, dtype=torch.float64)]


def get_init_inputs():
    return []
