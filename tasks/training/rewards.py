"""What a completion earns: its speedup against what is usual for its problem. Pure arithmetic, no tensors."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Before a problem has shown its own spread, its speedups are taken to scatter by a factor of two around no change.
_PRIOR_MEAN = 0.0
_PRIOR_SPREAD = math.log(2.0)
_PRIOR_WEIGHT = 4.0
_WORTH_OF_CORRECT = 0.5
# A problem whose candidates are all alike must not turn the noise of timing into reward: ten per cent counts as one.
_MIN_SPREAD = math.log(1.1)


@dataclass(kw_only=True, slots=True)
class _Moments:
    count: int = 0
    total: float = 0.0
    squares: float = 0.0


@dataclass(slots=True)
class RewardScale:
    """Running mean and spread of the log-speedups of each problem, which make a problem's rewards comparable.

    Logarithms, because speedups are ratios: twice as fast and half as fast lie equally far from no change, the mean is
    not that of one lucky 60x, and normalising gives the same rewards whichever of the two times is the numerator.

    It is a plain function of the speedups observed, in any order: observing a journal's again gives an equal scale.
    Each text is to be observed once, so that what a policy writes most does not become what is usual.
    """

    clip: float
    """k of the paper: rewards lie in [-k, k]."""
    _moments: dict[str, _Moments] = field(default_factory=dict)

    def observe(self, problem_id: str, speedup: float) -> None:
        """Take one correct candidate's speedup into account."""
        moments = self._moments.setdefault(problem_id, _Moments())
        value = math.log(speedup)
        moments.count += 1
        moments.total += value
        moments.squares += value * value

    def reward(self, problem_id: str, speedup: float | None, *, bonus: float = 0.0) -> float:
        """The normalised and clipped log-speedup; a failure (None) earns the least there is, -k.

        A correct candidate earns at least -k + 0.5 however slow it is: were it worth no more than a syntax error, a
        policy that is right at the reference's speed would be pushed away from being right.

        Args:
            bonus: added to a correct candidate's reward before it is clipped.

        Source: CUDA-L1 (arXiv:2507.14111), section 3: clip((r - mu) / sigma, -k, k) with k = 1.5. There r is the
        speedup itself.
        """
        if speedup is None:
            return -self.clip
        mean, spread = self.mean_and_spread(problem_id)
        return min(max((math.log(speedup) - mean) / spread + bonus, -self.clip + _WORTH_OF_CORRECT), self.clip)

    def mean_and_spread(self, problem_id: str) -> tuple[float, float]:
        """Of the problem's log-speedups, with a few observations' worth of the prior mixed in."""
        moments = self._moments.get(problem_id, _Moments())
        weight = _PRIOR_WEIGHT + moments.count
        mean = (_PRIOR_WEIGHT * _PRIOR_MEAN + moments.total) / weight
        prior_squares = _PRIOR_WEIGHT * (_PRIOR_SPREAD**2 + _PRIOR_MEAN**2)
        variance = (prior_squares + moments.squares) / weight - mean * mean
        return mean, max(math.sqrt(max(variance, 0.0)), _MIN_SPREAD)

    def state_dict(self) -> dict[str, list[float]]:
        """A mapping that json.dumps takes and load_state_dict takes back."""
        return {
            problem_id: [moments.count, moments.total, moments.squares]
            for problem_id, moments in sorted(self._moments.items())
        }

    def load_state_dict(self, state: Mapping[str, Sequence[float]]) -> None:
        """Forget what was observed and know what another scale's state_dict knew."""
        self._moments = {
            problem_id: _Moments(count=int(count), total=total, squares=squares)
            for problem_id, (count, total, squares) in state.items()
        }


def novelty_bonuses(sources: Sequence[str], are_correct: Sequence[bool], *, bonus: float) -> list[float]:
    """The bonus for each correct source that its group holds once, 0 for the others.

    A group that writes one text over and over earns none, which works against the collapse onto it.

    >>> novelty_bonuses(["a", "a", "b", "c"], [True, True, True, False], bonus=0.1)
    [0.0, 0.0, 0.1, 0.0]
    """
    counts = Counter(sources)
    return [
        bonus if is_correct and counts[source] == 1 else 0.0
        for source, is_correct in zip(sources, are_correct, strict=True)
    ]


def without_advantage(rewards: Sequence[float | None], *, group_size: int) -> list[float]:
    """The rewards with each withheld one (None) replaced by the mean of the others in its group.

    So a withheld reward has no advantage, and the others have what they would have without it.

    >>> without_advantage([1.0, None, -0.5, None, None, None], group_size=3)
    [1.0, 0.25, -0.5, 0.0, 0.0, 0.0]
    """
    filled: list[float] = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        paid = [reward for reward in group if reward is not None]
        mean = sum(paid) / len(paid) if paid else 0.0
        filled += [mean if reward is None else reward for reward in group]
    return filled
