"""Does the judge leave anything behind? The collection of candidates judged round and round, hostile ones included.

    python -m flows.soaks.judge --judgements 2000 --out work/soak.json

Runs in folders of its own, so that whatever appears there was put there by a judgement, and looks after every one.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from flows.benches.specimens import Specimen, read_collection
from flows.engine import WORK, progress, say
from flows.soaks.footprint import Footprint, footprint, memory_bytes, private_folders
from tasks.errors import CudaL1Error
from tasks.judge.baselines import baseline_candidate
from tasks.judge.fork_server import PROGRAM
from tasks.judge.judge import Judge
from tasks.params import load_params

COLLECTION = Path("tests/kernels")
QUICK = {"trials": 2, "rounds": 5, "timeout_s": 4.0, "memory_bytes": 1 << 30}
PATIENCE_S = 2.0
MAX_GROWTH_BYTES = 48 << 20


@dataclass(kw_only=True, slots=True)
class Soaked:
    """What many judgements in a row left behind."""

    num_judgements: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    """Candidates that got another status than they declare: for information, machines differ."""
    raised: list[str] = field(default_factory=list)
    """Exceptions of the judge, of which there must be none."""
    leftovers: list[str] = field(default_factory=list)
    referee_bytes: list[int] = field(default_factory=list)
    """Resident memory of the referee, the least in every round: studies that it keeps for a while come and go."""
    fork_server_bytes: list[int] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        # In the first round everything is still warming up.
        series = (sizes[1:] or sizes for sizes in (self.referee_bytes, self.fork_server_bytes))
        return (
            not self.leftovers
            and not self.raised
            and all(sizes[-1] - sizes[0] < MAX_GROWTH_BYTES for sizes in series if sizes)
        )

    def to_json(self) -> dict[str, Any]:
        # Python 3.11 makes a Counter of pairs of a Counter in asdict.
        return {**asdict(self), "statuses": dict(self.statuses)}


def soak(judge: Judge, specimens: Sequence[Specimen], folders: Sequence[Path], *, judgements: int) -> Soaked:
    """Judge the candidates in turn, so often, and look for leftovers after each."""
    soaked = Soaked()
    # Studies of problems are kept, and so are their processes: as many as ever will be, before the first look.
    for problem in {specimen.problem.problem_id: specimen.problem for specimen in specimens}.values():
        judge.judge(problem, baseline_candidate(problem, "eager"), seed=0)
    with progress("soaking", total=judgements, unit="judgement") as bar:  # which has a thread of its own
        before = footprint(folders)
        sizes: list[int] = []
        for specimen in islice(cycle(specimens), judgements):
            status = _judged(judge, specimen, soaked)
            soaked.num_judgements += 1
            soaked.statuses[status] += 1
            if status not in specimen.expected:
                soaked.unexpected.append(f"{specimen.name}: {status}")
            left = _leftovers(before, folders)
            for words in left:
                soaked.leftovers.append(f"{soaked.num_judgements}. {specimen.name}: {words}")
                say(soaked.leftovers[-1])
            sizes.append(memory_bytes(os.getpid()))
            if soaked.num_judgements % min(len(specimens), judgements) == 0:
                soaked.referee_bytes.append(min(sizes))
                sizes.clear()
                soaked.fork_server_bytes.append(memory_bytes(_fork_server()))
            bar.update()
    return soaked


def _judged(judge: Judge, specimen: Specimen, soaked: Soaked) -> str:
    try:
        return judge.judge(specimen.problem, specimen.candidate, seed=soaked.num_judgements).status.value
    except Exception as error:  # noqa: BLE001 - whatever comes out of the judge is a finding, and the soak goes on
        soaked.raised.append(f"{specimen.name}: {type(error).__name__}: {error}"[:300])
        say(soaked.raised[-1])
        return "raised"


def _leftovers(before: Footprint, folders: Sequence[Path]) -> list[str]:
    """What is more than before and stays: the kernel takes a moment to see the last of a process."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := before.leftovers(footprint(folders))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _fork_server() -> int:
    """This process may have other children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (pid,) = [pid for pid in children if PROGRAM.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(pid)


def report(soaked: Soaked) -> str:
    """What was left behind, in a few lines."""

    def sizes(series: Sequence[int]) -> str:
        return " ".join(str(size >> 20) for size in series)

    lines = [
        f"{soaked.num_judgements} judgements in a row: "
        + ", ".join(f"{count} {status}" for status, count in soaked.statuses.most_common()),
        f"  least memory of the referee in each round, in MiB: {sizes(soaked.referee_bytes)}",
        f"  memory of the fork server after each round, in MiB: {sizes(soaked.fork_server_bytes)}",
        f"  other status than declared: {len(soaked.unexpected)} {Counter(soaked.unexpected).most_common(12)}",
        f"  exceptions: {len(soaked.raised) or 'none'} {soaked.raised[:5]}",
        f"  left behind: {len(soaked.leftovers) or 'nothing'}",
        *(f"    {words}" for words in soaked.leftovers[:20]),
    ]
    return "\n".join(lines)


def main() -> None:
    """Parse the command line and soak; exit code 1 when anything was left behind."""
    parser = argparse.ArgumentParser(description="Judge the collection round and round and look for leftovers.")
    parser.add_argument("--judgements", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=WORK / "soak.json")
    arguments = parser.parse_args()
    params = replace(load_params().judge, device="cpu", workers=1, **QUICK)  # type: ignore[type-var]
    # Those of one problem in a row: a study of it is kept for a while only.
    specimens = sorted(read_collection(COLLECTION), key=lambda specimen: specimen.problem.problem_id)
    out = arguments.out.resolve()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="soak-") as parent,
            private_folders(Path(parent)) as folders,
            Judge(params) as judge,
        ):
            soaked = soak(judge, specimens, folders, judgements=arguments.judgements)
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(soaked.to_json(), indent=1) + "\n")
    say(report(soaked))
    sys.exit(0 if soaked.is_clean else 1)


if __name__ == "__main__":
    main()
