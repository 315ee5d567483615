"""A stand-in for the reward-checking model, which notes what it is asked, and questions to put to it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from training_builders import SCALED_IN_PLACE, problem

from tasks.params import CheckerParams, load_params
from tasks.variants.candidate import Candidate

PROBLEM = problem()
FIXED = load_params()


class Server:
    """The server's address, and what it was asked."""

    def __init__(self, log: Path) -> None:
        self.log = log
        command = [sys.executable, str(Path(__file__).with_name("checker_server.py")), str(log)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.base_url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    @property
    def requests(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def forget(self) -> None:
        self.log.unlink(missing_ok=True)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder / "requests.jsonl")
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def params(base_url: str | None, model: str = "hack", **changes: object) -> CheckerParams:
    return replace(FIXED.checker, **({"base_url": base_url, "model": model, "timeout_s": 5.0, "retries": 1} | changes))


def candidate(source: str = SCALED_IN_PLACE) -> Candidate:
    return Candidate(problem_id=PROBLEM.problem_id, source=source, origin="test")
