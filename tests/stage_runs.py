"""Running the project's commands as a user does, in a small workspace of their own."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.workspace import make_workspace
from tests.training_builders import SCALED, SCALED_BY_CLAMP, SCALED_IN_PLACE

PROBLEM_ID = "level1/scaled"
CLOSED = "http://127.0.0.1:9"
"""Nobody listens there."""
LIMIT_S = 150.0


def workspace(folder: Path, **changes: Any) -> Path:
    """A workspace of the tiny profile with one problem.

    Args:
        changes: of params.yaml, with two underscores for a dot.
    """
    own = {"problems.folders": ["problems"], "problems.held_out_families": [], "judge.workers": 1}
    changed = own | {name.replace("__", "."): value for name, value in changes.items()}
    root = make_workspace(folder / "project", profile="tiny", changes=changed)
    write_problem(root, PROBLEM_ID, SCALED)
    shutil.copytree(root / "problems", root / "data" / "problems", dirs_exist_ok=True)
    return root


def one_stage(folder: Path) -> None:
    """A project whose only stage, "sft", depends on one file and one section."""
    shutil.copy(Path(__file__).parents[1] / "params.yaml", folder)
    (folder / "input.txt").write_text("one")
    stage = {"cmd": "true", "deps": ["input.txt"], "params": ["seed", "sft"]}
    (folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"sft": stage}}))


def write_problem(root: Path, problem_id: str, source: str | bytes) -> None:
    path = root / "problems" / f"{problem_id}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode() if isinstance(source, str) else source)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def candidate_rows(*, many: int = 0) -> list[dict[str, Any]]:
    """Two right candidates for the one problem, and as many wrong ones as asked for."""
    texts = [SCALED_IN_PLACE, SCALED_BY_CLAMP]
    texts += [SCALED_IN_PLACE.replace("2.0", f"{number}.5") for number in range(many)]
    return [{"problem_id": PROBLEM_ID, "source": text, "origin": "test", "recipe": []} for text in texts]


def write_generated(root: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """What generate_variants leaves when no language model was asked: candidates, and no verdicts yet."""
    write_rows(root / "data/generate_variants/candidates.jsonl", rows)
    write_rows(root / "data/generate_variants/verdicts.jsonl", [])


def write_taught(root: Path) -> None:
    from tasks.variants.candidate import Candidate

    rows = [Candidate.from_json(row).to_json() | {"speedup": 1.5} for row in candidate_rows()]
    write_rows(root / "data/filter_variants/taught.jsonl", rows)


def run(
    root: Path, *arguments: str, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `python -m` says to the arguments.

    Args:
        before: a command that takes the rest as its arguments, such as one that changes the disks.
        environment: variables besides our own; numbers go nowhere unless it says otherwise.
    """
    ours = {name: value for name, value in os.environ.items() if name not in ("PREFECT_API_URL", "PYTHONPATH")}
    return subprocess.run(
        [*before, sys.executable, "-m", *arguments],
        cwd=root,
        env=ours | {"MLFLOW_TRACKING_URI": CLOSED} | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


class Started:
    """A command that runs meanwhile, and what it has said."""

    def __init__(self, root: Path, arguments: Sequence[str]) -> None:
        self._log = root / f"{'-'.join(arguments)}.log"
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=root,
            env={name: value for name, value in os.environ.items() if name not in ("PREFECT_API_URL", "PYTHONPATH")},
            stdout=self._log.open("wb"),
            stderr=subprocess.STDOUT,
        )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def says(self, *words: str) -> None:
        """Wait until it does."""
        self.until(lambda: all(each in self.said for each in words))

    def until(self, found: Callable[[], Any]) -> None:
        end = time.monotonic() + LIMIT_S
        while not found():
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def status(self) -> int:
        """The one that it ends with."""
        self.until(lambda: self.process.poll() is not None)
        return self.process.returncode


@contextmanager
def started(root: Path, *arguments: str) -> Iterator[Started]:
    """What `python` does with the arguments while the block runs; it ends with that."""
    command = Started(root, arguments)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.wait()


def free_address() -> str:
    """A host:port of this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def said_no(result: subprocess.CompletedProcess[str], *words: str, status: int = 1) -> None:
    """Require a refusal in words of ours."""
    said = result.stdout + result.stderr
    assert result.returncode == status, said
    assert "Traceback" not in said
    assert [word for word in words if word not in said] == [], said


def with_mounts(script: str) -> list[str]:
    """What to run a command with, so that lines of shell, which may mount things, come before it and others after.

    Args:
        script: with "$@" in the place of the command. What it mounts is seen by the command and by nobody else.
    """
    if not (prefix := _own_mounts()):
        pytest.skip("this machine allows no mounts")
    return [*prefix, "sh", "-c", script, "sh"]


@cache
def _own_mounts() -> list[str]:
    for prefix in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return prefix
    return []
