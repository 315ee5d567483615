"""Builders for the tests of optimizations: a judge whose answers are given, and a whole optimization by it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.optimize import Optimization
from flows.optimizing.judging import LONG, Record
from flows.optimizing.outcome import Outcome, Settings
from flows.optimizing.providers import rewriting
from tasks.judge.long import Window
from tasks.judge.timing import Rounds
from tasks.judge.verdict import Check, Speedup, Status, Timing, Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.search.clock import Clock
from tasks.search.proposers import Proposer
from tasks.search.report import render
from tasks.search.search import SCREEN
from tasks.search.survey import Survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import UserFile, read_user_file
from tasks.variants.candidate import Candidate

SOURCE = """import torch


class Softmax(torch.nn.Module):
    def forward(self, x):
        e = torch.exp(x - torch.max(x, dim=1, keepdim=True)[0])
        return e / torch.sum(e, dim=1, keepdim=True)


def example_inputs():
    return torch.randn(32, 64)
"""
FACTS = Survey(inputs=(("tensor", "float32", (32, 64), (64, 1)),), named_inputs={}, constructor=())
NO_ROUNDS = Rounds.of([])

Speeds = Callable[[str, Candidate], float | Status]
"""Speedup at a rung, or the status of a refusal."""


class GivenJudges:
    """A judge for every rung, whose verdicts are given.

    Unstable ones of the long tier have these bucket means, and are it for them, or since two looks differ.
    """

    def __init__(
        self, speeds: Speeds, *, spread: float = 0.02, bucket_means: Sequence[float] = (), looks_differ: bool = False
    ) -> None:
        self.speeds = speeds
        self.spread = spread
        self.bucket_means = bucket_means
        self.looks_differ = looks_differ
        self.asked: list[tuple[str, Candidate]] = []

    def at(self, rung: str) -> "GivenJudge":
        return GivenJudge(self, rung)


class GivenJudge:
    device, protocol = "cpu", "given"
    environment: Mapping[str, str] = {"torch": "given"}

    def __init__(self, judges: GivenJudges, rung: str) -> None:
        self.judges, self.rung = judges, rung

    def judge(self, problem: Problem, candidate: Candidate, *, seed: int, best_speedup: float | None) -> Verdict:
        self.judges.asked.append((self.rung, candidate))
        found = self.judges.speeds(self.rung, candidate)
        status = found if isinstance(found, Status) else Status.CORRECT
        timing = None
        if not isinstance(found, Status):
            settled = Speedup(median=found, low=found - self.judges.spread, high=found + self.judges.spread)
            timing = Timing(baseline="eager", reference_ms=(found,), candidate_ms=(1.0,), settled=settled)
        means = self.judges.bucket_means if (self.rung, status) == (LONG, Status.UNSTABLE) else ()
        words = Window(bucket_means=tuple(means), num_rounds=9, rounds=NO_ROUNDS).words if means else ""
        differ = self.judges.looks_differ
        checks = [Check(name="bucket_means", passed=differ, evidence=words)] if words else []
        if words and differ:
            checks.append(Check(name="second_look", passed=False, evidence="they differ"))
        return Verdict(
            candidate_id=candidate.candidate_id,
            problem_id=problem.problem_id,
            status=status,
            device=self.device,
            environment=self.environment,
            protocol=self.protocol,
            detail=words or "given",
            checks=tuple(checks),
            timing=timing,
            seconds=0.0,
            judged_at=0.0,
        )


def softmax_file(folder: Path, source: str = SOURCE) -> UserFile:
    path = folder / "softmax.py"
    path.write_text(source)
    return read_user_file(path)


def optimization_of(
    file: UserFile,
    judges: GivenJudges,
    *,
    record: Record | None = None,
    clock: Clock | None = None,
    stop_after: int | None = None,
    candidates: int | None = 12,
    window_s: float = 0.0,
    screening_share: float = 0.7,
    proves_all: bool = True,
    baselines: tuple[str, ...] | None = None,
    proposers: Sequence[Proposer] | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Optimization:
    texts = problem_texts(file, FACTS)
    settings = Settings(
        seconds=60.0,
        window_s=window_s,
        judge=JudgeParams(),
        candidates=candidates,
        screening_share=screening_share,
        proves_all=proves_all,
        baselines=baselines,
    )
    optimization = Optimization(
        file,
        FACTS,
        texts,
        settings=settings,
        judges=judges,  # type: ignore[arg-type]
        record=record or Record(None, []),
        proposers=rewriting(texts.shown, seed=0, device="cpu") if proposers is None else proposers,
        clock=clock,
        on_change=lambda progress: (
            optimization.stop() if stop_after and len(progress.at(SCREEN)) >= stop_after else None
        ),
        on_step=on_step,
    )
    return optimization


def optimized(file: UserFile, judges: GivenJudges, **given: Any) -> Outcome:
    """What comes of the optimization that optimization_of makes of these."""
    return optimization_of(file, judges, **given).run()


def report_on(file: UserFile, outcome: Outcome) -> str:
    """The report as the command writes it."""
    return render(
        file,
        winner=outcome.winner[1] if outcome.winner else None,
        claimed=outcome.speedup,
        baseline=outcome.baseline,
        baselines=outcome.baselines,
        not_judged=outcome.not_judged,
        scored=outcome.progress.scored,
        asked=outcome.asked,
        brought=outcome.contributions,
        failed=outcome.progress.failed,
        gradients=outcome.gradients,
        unsettled=outcome.unsettled,
        unwritten=outcome.unwritten,
        beaten=outcome.beaten_by_a_baseline,
        shapes="any",
        seconds=1.0,
        interrupted=False,
        no_drop_in=outcome.no_drop_in,
    )


def by_recipe(**speeds: float | Status) -> Speeds:
    """Speeds of candidates by the last rewrite, of the baseline as "compile"; everything else is as fast as eager."""

    def speed(rung: str, candidate: Candidate) -> float | Status:
        name = "compile" if candidate.origin == "baseline:compile" else (candidate.recipe or ("",))[-1]
        return speeds.get(f"{name}_{rung}".replace("-", "_"), speeds.get(name, 1.0))

    return speed
