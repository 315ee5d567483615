"""A pre-norm transformer block, as one finds it in research code: several classes, a helper module, old-style super."""

import math

import torch
from torch import Tensor, nn

from layers import SwiGLU  # lies beside this file


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super(RMSNorm, self).__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    """Causal self-attention with its products written out."""

    def __init__(self, dim: int, heads: int) -> None:
        super(Attention, self).__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(dim // self.heads)
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int = 4, *, dropout: float = 0.0) -> None:
        super(Block, self).__init__()
        self.norm1 = RMSNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = RMSNorm(dim)
        self.feed_forward = SwiGLU(dim, 2 * dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


def example_init() -> dict:
    return {"dim": 64, "heads": 4, "dropout": 0.1}


def example_inputs() -> Tensor:
    return torch.randn(2, 32, 64)
