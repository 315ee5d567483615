"""What policies' samples and the best kernels come to: the rows behind every table, plot and metric of the report."""

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Self

from tasks.errors import RecordError
from tasks.judge.verdict import Status, Verdict
from tasks.problems.problem import Problem, Split
from tasks.report import statistics
from tasks.report.baselines import Baselines, with_best_baseline
from tasks.report.statistics import Interval
from tasks.variants.candidate import Candidate

Mode = Literal["greedy", "sampled"]

RAN = frozenset({Status.WRONG_OUTPUT, Status.CHEATED, Status.UNSTABLE, Status.CORRECT})


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySample:
    """One text a policy wrote for one problem, and how far it got."""

    policy: str
    """Name of the stage that trained it: "sft", "self_supervised" or "contrastive_rl"."""
    problem_id: str
    split: Split
    level: int
    mode: Mode
    parsed: bool
    ran: bool
    """Executed without a crash, a timeout or a compile error."""
    correct: bool
    speedup: float | None
    """Over eager; None unless correct."""
    candidate_id: str
    copied: bool
    """Its text is one of the exemplars its prompt showed."""

    def __post_init__(self) -> None:
        if (self.correct and not self.ran) or (self.ran and not self.parsed):
            raise RecordError(
                f"sample {self.candidate_id} of {self.policy}: correct implies ran, and ran implies parsed"
            )
        if self.correct != (self.speedup is not None):
            raise RecordError(
                f"sample {self.candidate_id} of {self.policy}: a speedup belongs to a correct sample only"
            )

    @classmethod
    def judged(
        cls, policy: str, mode: Mode, problem: Problem, candidate: Candidate, verdict: Verdict, *, copied: bool
    ) -> Self:
        """The sample that a verdict describes."""
        return cls(
            policy=policy,
            problem_id=problem.problem_id,
            split=problem.split,
            level=problem.level,
            mode=mode,
            parsed=verdict.status in RAN or _parses(candidate.source),
            ran=verdict.status in RAN,
            correct=verdict.is_correct,
            speedup=verdict.speedup,
            candidate_id=candidate.candidate_id,
            copied=copied,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryRow:
    """One policy on one split in one mode."""

    policy: str
    split: Split
    mode: Mode
    problems: int
    samples: int
    parsed: float
    """Share of the samples; ran, correct and distinct likewise."""
    ran: float
    correct: float
    correct_interval: Interval | None
    distinct: float
    """Share of the samples that are left when equal texts count once."""
    copied: float
    """Share of the samples whose text is one of the exemplars their prompt showed."""
    solved: float
    """Share of the problems with at least one correct sample."""
    speedup: float | None
    """Geometric mean over eager of the correct samples."""
    speedup_interval: Interval | None
    best_speedup: float | None
    fast_1: float
    """Share of the problems whose best sample is more than once as fast as eager; fast_2 likewise."""
    fast_2: float
    over_baselines: Mapping[str, float | None] = field(default_factory=dict)
    """Geometric mean of the correct samples over each further baseline, and over the best of them all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What one policy has over the one before it, on the same problems."""

    earlier: str
    later: str
    split: Split
    mode: Mode
    ratio: float | None
    """Later geometric mean speedup / earlier one."""
    interval: Interval | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BestKernel:
    """The fastest correct candidate known for one problem, if there is one."""

    problem: Problem
    candidate: Candidate | None = None
    verdict: Verdict | None = None

    @property
    def speedup(self) -> float | None:
        return self.verdict.speedup if self.verdict else None

    @property
    def is_faster(self) -> bool:
        """Faster than eager by all of its interval, which noise around 1x is not; the median alone often is."""
        timing = self.verdict.timing if self.verdict else None
        return timing is not None and timing.speedup.low > 1


def summarise(samples: Iterable[PolicySample], *, baselines: Baselines, resamples: int, seed: int) -> list[SummaryRow]:
    """One row per policy, split and mode that has samples: policies as first seen, train before held out."""
    groups = _grouped(samples)
    return [_summary_row(group, baselines=baselines, resamples=resamples, seed=seed) for group in groups.values()]


def gains(samples: Iterable[PolicySample], *, resamples: int, seed: int) -> list[Gain]:
    """Each policy against the one before it, per split and mode, in the order the policies are first seen."""
    groups = _grouped(samples)
    policies = list(dict.fromkeys(policy for policy, _, _ in groups))
    kinds = list(dict.fromkeys((split, mode) for _, split, mode in groups))
    found = []
    for split, mode in kinds:
        present = [policy for policy in policies if (policy, split, mode) in groups]
        for earlier, later in pairwise(present):
            speedups = [speedups_by_problem(groups[policy, split, mode]) for policy in (earlier, later)]
            ratio = statistics.geometric_mean_ratio(*speedups)
            interval = statistics.geometric_mean_ratio_interval(*speedups, resamples=resamples, seed=seed)
            found.append(Gain(earlier=earlier, later=later, split=split, mode=mode, ratio=ratio, interval=interval))
    return found


def best_kernels(
    problems: Iterable[Problem], candidates: Iterable[Candidate], verdicts: Iterable[Verdict]
) -> list[BestKernel]:
    """The fastest correct candidate of every problem; problems without one come too, with None."""
    by_id = {candidate.candidate_id: candidate for candidate in candidates}
    fastest: dict[str, Verdict] = {}
    for verdict in verdicts:
        held = fastest.get(verdict.problem_id)
        if verdict.speedup is not None and (held is None or verdict.speedup > (held.speedup or 0)):
            fastest[verdict.problem_id] = verdict
    return [
        BestKernel(problem=problem, candidate=by_id.get(verdict.candidate_id) if verdict else None, verdict=verdict)
        for problem in problems
        for verdict in [fastest.get(problem.problem_id)]
    ]


def speedups_by_problem(samples: Iterable[PolicySample]) -> dict[str, list[float]]:
    """Speedups of the correct samples of every problem sampled, an empty list where none was correct."""
    speedups: dict[str, list[float]] = {}
    for sample in samples:
        held = speedups.setdefault(sample.problem_id, [])
        if sample.speedup is not None:
            held.append(sample.speedup)
    return speedups


def _grouped(samples: Iterable[PolicySample]) -> dict[tuple[str, Split, Mode], list[PolicySample]]:
    groups: dict[tuple[str, Split, Mode], list[PolicySample]] = {}
    for sample in samples:
        groups.setdefault((sample.policy, sample.split, sample.mode), []).append(sample)
    policies = list(dict.fromkeys(policy for policy, _, _ in groups))
    splits = list(Split)
    return dict(
        sorted(groups.items(), key=lambda item: (policies.index(item[0][0]), splits.index(item[0][1]), item[0][2]))
    )


def _summary_row(samples: Sequence[PolicySample], *, baselines: Baselines, resamples: int, seed: int) -> SummaryRow:
    speedups = speedups_by_problem(samples)
    best = [statistics.maximum(of_problem) for of_problem in speedups.values()]
    totals = Counter(sample.problem_id for sample in samples)
    successes = [len(speedups[problem]) for problem in totals]
    return SummaryRow(
        policy=samples[0].policy,
        split=samples[0].split,
        mode=samples[0].mode,
        problems=len(speedups),
        samples=len(samples),
        parsed=sum(sample.parsed for sample in samples) / len(samples),
        ran=sum(sample.ran for sample in samples) / len(samples),
        correct=sum(sample.correct for sample in samples) / len(samples),
        correct_interval=statistics.share_interval(successes, list(totals.values()), resamples=resamples, seed=seed),
        distinct=len({sample.candidate_id for sample in samples}) / len(samples),
        copied=sum(sample.copied for sample in samples) / len(samples),
        solved=statistics.fast_p(best, p=0),
        speedup=statistics.geometric_mean([sample.speedup for sample in samples]),
        speedup_interval=statistics.geometric_mean_interval(speedups, resamples=resamples, seed=seed),
        best_speedup=statistics.maximum(best),
        fast_1=statistics.fast_p(best, p=1),
        fast_2=statistics.fast_p(best, p=2),
        over_baselines=_over_baselines(samples, baselines),
    )


def _over_baselines(samples: Sequence[PolicySample], baselines: Baselines) -> dict[str, float | None]:
    return {
        name: statistics.geometric_mean(
            [
                sample.speedup / speedups[sample.problem_id]
                for sample in samples
                if sample.speedup is not None and sample.problem_id in speedups
            ]
        )
        for name, speedups in with_best_baseline(baselines, {sample.problem_id for sample in samples}).items()
    }


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
