"""A project of a few small problems, on which a small policy learns in seconds to write what is right."""

from pathlib import Path
from typing import Any

from flows.soaks.retrain_machine import SMALL
from flows.workspace import make_workspace
from tasks.judge.verdict import Status, Timing, Verdict
from tasks.problems.problem import Problem
from tests.stage_runs import CLOSED
from tests.training_builders import SCALED

TRAIN, HELD_OUT = (8, 12), (16, 20, 24, 28)
"""Sizes: one for each problem. They stand nowhere in a right candidate, so one text that is learnt solves them all."""

NEW = SCALED.replace("2.0", "3.0")
"""Another problem than SCALED."""


def of_size(size: int) -> str:
    return SCALED.replace("8", str(size))


def project(folder: Path, **changes: Any) -> Path:
    """A workspace of the tiny profile whose problems differ in size.

    Args:
        changes: of params.yaml, with two underscores for a dot.
    """
    own = SMALL | {"judge.workers": 2, "sft.steps": 150}
    own |= {name.replace("__", "."): value for name, value in changes.items()}
    root = make_workspace(folder / "project", profile="tiny", changes=own)
    # What a stage reports to Prefect and MLflow is tested elsewhere, and would take most of the time here.
    alone = f"env -u PREFECT_API_URL MLFLOW_TRACKING_URI={CLOSED} python -m flows."
    dvc = root / "dvc.yaml"
    dvc.write_text(dvc.read_text().replace("python -m flows.", alone))
    problems = root / "data" / "problems"
    for path in problems.rglob("*"):
        if path.is_file():
            path.unlink()
    for size in (*TRAIN, *HELD_OUT):
        (problems / "level1" / f"size{size}.py").write_text(of_size(size))
    return root


def accept(problem: Problem) -> Verdict:
    """What a judge says of a good problem."""
    return Verdict(
        candidate_id=problem.problem_id,
        problem_id=problem.problem_id,
        status=Status.CORRECT,
        device="test",
        protocol="test",
        timing=Timing(baseline="eager", reference_ms=(1.0,), candidate_ms=(1.0,)),
        seconds=0.0,
        judged_at=0.0,
    )


def write(folder: Path, name: str, source: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path
