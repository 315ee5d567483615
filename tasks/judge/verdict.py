"""What the judge says about one candidate on one device. Verdicts are facts: frozen, complete, serialisable."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from tasks.errors import RecordError

COVERAGE = 0.9
"""Probability with which an interval holds the true median."""
UNEVEN_CALLS = "uneven_calls"
"""The check that tells what times were multiplied by, for calls that seem to do the work of others."""


class Status(StrEnum):
    """How far a candidate got; the order is roughly the order of the checks."""

    REJECTED = "rejected"  # refused by the static screen, never executed
    COMPILE_ERROR = "compile_error"  # does not parse, or a build inside it failed
    CRASHED = "crashed"  # raised, was killed by a signal or by a limit, or ended its process
    TIMEOUT = "timeout"
    WRONG_OUTPUT = "wrong_output"
    CHEATED = "cheated"  # right outputs by dishonest means, such as a replayed result
    UNSTABLE = "unstable"  # correct, but its timing never settled
    BAD_PROBLEM = "bad_problem"  # the reference itself fails or is degenerate
    CORRECT = "correct"


class Track(StrEnum):
    """How deep a change goes."""

    KERNEL = "kernel"  # own CUDA, Triton, C or C++
    GRAPH = "graph"  # capture or compilation of the graph
    FRAMEWORK = "framework"  # PyTorch-level rewriting


@dataclass(frozen=True, kw_only=True, slots=True)
class Speedup:
    """Baseline time / candidate time; above 1 the candidate is faster.

    From low to high is a 90 % interval of the median, as far as the session that was timed can tell.
    """

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Times of one candidate and one baseline, taken in the same session.

    Both tuples have one entry per round; round i of one was taken right next to round i of the other, which is what
    makes their ratio meaningful.
    """

    baseline: str
    """What the reference ran as: "eager", "compile", "compile_reduce_overhead" or "cuda_graph"."""
    reference_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]
    settled: Speedup | None = None
    """The speedup, where it comes from more rounds than are kept."""

    def __post_init__(self) -> None:
        if len(self.reference_ms) != len(self.candidate_ms):
            raise RecordError(
                f"a timing needs pairs: got {len(self.reference_ms)} reference and "
                f"{len(self.candidate_ms)} candidate rounds"
            )
        times = self.reference_ms + self.candidate_ms
        if not times or not all(math.isfinite(time) and time > 0 for time in times):
            raise RecordError("a timing needs at least one round, and every time finite and above 0 ms")

    @property
    def speedup(self) -> Speedup:
        """The median of the per-round ratios, and where it lies with 90 % probability.

        The median of ratios, not the ratio of means: one stalled round must not move it.

        >>> Timing(baseline="eager", reference_ms=(2.0, 2.0, 90.0), candidate_ms=(1.0, 1.0, 1.0)).speedup.median
        2.0
        """
        if self.settled is not None:
            return self.settled
        ratios = [r / c for r, c in zip(self.reference_ms, self.candidate_ms, strict=True)]
        low, high = median_interval(ratios)
        return Speedup(median=statistics.median(ratios), low=low, high=high)

    def charged(self, factor: float) -> "Timing":
        """The same where every call of the candidate took so many times as long."""
        settled = self.settled and Speedup(
            median=self.settled.median / factor, low=self.settled.low / factor, high=self.settled.high / factor
        )
        candidate_ms = tuple(time * factor for time in self.candidate_ms)
        return replace(self, candidate_ms=candidate_ms, settled=settled)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of what the values are drawn from lies with 90 % probability, whatever their distribution.

    Order statistics: k of n values are below the true median with the probability of k heads in n tosses. Between the
    two nearest orders it is interpolated; of fewer than five values the interval is their range.

    >>> median_interval([1.0, 2.0, 3.0])
    (1.0, 3.0)

    Source:
        Hettmansperger and Sheather, Confidence intervals based on interpolated order statistics (1986).
    """
    ordered, count = sorted(values), len(values)
    outside = [2 * sum(math.comb(count, k) for k in range(order)) / 2**count for order in range(count // 2 + 2)]
    order = max((order for order in range(1, count // 2 + 1) if 1 - outside[order] >= COVERAGE), default=0)
    if not order:
        return ordered[0], ordered[-1]
    wide, narrow = 1 - outside[order], 1 - outside[order + 1]
    share = (wide - COVERAGE) / (wide - narrow)
    weight = (count - order) * share / (order + (count - 2 * order) * share)
    low = (1 - weight) * ordered[order - 1] + weight * ordered[order]
    high = (1 - weight) * ordered[-order] + weight * ordered[-order - 1]
    return low, high


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing the judge looked at, and what it saw."""

    name: str
    """Such as "fresh_inputs", "negated_inputs", "changed_weights", "inputs_unchanged", "timed_outputs"."""
    passed: bool
    evidence: str = ""
    """A short sentence with the numbers, such as "max error 3.1e-07, allowed 1.2e-06"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Status, evidence and timing of one candidate under one protocol on one device."""

    candidate_id: str
    problem_id: str
    status: Status
    device: str
    """The device model, such as "NVIDIA H100 80GB HBM3" or the processor's name."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Software versions and walls of the sandbox, such as {"torch": "2.13.0", "walls": "user,pid,net"}."""
    protocol: str
    """Version of the way of judging; verdicts of different protocols are never compared."""
    detail: str = ""
    """For people: compiler output, traceback or the mismatch; empty when correct."""
    checks: tuple[Check, ...] = ()
    max_error: float | None = None
    """Largest error seen as a multiple of what was allowed; at most 1 when correct, None when nothing was compared."""
    timing: Timing | None = None
    track: Track | None = None
    seconds: float
    """What judging took, in seconds."""
    judged_at: float
    """Unix time at which judging ended, in seconds."""

    def __post_init__(self) -> None:
        # A speedup for a wrong kernel is the bug every kernel-RL project has shipped once.
        if (self.status is Status.CORRECT) != (self.timing is not None):
            raise RecordError(
                f"{self.status} verdict on {self.candidate_id} {'without' if self.timing is None else 'with'} a timing"
            )

    @property
    def is_correct(self) -> bool:
        return self.status is Status.CORRECT

    @property
    def speedup(self) -> float | None:
        """Median speedup, or None unless correct."""
        return self.timing.speedup.median if self.timing else None

    def to_json(self) -> dict[str, Any]:
        """A mapping that json.dumps takes and from_json turns back into an equal verdict."""
        timing = self.timing
        settled = timing.settled if timing else None
        return {
            "candidate_id": self.candidate_id,
            "problem_id": self.problem_id,
            "status": self.status.value,
            "device": self.device,
            "environment": dict(self.environment),
            "protocol": self.protocol,
            "detail": self.detail,
            "checks": [[check.name, check.passed, check.evidence] for check in self.checks],
            "max_error": self.max_error,
            "baseline": timing.baseline if timing else None,
            "reference_ms": list(timing.reference_ms) if timing else None,
            "candidate_ms": list(timing.candidate_ms) if timing else None,
            "settled": [settled.median, settled.low, settled.high] if settled else None,
            "track": self.track.value if self.track else None,
            "seconds": self.seconds,
            "judged_at": self.judged_at,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The verdict that to_json wrote.

        Raises:
            RecordError: if a field is missing or contradicts another.
        """
        try:
            timing = None
            if row["baseline"] is not None:
                settled = row.get("settled")  # verdicts of the protocol paired-1 have none
                timing = Timing(
                    baseline=row["baseline"],
                    reference_ms=tuple(row["reference_ms"]),
                    candidate_ms=tuple(row["candidate_ms"]),
                    settled=Speedup(median=settled[0], low=settled[1], high=settled[2]) if settled else None,
                )
            return cls(
                candidate_id=row["candidate_id"],
                problem_id=row["problem_id"],
                status=Status(row["status"]),
                device=row["device"],
                environment=dict(row["environment"]),
                protocol=row["protocol"],
                detail=row["detail"],
                checks=tuple(
                    Check(name=name, passed=passed, evidence=evidence) for name, passed, evidence in row["checks"]
                ),
                max_error=row["max_error"],
                timing=timing,
                track=Track(row["track"]) if row["track"] else None,
                seconds=row["seconds"],
                judged_at=row["judged_at"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"not a verdict: {error!r} in {dict(row)!r}"[:500]) from error
