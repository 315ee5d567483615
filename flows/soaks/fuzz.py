"""Does the judge survive anything? Random texts, programs, forged answers and mutated kernels, thousands of them.

    python -m flows.soaks.fuzz --cases 10000          # continues where it was stopped, below work/fuzz

Every case must get a verdict, and after it a candidate that is right must still be found right. A case that breaks this
is written to a file; its seed and number, which are printed, make it again as long as the collection is the same.
"""

import argparse
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from flows.benches.specimens import Specimen, read_collection
from flows.engine import WORK, progress, say
from flows.parts.journal import Journal
from flows.soaks.fuzz_programs import GENERATORS
from tasks.errors import CudaL1Error
from tasks.judge.baselines import baseline_candidate
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status
from tasks.params import JudgeParams, load_params
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

COLLECTION = Path("tests/kernels")
FUZZ = WORK / "fuzz"
# Programs that hang cost this each; little else depends on these numbers.
QUICK = {"trials": 2, "rounds": 5, "timeout_s": 4.0, "memory_bytes": 1 << 30}
SHARES = {"text": 3, "program": 3, "answers": 2, "mutant": 4}
PROBE_EVERY = 25
RIGHT = (Status.CORRECT, Status.UNSTABLE)  # the latter on a machine too busy to time anything


@dataclass(frozen=True, kw_only=True, slots=True)
class FuzzCase:
    """One random candidate."""

    number: int
    kind: str
    problem: Problem
    candidate: Candidate


def fuzz_case(number: int, *, seed: int, specimens: Sequence[Specimen]) -> FuzzCase:
    """The case of this number: always the same one for a seed and a collection."""
    rng = random.Random(f"{seed} {number}")
    specimen = rng.choice(specimens)
    kind = rng.choices(list(SHARES), weights=list(SHARES.values()))[0]
    sources = [specimen.candidate.source, *(each.candidate.source for each in specimens)]
    return FuzzCase(
        number=number,
        kind=kind,
        problem=specimen.problem,
        candidate=Candidate(
            problem_id=specimen.problem.problem_id, source=GENERATORS[kind](rng, sources), origin=f"fuzz:{kind}"
        ),
    )


class Fuzzer:
    """Judges cases and keeps what happened."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        self._judge = judge
        self._failures = folder / "failures"
        self._failures.mkdir(parents=True, exist_ok=True)

    def try_case(self, case: FuzzCase) -> dict[str, Any]:
        """The case's row for the journal: its status and time, or the exception that must not have been."""
        row = {"number": case.number, "kind": case.kind, "problem": case.problem.problem_id}
        try:
            verdict = self._judge.judge(case.problem, case.candidate, seed=case.number)
        except Exception as error:  # noqa: BLE001 - whatever comes out of the judge is what is looked for
            self._keep(case, traceback.format_exc())
            return row | {"raised": f"{type(error).__name__}: {error}"[:300]}
        if case.number % PROBE_EVERY == 0:
            row["probe"] = self._probe(case)
        return row | {"status": verdict.status.value, "seconds": round(verdict.seconds, 2)}

    def _probe(self, case: FuzzCase) -> str:
        """Whether the judge still finds the reference equal to itself."""
        try:
            status = self._judge.judge(case.problem, baseline_candidate(case.problem, "eager"), seed=case.number).status
        except Exception as error:  # noqa: BLE001 - as above
            self._keep(case, f"the reference, judged next:\n{traceback.format_exc()}")
            return f"{type(error).__name__}: {error}"[:300]
        if status not in RIGHT:
            self._keep(case, f"the reference, judged next, is {status}")
        return status.value

    def _keep(self, case: FuzzCase, words: str) -> None:
        source = case.candidate.source.encode(errors="surrogatepass")
        (self._failures / f"{case.number}.py").write_bytes(source)
        (self._failures / f"{case.number}.txt").write_text(f"{case.kind} for {case.problem.problem_id}\n{words}\n")


def fuzz(num_cases: int, *, seed: int, folder: Path, params: JudgeParams) -> list[dict[str, Any]]:
    """Judge the cases that the folder has no row for yet; all rows."""
    specimens = read_collection(COLLECTION)
    journal = Journal(folder / "cases.jsonl")
    rows = {row["number"]: row for row in journal.rows}
    todo = [number for number in range(num_cases) if number not in rows]
    cases = (fuzz_case(number, seed=seed, specimens=specimens) for number in todo)
    bar = progress("fuzzing", total=num_cases, unit="case")
    bar.update(num_cases - len(todo))
    with Judge(params) as judge, ThreadPoolExecutor(params.workers) as pool:
        fuzzer = Fuzzer(judge, folder)
        for done in _few_at_a_time((pool.submit(fuzzer.try_case, case) for case in cases), few=2 * params.workers):
            row = done.result()
            journal.append([row])
            rows[row["number"]] = row
            bar.update()
    bar.close()
    journal.close()
    return [rows[number] for number in range(num_cases)]


def _few_at_a_time(futures: Iterator[Future[Any]], *, few: int) -> Iterator[Future[Any]]:
    """Finished futures as they come, never more than a few of them begun: texts must not fill the memory."""
    running = set(islice(futures, few))
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        running |= set(islice(futures, len(done)))
        yield from done


def is_failure(row: dict[str, Any]) -> bool:
    return "raised" in row or row.get("probe", "correct") not in RIGHT


def report(rows: Sequence[dict[str, Any]], *, seed: int, folder: Path) -> str:
    """What happened, in a few lines."""
    lines = [f"{len(rows)} cases of seed {seed}; statuses by kind of case:"]
    for kind in SHARES:
        counts = Counter(row.get("status", "RAISED") for row in rows if row["kind"] == kind)
        lines.append(f"  {kind}: {', '.join(f'{count} {status}' for status, count in counts.most_common())}")
    probes = [row["probe"] for row in rows if "probe" in row]
    lines.append(f"  the reference judged in between: {sum(probe in RIGHT for probe in probes)} of {len(probes)} right")
    lines.append(f"  the longest judgement: {max((row.get('seconds', 0.0) for row in rows), default=0.0):.1f} s")
    failed = [row["number"] for row in rows if is_failure(row)]
    lines.append(f"  failed: {len(failed)}" + (f", see {folder / 'failures'}: {failed[:20]}" if failed else ""))
    return "\n".join(lines)


def main() -> None:
    """Parse the command line and fuzz; exit code 1 when a case failed."""
    parser = argparse.ArgumentParser(
        description="Random candidates for the judge: always a verdict, never an exception."
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other cases; one folder a seed")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    arguments = parser.parse_args()
    folder = FUZZ / f"seed-{arguments.seed}"
    params = replace(load_params().judge, device="cpu", workers=arguments.workers, **QUICK)  # type: ignore[type-var]
    say(f"seed {arguments.seed}, {arguments.cases} cases, results in {folder}")
    try:
        rows = fuzz(arguments.cases, seed=arguments.seed, folder=folder, params=params)
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command continues where it stopped")
    say(report(rows, seed=arguments.seed, folder=folder))
    sys.exit(1 if any(map(is_failure, rows)) else 0)


if __name__ == "__main__":
    main()
