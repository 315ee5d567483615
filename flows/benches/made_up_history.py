"""A history of any size, made up by a seeded generator in the shape of real ones and appended the way stages append."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.engine import progress
from tasks.history.records import Cost, Run, Sample
from tasks.history.store import History
from tasks.judge.verdict import Check, Status, Timing, Track, Verdict
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate

BATCH_VERDICTS, BATCH_CANDIDATES, BATCH_PROMPTS = 10_000, 3_000, 75
BATCHES_PER_RUN = 5
STAGES = ("filter_variants", "self_supervised", "contrastive_rl", "evaluate")
REWRITES = tuple(f"{group}_{n}" for group in ("fuse", "inplace", "algebra", "graph", "kernel") for n in range(8))
DEVICES = ("Intel(R) Xeon(R) Processor", "NVIDIA H100 80GB HBM3")
SERIES = ((DEVICES[0], "eager"), (DEVICES[1], "eager"), (DEVICES[0], "compile"), (DEVICES[1], "eager"))
CHECKS = (
    "fresh_inputs",
    "called_twice",
    "output_kept",
    "fresh_inputs",
    "fresh_inputs",
    "negated_inputs",
    "large_inputs",
    "small_inputs",
    "outliers_inputs",
    "few_values_inputs",
    "timed_outputs",
)
FAILURES = (Status.CRASHED,) * 4 + (Status.COMPILE_ERROR,) * 3 + (Status.WRONG_OUTPUT,) * 2 + (Status.UNSTABLE,)
STARTED_AT = 1.75e9
LINES = (
    "x = torch.nn.functional.relu(x + self.bias)",
    "x = torch.addmm(self.bias, x, self.weight.t())",
    "x.mul_(self.scale).clamp_(min=0.0)",
    "out[:, i] = torch.einsum('bi,ij->bj', x, w)",
    "y = torch.empty_like(x)",
)


class MadeUpHistory:
    """Batch after batch of one history; each depends on the seed and its number alone."""

    def __init__(self, *, seed: int, num_problems: int = 250) -> None:
        self._seed = seed
        self._problems = [_problem(number) for number in range(num_problems)]

    def batch(self, number: int) -> dict[str, Any]:
        """What History.append takes: 10,000 verdicts on 3,000 new candidates, with what led to them."""
        rng = random.Random(f"{self._seed} {number}")
        run = _run(number // BATCHES_PER_RUN)
        candidates = [_candidate(rng, rng.choice(self._problems), run) for _ in range(BATCH_CANDIDATES)]
        return {
            "run": run,
            "problems": self._problems,
            "candidates": candidates,
            "samples": list(_samples(rng, run, number, candidates)) if run.stage != STAGES[0] else [],
            "verdicts": list(_verdicts(rng, run, candidates)),
            "costs": [Cost(purpose="generation", seconds=90.0, answer_tokens=40_000, spent_at=run.started_at + number)],
        }


def make_history(path: Path, *, seed: int, num_batches: int) -> None:
    """Append the batches a file lacks: a killed run goes on where it stopped."""
    history, made_up = History(path), MadeUpHistory(seed=seed)
    done = history.query("SELECT count(*) FROM costs").item() if path.exists() else 0
    with progress("making a history", total=num_batches, unit="batch") as bar:
        bar.update(done)
        for number in range(done, num_batches):
            history.append(**made_up.batch(number))
            bar.update()


def _run(number: int) -> Run:
    return Run(
        run_id=f"{STAGES[number % 4]}-{number:016x}-20260101T000000",
        stage=STAGES[number % 4],
        seed=number,
        params={"number": number},
        started_at=STARTED_AT + 100_000.0 * number,
    )


def _problem(number: int) -> Problem:
    source = f"class Model: ...  # {number}\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    level = 1 + number % 3
    return Problem(
        problem_id=f"level{level}/problem_{number}",
        level=level,
        family=f"family_{number // 3}",
        split=Split.HELD_OUT if number % 5 == 0 else Split.TRAIN,
        source=source,
    )


def _candidate(rng: random.Random, problem: Problem, run: Run) -> Candidate:
    lines = "\n        ".join(rng.choice(LINES) for _ in range(9))
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x, w):\n"
        f"        {lines}\n        return out  # {rng.getrandbits(64):x}\n"
    )
    if run.stage == STAGES[0]:
        recipe = tuple(rng.sample(REWRITES, rng.randint(1, 3)))
        return Candidate(problem_id=problem.problem_id, source=source, origin="rewrites", recipe=recipe)
    return Candidate(problem_id=problem.problem_id, source=source, origin=run.stage)


def _samples(rng: random.Random, run: Run, number: int, candidates: list[Candidate]) -> Iterator[Sample]:
    by_problem: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_problem.setdefault(candidate.problem_id, []).append(candidate)
    place = 0
    for problem_id in rng.sample(sorted(by_problem), BATCH_PROMPTS):
        of_problem = by_problem[problem_id]
        shown = of_problem[:2]
        prompt = "# reference\n" + "".join(f"# {rng.uniform(0.5, 4):.2f}x\n{one.source}" for one in shown)
        for candidate in of_problem[2:]:
            yield Sample(
                problem_id=problem_id,
                candidate_id=candidate.candidate_id,
                prompt=prompt,
                exemplar_ids=tuple(one.candidate_id for one in shown),
                completion=candidate.source,
                policy=run.stage,
                temperature=0.8,
                step=number,
                number=place,
            )
            place += 1


def _verdicts(rng: random.Random, run: Run, candidates: list[Candidate]) -> Iterator[Verdict]:
    # What a candidate is worth belongs to it, not to a timing: several verdicts mostly agree.
    worth = [rng.lognormvariate(0.1, 0.5) if rng.random() < 0.625 else None for _ in candidates]
    for place in range(BATCH_VERDICTS):
        turn, which = divmod(place, len(candidates))
        device, baseline = SERIES[turn]
        speedup = worth[which]
        status = Status.CORRECT if speedup is not None else _failure(rng)
        yield Verdict(
            candidate_id=candidates[which].candidate_id,
            problem_id=candidates[which].problem_id,
            status=status,
            device=device,
            environment={"torch": "2.13.0", "python": "3.11.7", "kernel": "6.18", "walls": "network,ipc,pid,mount"},
            protocol="paired-2",
            detail="" if speedup is not None else f"RuntimeError: size {rng.randrange(4096)} at dimension 1\n" * 3,
            checks=tuple(_checks(rng, status)),
            max_error=rng.random() if speedup is not None else None,
            timing=_timing(rng, speedup, baseline) if speedup is not None else None,
            track=Track.FRAMEWORK,
            seconds=round(rng.uniform(0.2, 4.0), 3),
            judged_at=run.started_at + 7.0 * place + rng.random(),
        )


def _failure(rng: random.Random) -> Status:
    return Status.CHEATED if rng.random() < 0.01 else rng.choice(FAILURES)


def _checks(rng: random.Random, status: Status) -> Iterator[Check]:
    if status in (Status.CRASHED, Status.COMPILE_ERROR):
        return
    for name in CHECKS:
        yield Check(name=name, passed=True, evidence=f"error {rng.random():.2g} of what is allowed")
    if status is not Status.CORRECT:
        yield Check(name="timed_outputs", passed=False, evidence=f"{rng.randrange(100)} of 100 calls differ")


def _timing(rng: random.Random, speedup: float, baseline: str) -> Timing:
    """Rounds in whole nanoseconds, as a clock gives them, 16 on average."""
    candidate_ns = rng.uniform(2e4, 4e6)
    rounds = rng.randint(9, 23)
    return Timing(
        baseline=baseline,
        reference_ms=tuple(round(candidate_ns * speedup * rng.gauss(1, 0.03)) / 1e6 for _ in range(rounds)),
        candidate_ms=tuple(round(candidate_ns * rng.gauss(1, 0.03)) / 1e6 for _ in range(rounds)),
    )
