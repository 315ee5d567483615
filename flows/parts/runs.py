"""The run of a stage as the history knows it: what it ran with, beside what it is called."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from flows.engine import Stage
from tasks.history.records import Run

SOFTWARE = ("torch", "transformers", "trl")


def run_of(stage: Stage) -> Run:
    """The run as the history knows it. It keeps the commit and the versions that it was told first."""
    return Run(
        run_id=stage.run_id,
        stage=stage.name,
        seed=stage.params.seed,
        params=stage.sections,
        started_at=stage.started_at,
        git_commit=_git_commit(),
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    """Software that a stage's result may depend on, as installed; nothing of it is imported."""
    found = {"python": platform.python_version()}
    for package in SOFTWARE:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git_commit() -> str | None:
    """The commit of the code that runs, or None outside a repository."""
    try:
        answer = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
