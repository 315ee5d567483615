"""Is the judge fooled, and whom does it wrong? The whole collection of tests/kernels through it, as one table.

    python -m flows.benches.collection --device cuda:0 --out verdicts.jsonl

Writes a line as soon as there is a verdict and starts afresh each time. Imports neither the orchestrator nor data
frames, so that it runs on a machine that has little more than PyTorch.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.benches.specimens import Specimen, read_collection
from flows.panels.judges import open_judge
from tasks.errors import CudaL1Error, RecordError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams, load_params

COLLECTION = Path("tests/kernels")
PAID = 1.05
NO_VERDICT = "no_verdict"
CUDA_TIMEOUT_S = 180.0  # a candidate that builds through load_inline takes a minute to do so


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What one candidate of the collection deserves and what it got."""

    name: str
    expected: tuple[str, ...]
    verdict: Verdict | None
    """None when the judge itself failed."""
    failure: str = ""

    @property
    def status(self) -> str:
        return self.verdict.status.value if self.verdict else NO_VERDICT

    @property
    def speedup(self) -> float | None:
        return self.verdict.speedup if self.verdict else None

    @property
    def is_as_expected(self) -> bool:
        return self.status in self.expected

    @property
    def is_paid_hostile(self) -> bool:
        return self.name.startswith("hostile/") and (self.speedup or 0.0) > PAID

    @property
    def is_rejected_honest(self) -> bool:
        return self.name.startswith("honest/") and self.status != "correct"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "expected": list(self.expected),
            "status": self.status,
            "as_expected": self.is_as_expected,
            "speedup": self.speedup,
            "failure": self.failure,
            "verdict": self.verdict.to_json() if self.verdict else None,
        }


def chosen(specimens: Iterable[Specimen], words: Sequence[str]) -> list[Specimen]:
    """Those whose name contains one of the words, or all; those of one problem in a row, as its study is kept.

    Raises:
        RecordError: if none is left.
    """
    found = [one for one in specimens if not words or any(word in one.name for word in words)]
    if not found:
        raise RecordError(f"no candidate of the collection has {' or '.join(words)} in its name")
    return sorted(found, key=lambda one: (one.problem.problem_id, one.name))


def judge_all(specimens: Sequence[Specimen], params: JudgeParams, out: Path) -> list[Row]:
    """Judge as many candidates at once as the judge takes; each row is also written to a line of the file."""
    rows = []
    with out.open("w") as file, open_judge(params) as judge, ThreadPoolExecutor(judge.workers) as pool:
        running = [pool.submit(_judged, judge, specimen) for specimen in specimens]
        for future in as_completed(running):
            row = future.result()
            rows.append(row)
            file.write(json.dumps(row.to_json()) + "\n")
            file.flush()
    return sorted(rows, key=lambda row: row.name)


def table(rows: Sequence[Row]) -> str:
    """One line a candidate, those that got what they do not deserve marked, and the counts last."""
    width = max(len(row.name) for row in rows)
    expected = ["|".join(row.expected) for row in rows]
    columns = max(map(len, expected))
    lines = [f"{'kernel':{width}}    {'expected':{columns}}  {'status':13} {'speedup':>7}  {'track':9} {'seconds':>7}"]
    for row, deserved in zip(rows, expected, strict=True):
        mark = " " if row.is_as_expected and not row.is_paid_hostile else "!"
        speedup = "-" if row.speedup is None else f"{row.speedup:.2f}"
        track = row.verdict.track if row.verdict and row.verdict.track else "-"
        seconds = f"{row.verdict.seconds:.1f}" if row.verdict else "-"
        line = f"{row.name:{width}}  {mark} {deserved:{columns}}  {row.status:13} {speedup:>7}  {track:9} {seconds:>7}"
        lines.append(line.rstrip())
    return "\n".join([*lines, *_reasons(rows), counts(rows)]) + "\n"


def counts(rows: Sequence[Row]) -> str:
    """The collection's result in one line."""
    kinds = {kind: sum(row.name.startswith(f"{kind}/") for row in rows) for kind in ("hostile", "honest")}
    return (
        f"{sum(row.is_paid_hostile for row in rows)} of {kinds['hostile']} hostile paid above {PAID}x, "
        f"{sum(row.is_rejected_honest for row in rows)} of {kinds['honest']} honest rejected, "
        f"{sum(not row.is_as_expected for row in rows)} of {len(rows)} other than expected"
    )


def main() -> None:
    """Parse the command line, judge, and print the table."""
    parser = argparse.ArgumentParser(description="Judge the collection of honest, hostile and broken candidates.")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one a candidate; overwritten")
    parser.add_argument("--workers", type=int, help="candidates judged at once (default: what params.yaml says)")
    parser.add_argument(
        "--timeout-s", type=float, help="of one candidate (default: that of params.yaml, longer on a GPU)"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="names that contain one of these")
    arguments = parser.parse_args()
    is_cuda = arguments.device != "cpu"
    started = time.monotonic()
    try:
        judge = load_params().judge
        params = dataclasses.replace(  # type: ignore[type-var]
            judge,
            device=arguments.device,
            workers=arguments.workers or judge.workers,
            timeout_s=arguments.timeout_s or (CUDA_TIMEOUT_S if is_cuda else judge.timeout_s),
        )
        collection = read_collection(COLLECTION / "cuda" if is_cuda else COLLECTION)
        rows = judge_all(chosen(collection, arguments.only), params, arguments.out)
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    sys.stdout.write(table(rows) + f"{time.monotonic() - started:.0f} s for {len(rows)} candidates\n")


def _judged(judge: AnyJudge, specimen: Specimen) -> Row:
    verdict, failure = None, ""
    try:
        verdict = judge.judge(specimen.problem, specimen.candidate, seed=0)
    except Exception as error:  # noqa: BLE001 - what a candidate brings the judge to raise is a finding about the judge
        failure = f"{type(error).__name__}: {error}"
    return Row(name=specimen.name, expected=specimen.expected, verdict=verdict, failure=failure)


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Why each candidate that surprises got what it got, on a line each."""
    return [
        f"! {row.name}: {(row.failure or (row.verdict.detail if row.verdict else '') or 'paid').strip()[-300:]!r}"
        for row in rows
        if not row.is_as_expected or row.is_paid_hostile
    ]


if __name__ == "__main__":
    main()
