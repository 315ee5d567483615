"""Watches a policy's entropy and diversity while it is trained, and says when they collapse. It changes nothing."""

import math
from collections import deque
from collections.abc import Mapping
from statistics import fmean

from tasks.params import ContrastiveRLParams

WINDOW_STEPS = 5
"""A single step sees a few problems only."""


class CollapseWatch:
    """Means over the last steps against the floors of params.yaml."""

    def __init__(self, params: ContrastiveRLParams) -> None:
        self._floors = {"entropy": params.entropy_floor, "distinct": params.distinct_floor}
        self._seen = {name: deque[float](maxlen=WINDOW_STEPS) for name in self._floors}
        self._is_low = dict.fromkeys(self._floors, False)

    def note(self, step: int, row: Mapping[str, float]) -> list[str]:
        """A warning for each value that has just fallen below its floor."""
        warnings = []
        for name, floor in self._floors.items():
            if name in row:
                self._seen[name].append(row[name])
            mean = fmean(self._seen[name] or [math.inf])
            is_low = mean < floor and len(self._seen[name]) == WINDOW_STEPS
            if is_low and not self._is_low[name]:
                warnings.append(
                    f"step {step}: the policy collapses: {name} is {mean:.3g} over {WINDOW_STEPS} steps, below "
                    f"contrastive_rl.{name}_floor ({floor:g}). Groups that agree teach nothing: raise temperature, "
                    f"novelty_bonus or kl_beta, or lower learning_rate, and run the stage anew"
                )
            self._is_low[name] = is_low
        return warnings

    @property
    def is_collapsed(self) -> bool:
        """Whether something is below its floor now."""
        return any(self._is_low.values())
