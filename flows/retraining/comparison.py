"""Challenger and champion side by side: the same prompts and seeds, the same judge, the best of each timed again.

A comparison is named by all that its result depends on. What a killed one leaves in its folder the next one continues,
and one that was finished writes and judges nothing again.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from flows.engine import WORK, Stage
from flows.panels.judges import open_judge
from flows.parts.accounting import Expenses
from flows.parts.recording import Recorder
from flows.parts.runs import run_of
from flows.parts.sampling import Draw, build_requests, draw
from flows.retraining.comparison_judging import OnProgress, best_first, screened, skill, timed_again
from tasks.errors import PolicyError
from tasks.history.known import VERSIONS
from tasks.judge.batch import changed
from tasks.params import Params, PolicyParams, as_document
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.report.comparison import Bout

CHALLENGER, CHAMPION = "challenger", "champion"
FOLDER = WORK / "retrain" / "comparisons"
ROOT = Path(__file__).parents[2]
SECTIONS = ("seed", "problems", "judge", "policy", "exemplars", "retrain")
CODE = (
    "flows/parts/accounting.py",
    "flows/parts/judging.py",
    "flows/parts/recording.py",
    "flows/parts/runs.py",
    "flows/parts/sampling.py",
    "flows/retraining/comparison.py",
    "flows/retraining/comparison_judging.py",
    "tasks/history",
    "tasks/judge",
    "tasks/problems",
    "tasks/report/comparison.py",
    "tasks/report/statistics.py",
    "tasks/training",
    "tasks/variants",
)
"""What a comparison runs, as dvc.yaml lists it for a stage; tests/test_architecture.py checks the list."""
SOFTWARE = ("torch", "transformers")
"""What completions depend on besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison(Stage):
    """One comparison, with the ways of a stage; DVC does not know it."""

    policies: Mapping[str, Path]
    """By role: CHALLENGER, and CHAMPION where there is one."""
    forms: Mapping[str, PolicyParams]
    """How each was trained to write, by role."""

    @property
    def sections(self) -> dict[str, Any]:
        document = as_document(self.params)
        return {section: document[section] for section in SECTIONS}


def begin_comparison(
    params: Params,
    policies: Mapping[str, Path],
    digests: Mapping[str, str],
    forms: Mapping[str, PolicyParams],
    *,
    machine: Mapping[str, str | None],
) -> Comparison:
    """The comparison of these policies under these params; one that was begun before is continued.

    Args:
        digests: of the policies' files, by role.
        forms: the section policy that each was made with, by role.
        machine: where times are taken, as judging_machine says.
    """
    problems = load_problems(params.problems)
    asked = [as_document(params)[section] for section in SECTIONS]
    known = {problem.problem_id: [problem.problem_hash, problem.split] for problem in problems.values()}
    made_with = {role: asdict(form) for role, form in forms.items()}  # type: ignore[call-overload]
    ran = [code_digest(), {name: version(name) for name in SOFTWARE}, dict(machine)]
    text = json.dumps([asked, dict(digests), known, made_with, ran], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = FOLDER / key
    folder.mkdir(parents=True, exist_ok=True)
    for other in FOLDER.iterdir():
        if other != folder:
            shutil.rmtree(other)
    begun = folder / "begun"
    if not begun.exists():
        begun.touch()
    started_at = begun.stat().st_mtime
    return Comparison(
        name="retrain",
        params=params,
        key=key,
        folder=folder,
        run_id=f"retrain-{key}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(started_at))}",
        started_at=started_at,
        policies=policies,
        forms=forms,
    )


def judging_machine(params: Params) -> dict[str, str | None]:
    """The model of device that judges here and now, and what else times depend on."""
    with open_judge(changed(params.judge, workers=1)) as judge:
        return {"device": judge.device} | {name: judge.environment.get(name) for name in VERSIONS}


def code_digest(root: Path = ROOT) -> str:
    """Content hash of the code that a comparison runs."""
    digest = hashlib.sha256()
    for part in CODE:
        path = root / part
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def compare_policies(comparison: Comparison, *, on_progress: OnProgress) -> list[Bout]:
    """Both policies on every problem, in order of the problems.

    No prompt shows exemplars, so that both policies answer the same ones whatever their tokenizers make of them. The
    best candidates for the problems that decide are timed at the tier of retrain.tier, one at a time on each device;
    for the others, which are only reported, the times of the screen stand. Where those of a best one do not settle, the
    next best one's count, and where none settle, the problem says nothing about speed.

    Args:
        on_progress: called between the steps and every few judgements.
    """
    problems = load_problems(comparison.params.problems)
    expenses = Expenses(comparison.folder / "costs.jsonl")
    try:
        drawn = {}
        for number, role in enumerate(comparison.policies):
            on_progress(0.1 * number, f"the {role} writes")
            drawn[role] = _drawn(comparison, role, problems, expenses)
    finally:
        recorder = Recorder(run_of(comparison), problems)
        recorder.account(expenses.costs, [])
        recorder.close()
        expenses.close()
    verdicts = screened(comparison, problems, drawn, on_progress)
    ranked = {role: best_first(draws, verdicts) for role, draws in drawn.items()}
    final = timed_again(comparison, problems, ranked, on_progress)
    on_progress(1.0, "compared")
    num_samples = comparison.params.retrain.samples_per_problem
    skills = {
        role: {name: skill(name, draws, verdicts, ranked[role], final, num_samples=num_samples) for name in problems}
        for role, draws in drawn.items()
    }
    return [
        Bout(
            problem_id=problem.problem_id,
            split=problem.split,
            challenger=skills[CHALLENGER][problem.problem_id],
            champion=skills[CHAMPION][problem.problem_id] if CHAMPION in skills else None,
        )
        for problem in problems.values()
    ]


def _drawn(comparison: Comparison, role: str, problems: Mapping[str, Problem], expenses: Expenses) -> Sequence[Draw]:
    from tasks.training.policy import load_policy

    params = comparison.params
    policy = load_policy(comparison.policies[role], comparison.forms[role])
    requests = []
    for problem in problems.values():
        try:
            requests += build_requests(
                policy,
                [problem],
                {},
                params.exemplars,
                each=params.retrain.samples_per_problem,
                exemplar_share=0.0,
                seed=params.seed,
            )
        except PolicyError:
            continue  # too long for this policy, which so gets nothing right on it
    return draw(
        comparison,
        policy,
        requests,
        name=role,
        origin=role,
        temperature=params.retrain.temperature,
        seed=params.seed,
        expenses=expenses,
    )
