"""Postponed annotations, a dataclass, an enum and decorators."""

from __future__ import annotations

PROBLEM = "leaky_cumsum"
EXPECTED = "correct"

import dataclasses
import enum
import functools
import typing

import torch
import torch.nn as nn
import torch.nn.functional as F


class Axis(enum.IntEnum):
    ROWS = 0
    COLUMNS = 1


@dataclasses.dataclass(frozen=True)
class Settings:
    slope: float = 0.2
    axis: Axis = Axis.COLUMNS


def checked(function: typing.Callable[..., torch.Tensor]) -> typing.Callable[..., torch.Tensor]:
    @functools.wraps(function)
    def wrapper(*args: typing.Any) -> torch.Tensor:
        return function(*args)

    return wrapper


class ModelNew(nn.Module):
    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()

    @checked
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, self.settings.slope).cumsum(dim=int(self.settings.axis))
