"""Reading what earlier stages wrote under data/, and what is said of what is left out of it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from flows.engine import DATA, say
from flows.parts.journal import read_records
from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar


def read_candidates(stage: str) -> list[Candidate]:
    """The candidates that a stage wrote or judged."""
    return read_records(DATA / stage / "candidates.jsonl", Candidate.from_json)


def read_verdicts(*stages: str) -> list[Verdict]:
    """The verdicts of stages, in the order given."""
    return [v for stage in stages for v in read_records(DATA / stage / "verdicts.jsonl", Verdict.from_json)]


def read_taught() -> dict[str, list[Exemplar]]:
    """What filter_variants chose for sft: problem id -> exemplars, fastest first."""
    taught: dict[str, list[Exemplar]] = defaultdict(list)
    for problem_id, exemplar in read_records(DATA / "filter_variants" / "taught.jsonl", _taught):
        taught[problem_id].append(exemplar)
    return dict(taught)


def _taught(row: dict[str, Any]) -> tuple[str, Exemplar]:
    exemplar = Exemplar(candidate_id=row["candidate_id"], source=row["source"], speedup=row["speedup"])
    return row["problem_id"], exemplar


def exemplars_of(candidates: Iterable[Candidate], verdicts: Iterable[Verdict]) -> Iterator[tuple[str, Exemplar]]:
    """(problem id, exemplar) of every correct candidate; both iterables run side by side."""
    for candidate, verdict in zip(candidates, verdicts, strict=True):
        if verdict.speedup is not None:
            yield (
                candidate.problem_id,
                Exemplar(candidate_id=candidate.candidate_id, source=candidate.source, speedup=verdict.speedup),
            )


def say_left_out(count: int, *, asked: int) -> None:
    """Say how many of the examples asked for are not taught, if any."""
    if count:
        say(
            f"{count} of {asked} examples are left out: prompt and program are longer than policy.context_tokens even "
            f"without exemplars, or the program alone than policy.completion_tokens"
        )
