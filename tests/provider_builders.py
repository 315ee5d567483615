"""Builders for the tests of optimizations with language models and policies."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from flows.optimizing.answers import ANSWERS, Answers
from flows.optimizing.outcome import Outcome
from flows.optimizing.providers import Chosen, Providers
from tasks.judge.verdict import Status
from tasks.params import load_params, read_document
from tasks.search.contributions import contributions
from tasks.search.texts import problem_texts
from tasks.variants.candidate import Candidate
from tests.llm_builders import requests_in
from tests.optimize_builders import FACTS, GivenJudges, Speeds, optimized, report_on, softmax_file
from tests.test_optimize_command import SLOW

ROOT = Path(__file__).parents[1]
FREE = {"prompt_usd_per_million": 0.0, "answer_usd_per_million": 0.0}
PRICED = {"prompt_usd_per_million": 1.0, "answer_usd_per_million": 4.0}


def write_params(folder: Path, generators: dict[str, dict[str, Any]] | None = None, **policy: Any) -> None:
    document = read_document(ROOT / "params.yaml")
    document["generate_variants"]["generators"] = generators or {}
    document["policy"] |= policy
    (folder / "params.yaml").write_text(yaml.safe_dump(document))


def model(url: str, name: str, **changes: Any) -> dict[str, Any]:
    common = {"key_variable": None, "answer_tokens": 100, "concurrency": 1, "retries": 1, "backoff_s": 0.01}
    return {"base_url": url, "model": name, **common, **FREE, **changes}


def requests_of(log: Path, name: str) -> list[dict[str, Any]]:
    return [row for row in requests_in(log) if row["request"]["model"] == name] if log.exists() else []


def answers_in(folder: Path) -> list[dict[str, Any]]:
    """The last row of every question."""
    rows = [json.loads(line) for line in (folder / ANSWERS).read_text().splitlines()]
    return list({(row["writer"], row["number"]): row for row in rows}.values())


def summing_wins(rung: str, candidate: Candidate) -> float:
    return 3.0 if ".sum(1)" in candidate.source and "ModelNew" in candidate.source else 1.0


@contextmanager
def proposing(
    project: Path, *names: str, max_usd: float | None = None, device: str = "cpu"
) -> Iterator[tuple[Providers, Answers]]:
    chosen = Chosen(names=names, params=load_params(project / "params.yaml"), max_usd=max_usd)
    texts = problem_texts(softmax_file(project), FACTS)
    with (
        closing(Answers(project, ["this"])) as answers,
        Providers(
            chosen, texts.shown, folder=project, answers=answers, device=device, seed=0, seconds=60.0, candidates=None
        ) as providers,
    ):
        yield providers, answers


def searched(
    project: Path,
    *names: str,
    speeds: Speeds = summing_wins,
    candidates: int = 4,
    max_usd: float | None = None,
    in_turn: bool = False,
) -> Outcome:
    """A search by these providers with a judge whose answers are given, at once or when no other is awaited."""
    with proposing(project, *names, max_usd=max_usd) as (providers, answers):

        def judged(rung: str, candidate: Candidate) -> float | Status:
            if in_turn:
                wait([future for each in providers.proposers for future in each.pending], timeout=60)
            return speeds(rung, candidate)

        outcome = optimized(
            softmax_file(project), GivenJudges(judged), candidates=candidates, proposers=providers.proposers
        )
        proposers = [each.name for each in providers.proposers]
        outcome.asked = answers.asked
        outcome.contributions = contributions(proposers, outcome.progress.scored, answers.asked, providers.spent())
    return outcome


def reported(project: Path, outcome: Outcome) -> str:
    return report_on(softmax_file(project), outcome)


def make_project(folder: Path) -> None:
    """A project, as far as the command needs one, with a slow module."""
    (folder / "slow.py").write_text(SLOW.replace("300", "60"))
    (folder / "dvc.yaml").touch()
    write_params(folder)


def wait_until(is_so: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
