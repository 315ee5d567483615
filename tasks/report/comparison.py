"""Whether a challenger is better than the champion: paired tests over problems, and the rule that decides.

Two numbers are compared on every problem: the log of the speedup that the policy's best candidate comes to, where a
policy without a correct one counts as the reference that would be used instead (1.0x), and the share of its samples
that are correct. Problems on which either's times never settled say nothing about speed. Pairing removes what makes one
problem easier than another, which both policies share.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.problems.problem import Split
from tasks.report.statistics import Interval, mean, mean_interval, or_reference

EXACT_UP_TO = 14
"""Problems that differ; with more, signs are drawn at random."""
DRAWS = 20_000
SPEED, CORRECT = "speedup", "share correct"


class Decision(StrEnum):
    """What becomes of a challenger."""

    FIRST = "first champion"  # there was none, and it is sound
    UNSOUND = "refused"  # there was none, and it gets too little right
    PROMOTED = "promoted"  # better in something, worse in nothing
    UNCHANGED = "unchanged"  # the challenger is the champion
    KEPT = "champion kept"  # no difference that could not be chance
    REGRESSED = "regressed"  # worse in something, better in nothing: the champion is kept, and somebody is told

    @property
    def makes_champion(self) -> bool:
        return self in (Decision.FIRST, Decision.PROMOTED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Skill:
    """What one policy can do on one problem."""

    num_samples: int
    num_correct: int
    speedup: float | None
    """Of its best candidate, timed afresh; None where it has none that is correct."""
    is_unstable: bool = False
    """Whether it has none whose times settled, though some are correct: how fast it is here is not known."""

    @property
    def share_correct(self) -> float:
        return self.num_correct / max(self.num_samples, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bout:
    """Both policies on one problem, from the same prompts and seeds."""

    problem_id: str
    split: Split
    challenger: Skill
    champion: Skill | None
    """None where there is no champion yet."""

    @property
    def tells_speed(self) -> bool:
        return not (self.challenger.is_unstable or (self.champion and self.champion.is_unstable))


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTest:
    """The mean difference between challenger and champion in one number, and how easily chance would make it."""

    number: str
    """SPEED, in log units, or CORRECT."""
    difference: float
    interval: Interval | None
    """Of the difference, by resampling problems; for show: the probabilities decide."""
    num_differing: int
    """Problems on which the two are not equal."""
    p_better: float
    """Probability of a difference at least as large if neither policy were better."""
    p_worse: float
    num_left_out: int = 0
    """Problems that say nothing, since times on them never settled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The decision, what it rests on, and why, in words."""

    decision: Decision
    reason: str
    tests: tuple[PairedTest, ...] = ()


def decide(
    bouts: Sequence[Bout], *, deciding_splits: Collection[str], alpha: float, min_share_correct: float, seed: int
) -> Judgement:
    """Promote a challenger that is better in at least one number and worse in none; without a champion, a sound one.

    Each number is tested one-sided at alpha / 2, so that a challenger which is better in neither is promoted with
    probability alpha at most. Equal policies have probabilities of 1: ties keep the champion.

    Args:
        bouts: on all problems.
        deciding_splits: those of the problems that decide.
        alpha: probability of a wrong promotion.
        min_share_correct: share of all samples, on all problems, that a first champion must get right.
        seed: of the draws, where there are too many problems for all signs.
    """
    if all(bout.champion is None for bout in bouts):
        return _first(bouts, min_share_correct)
    deciding = [bout for bout in bouts if bout.split in deciding_splits]
    tests = paired_tests(deciding, seed=seed)
    level = alpha / 2
    better = [test for test in tests if test.p_better <= level]
    worse = [test for test in tests if test.p_worse <= level]
    decision = Decision.KEPT
    if better and not worse:
        decision = Decision.PROMOTED
    elif worse and not better:
        decision = Decision.REGRESSED
    words = "; ".join(_words(test) for test in tests)
    return Judgement(
        decision=decision, reason=f"{_verdict(better, worse, level)}, {_scope(deciding)}: {words}", tests=tests
    )


def paired_tests(bouts: Sequence[Bout], *, seed: int) -> tuple[PairedTest, ...]:
    """Of speedup and share correct, over the bouts that have a champion."""
    paired = [bout for bout in bouts if bout.champion is not None]
    tests = []
    for name, value in _NUMBERS.items():
        counted = [bout for bout in paired if name != SPEED or bout.tells_speed]
        differences = [value(bout.challenger) - value(bout.champion) for bout in counted if bout.champion]
        tests.append(_paired_test(name, differences, num_left_out=len(paired) - len(counted), seed=seed))
    return tuple(tests)


def sign_flip_p(differences: Sequence[float], *, seed: int) -> float:
    """Probability of a mean at least as large as theirs, had each difference been as likely to have the other sign.

    Exact for few differences, and valid for any number of them, which a bootstrap is not: two problems that both went
    well come out at 0.25, not at 0.

    >>> sign_flip_p([0.5, 0.1, 0.2], seed=0), sign_flip_p([0.0, 0.0], seed=0)
    (0.125, 1.0)

    Args:
        differences: one for each problem; those of 0 say nothing, whatever their sign.
        seed: of the random signs where there are more than EXACT_UP_TO differences.
    """
    import numpy as np

    moved = np.array([difference for difference in differences if difference])
    if not moved.size:
        return 1.0
    slack = 1e-12 * float(np.abs(moved).sum())
    if moved.size <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**moved.size)[:, None] >> np.arange(moved.size)) & 1)
        return float((signs @ moved >= moved.sum() - slack).mean())
    signs = np.random.default_rng(seed).choice((-1, 1), size=(DRAWS, moved.size))
    # The signs that were found count as a draw: no number of draws shows that something is impossible.
    return float(((signs @ moved >= moved.sum() - slack).sum() + 1) / (DRAWS + 1))


def log_speedup(skill: Skill) -> float:
    return math.log(or_reference([skill.speedup])[0])


_NUMBERS: dict[str, Callable[[Skill], float]] = {SPEED: log_speedup, CORRECT: lambda skill: skill.share_correct}


def _paired_test(number: str, differences: Sequence[float], *, num_left_out: int, seed: int) -> PairedTest:
    return PairedTest(
        number=number,
        difference=mean(differences) or 0.0,
        interval=mean_interval(differences, resamples=2000, seed=seed),
        num_differing=sum(difference != 0 for difference in differences),
        p_better=sign_flip_p(differences, seed=seed),
        p_worse=sign_flip_p([-difference for difference in differences], seed=seed),
        num_left_out=num_left_out,
    )


def _first(bouts: Sequence[Bout], min_share_correct: float) -> Judgement:
    num_samples = sum(bout.challenger.num_samples for bout in bouts)
    share = sum(bout.challenger.num_correct for bout in bouts) / max(num_samples, 1)
    is_sound = num_samples > 0 and share >= min_share_correct
    words = f"there is no champion, and {share:.1%} of {num_samples} samples are correct"
    return Judgement(
        decision=Decision.FIRST if is_sound else Decision.UNSOUND,
        reason=f"{words}: {'at least' if is_sound else 'less than'} the {min_share_correct:.1%} asked for",
    )


def _verdict(better: Sequence[PairedTest], worse: Sequence[PairedTest], level: float) -> str:
    found = [f"better in {test.number}" for test in better] + [f"worse in {test.number}" for test in worse]
    if not found:
        return f"no difference that chance would make less often than {level:.1%}"
    return f"the challenger is {' and '.join(found)} (p at most {level:g})"


def _scope(bouts: Sequence[Bout]) -> str:
    held_out = sum(bout.split is Split.HELD_OUT for bout in bouts)
    return f"on {len(bouts)} problems, {held_out} of them held out"


def _words(test: PairedTest) -> str:
    p = f"p {test.p_better:.3g} for better, {test.p_worse:.3g} for worse, {test.num_differing} problems differ"
    if test.num_left_out:
        p += f", {test.num_left_out} left out because times on them never settled"
    low, high = (test.interval.low, test.interval.high) if test.interval else (None, None)
    if test.number == SPEED:
        where = f" ({math.exp(low):.3f} to {math.exp(high):.3f})" if low is not None and high is not None else ""
        return f"{test.number} {math.exp(test.difference):.3f} times the champion's{where}, {p}"
    where = f" ({low:+.1%} to {high:+.1%})" if low is not None and high is not None else ""
    return f"{test.number} {test.difference:+.1%}{where}, {p}"
