"""Reading what earlier stages wrote under data/."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from flows.engine import DATA
from flows.journal import read_rows
from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar


def read_candidates(stage: str) -> list[Candidate]:
    """The candidates that a stage wrote or judged."""
    return [Candidate.from_json(row) for row in read_rows(DATA / stage / "candidates.jsonl")]


def read_verdicts(*stages: str) -> list[Verdict]:
    """The verdicts of stages, in the order given."""
    return [Verdict.from_json(row) for stage in stages for row in read_rows(DATA / stage / "verdicts.jsonl")]


def read_taught() -> dict[str, list[Exemplar]]:
    """What filter_variants chose for sft: problem id -> exemplars, fastest first."""
    taught: dict[str, list[Exemplar]] = defaultdict(list)
    for row in read_rows(DATA / "filter_variants" / "taught.jsonl"):
        taught[row["problem_id"]].append(
            Exemplar(candidate_id=row["candidate_id"], source=row["source"], speedup=row["speedup"])
        )
    return dict(taught)


def exemplars_of(candidates: Iterable[Candidate], verdicts: Iterable[Verdict]) -> Iterator[tuple[str, Exemplar]]:
    """(problem id, exemplar) of every correct candidate; both iterables run side by side."""
    for candidate, verdict in zip(candidates, verdicts, strict=True):
        if verdict.speedup is not None:
            yield (
                candidate.problem_id,
                Exemplar(candidate_id=candidate.candidate_id, source=candidate.source, speedup=verdict.speedup),
            )
