"""What judging others' kernels came to on one device: their verdicts, the baselines and the problems beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tasks.judge.baselines import BASELINES, baseline_candidate
from tasks.judge.verdict import Speedup, Status, Verdict
from tasks.problems.problem import Problem
from tasks.report.baselines import EAGER, TimedBaselines
from tasks.report.summary import BestKernel
from tasks.variants.imported import ImportedKernel

# What a failed check says about a kernel, where it says more than that the outputs are wrong.
_FATE_OF_CHECK = {
    "called_twice": "stale",
    "output_kept": "stale",
    "changed_weights": "stale weights",
    "other_seed": "stale weights",
    "state_dict": "stale weights",
    "inputs_unchanged": "writes to its inputs",
}
_FATE_OF_STATUS = {
    Status.CORRECT: "usable",
    Status.CHEATED: "dishonest",
    Status.UNSTABLE: "no steady timing",
    Status.BAD_PROBLEM: "unfit reference",
    Status.WRONG_OUTPUT: "wrong",
}
NOT_RUNNABLE, NOT_JUDGED, NO_CODE = "does not run", "not judged yet", "no code"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A verdict, and the text of the problem that it was given on."""

    problem_hash: str
    origin: str
    """Whose text it is; "baseline:..." where it is a baseline."""
    verdict: Verdict
    is_recalled: bool = False
    """Taken over from the history, which need not be told of it again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejudged:
    """One imported kernel and what became of it."""

    problem: Problem
    kernel: ImportedKernel
    verdict: Verdict | None
    """None where there is no code or no verdict yet."""

    @property
    def fate(self) -> str:
        """What became of it, in a word or two."""
        if self.kernel.candidate is None:
            return NO_CODE
        if self.verdict is None:
            return NOT_JUDGED
        default = _FATE_OF_STATUS.get(self.verdict.status, NOT_RUNNABLE)
        return _FATE_OF_CHECK.get(self.failed_check, default) if default == "wrong" else default

    @property
    def failed_check(self) -> str:
        checks = self.verdict.checks if self.verdict else ()
        return next((check.name for check in reversed(checks) if not check.passed), "")

    @property
    def reason(self) -> str:
        """Why it is not usable, in one line."""
        if self.verdict is None or self.verdict.is_correct:
            return ""
        lines = [line for line in self.verdict.detail.partition("\nlast output:")[0].splitlines() if line.strip()]
        # A traceback says what happened in its last line.
        line = lines[-1 if self.fate in (NOT_RUNNABLE, "unfit reference") else 0] if lines else ""
        return f"{self.failed_check}: {line.strip()}" if self.failed_check else line.strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceResult:
    """All verdicts of one device, protocol and version of torch."""

    device: str
    protocol: str
    torch: str
    environment: Mapping[str, str]
    """Of the newest verdict."""
    problems: Sequence[Problem]
    baselines: TimedBaselines
    """Those besides eager that work."""
    control: Mapping[str, Speedup]
    """Eager timed against itself, by problem: what it is off 1 is the error of the timing."""
    failed_baselines: Mapping[str, Mapping[str, Status]]
    unfit: Mapping[str, str]
    """Problems whose reference cannot serve as the truth, and why."""
    rejudged: Mapping[str, Sequence[Rejudged]]
    """By origin."""

    @property
    def label(self) -> str:
        return f"{self.device}, torch {self.torch}"

    def kernels(self, origin: str) -> list[BestKernel]:
        """One for every problem on which an origin is judged: its fastest correct kernel, or none."""
        by_problem: dict[str, list[Rejudged]] = {}
        for one in self.rejudged[origin]:
            by_problem.setdefault(one.problem.problem_id, []).append(one)
        return [
            best_of(problem, found)
            for problem in self.problems
            for found in [by_problem.get(problem.problem_id, [])]
            if problem.problem_id not in self.unfit and all(one.fate != NOT_JUDGED for one in found)
        ]


def best_of(problem: Problem, rejudged: Iterable[Rejudged]) -> BestKernel:
    """The fastest correct kernel of one problem."""
    correct = [one for one in rejudged if one.verdict is not None and one.verdict.is_correct]
    if not correct:
        return BestKernel(problem=problem)
    best = max(correct, key=lambda one: (one.verdict.speedup if one.verdict else None) or 0.0)
    return BestKernel(problem=problem, candidate=best.kernel.candidate, verdict=best.verdict)


def device_results(
    problems: Mapping[str, Problem], kernels: Iterable[ImportedKernel], answers: Iterable[Answer]
) -> list[DeviceResult]:
    """The results of every device that was judged on, those seen first coming first.

    Of several verdicts on the same text under the same circumstances the last counts.
    """
    by_place: dict[tuple[str, str, str], dict[tuple[str, str], Verdict]] = {}
    for answer in answers:
        verdict = answer.verdict
        place = (verdict.device, verdict.protocol, verdict.environment.get("torch", "unknown"))
        by_place.setdefault(place, {})[answer.problem_hash, verdict.candidate_id] = verdict
    listed = _each_text_once(kernels)
    return [_result(place, problems, listed, verdicts) for place, verdicts in by_place.items()]


def _each_text_once(kernels: Iterable[ImportedKernel]) -> list[ImportedKernel]:
    """The kernels, those of one origin with the same text as one: that has one verdict, and claims their highest."""
    found: dict[tuple[str, str, str], ImportedKernel] = {}
    for number, kernel in enumerate(kernels):
        text = kernel.candidate.candidate_id if kernel.candidate else f"no code, {number}"
        known = found.setdefault((kernel.problem_id, kernel.origin, text), kernel)
        highest = {
            name: max(each.claims[name] for each in (known, kernel) if name in each.claims)
            for name in {**known.claims, **kernel.claims}
        }
        found[kernel.problem_id, kernel.origin, text] = replace(
            known, claims=highest, device=known.device or kernel.device
        )
    return list(found.values())


def _result(
    place: tuple[str, str, str],
    problems: Mapping[str, Problem],
    kernels: Sequence[ImportedKernel],
    verdicts: Mapping[tuple[str, str], Verdict],
) -> DeviceResult:
    timed: dict[str, dict[str, Speedup]] = {name: {} for name in BASELINES}
    failed: dict[str, dict[str, Status]] = {name: {} for name in BASELINES}
    unfit: dict[str, str] = {}
    for problem in problems.values():
        for name in BASELINES:
            candidate = baseline_candidate(problem, name)
            verdict = verdicts.get((problem.problem_hash, candidate.candidate_id))
            if verdict is None:
                continue
            if verdict.status is Status.BAD_PROBLEM:
                unfit[problem.problem_id] = verdict.detail.strip()
            elif verdict.timing is not None:
                timed[name][problem.problem_id] = verdict.timing.speedup
            else:
                failed[name][problem.problem_id] = verdict.status
    rejudged: dict[str, list[Rejudged]] = {}
    for kernel in kernels:
        problem = problems[kernel.problem_id]
        found = None
        if kernel.candidate is not None:
            found = verdicts.get((problem.problem_hash, kernel.candidate.candidate_id))
        if found is not None and found.status is Status.BAD_PROBLEM:
            unfit.setdefault(problem.problem_id, found.detail.strip())
        rejudged.setdefault(kernel.origin, []).append(Rejudged(problem=problem, kernel=kernel, verdict=found))
    newest = max(verdicts.values(), key=lambda verdict: verdict.judged_at)
    device, protocol, torch = place
    return DeviceResult(
        device=device,
        protocol=protocol,
        torch=torch,
        environment=newest.environment,
        problems=list(problems.values()),
        baselines={name: speedups for name, speedups in timed.items() if speedups and name != EAGER},
        control=timed[EAGER],
        failed_baselines=failed,
        unfit=unfit,
        rejudged=rejudged,
    )
