"""Do more GPUs judge as many more candidates, and do neighbours at work change what is measured?

    python -m flows.benches.panel --devices 1 2 4                       # the built-in rewrites
    python -m flows.benches.panel --devices 1 2 4 --kernels h100.json   # kernels that were released for KernelBench

With n GPUs every candidate is judged n times, each time with a study of its own, so that each GPU has as much to do as
the one alone. With one GPU that is done twice, which tells how far speedups shift by themselves. With --device cpu, the
numbers are of cores.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from flows.benches.judge import Pair, read, rewritten
from flows.engine import progress, say
from flows.panels.judges import open_judge
from tasks.errors import CudaL1Error, MachineError, ParamsError
from tasks.judge.batch import changed
from tasks.params import JudgeParams, load_params
from tasks.problems.problem import Problem
from tasks.problems.sources import read_problems
from tasks.variants.imported import read_candidates

MEMORY_BYTES = 8 << 30
TIMEOUT_S = 300.0
SEED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One way of judging all candidates."""

    num_devices: int
    num_verdicts: int
    seconds: float
    speedups: Mapping[str, float]
    """By candidate, where it has any; the median where it was judged several times."""

    @property
    def per_hour(self) -> float:
        return 3600 * self.num_verdicts / self.seconds


def released(path: Path, count: int) -> list[Pair]:
    """Kernels from a file that also holds their references, spread evenly over it."""
    problems = read_problems(str(path)).problems
    kernels = read_candidates(path, problems).kernels
    pairs = [(problems[kernel.problem_id], kernel.candidate) for kernel in kernels if kernel.candidate is not None]
    return pairs[:: max(1, len(pairs) // count)][:count]


def _copied(problem: Problem, number: int) -> Problem:
    """The same with an identity of its own: copies of one share a study, on the device that has it."""
    return replace(problem, source=f"{problem.source}\n# copy {number}\n")


def judged(pairs: Sequence[Pair], params: JudgeParams, *, num_devices: int) -> Round:
    """The time for all candidates, studies of their problems included, the judges' start not."""
    speedups: dict[str, list[float]] = defaultdict(list)
    jobs = [(_copied(problem, number), candidate) for number in range(num_devices) for problem, candidate in pairs]
    with open_judge(params) as judge, ThreadPoolExecutor(judge.workers) as pool:
        bar = progress(f"{num_devices} x {judge.device}", total=len(jobs), unit="candidate")
        started = time.monotonic()
        for verdict in pool.map(lambda pair: judge.judge(*pair, seed=SEED), jobs):
            if verdict.speedup is not None:
                speedups[verdict.candidate_id].append(verdict.speedup)
            bar.update()
        seconds = time.monotonic() - started
        bar.close()
    medians = {name: statistics.median(found) for name, found in speedups.items()}
    return Round(num_devices=num_devices, num_verdicts=len(jobs), seconds=seconds, speedups=medians)


def report(rounds: Sequence[Round]) -> str:
    """A table in Markdown: shifts since the first round, and rates relative to the faster one on one device."""
    first = rounds[0]
    alone = max(each.per_hour for each in rounds if each.num_devices == first.num_devices) / first.num_devices
    lines = [
        "| devices | candidates | seconds | candidates an hour | of linear | median shift | median size of shifts |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in rounds:
        shifts = [each.speedups[name] / before - 1 for name, before in first.speedups.items() if name in each.speedups]
        shift, size = (
            (statistics.median(shifts), statistics.median(map(abs, shifts))) if shifts else (float("nan"),) * 2
        )
        lines.append(
            f"| {each.num_devices} | {each.num_verdicts} | {each.seconds:.0f} | {each.per_hour:.0f} "
            f"| {each.per_hour / (alone * each.num_devices):.2f} | {shift:+.2%} | {size:.2%} of {len(shifts)} |"
        )
    return "\n".join(lines)


def gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES says, or the number of every GPU."""
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return visible.split(",")
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(f"GPUs cannot be listed: {error}; --device cpu measures on the processor") from error
    return [str(number) for number in range(listed.stdout.count("GPU "))]


def run(arguments: argparse.Namespace) -> str:
    if min(arguments.count, arguments.workers, *arguments.devices) < 1:
        raise ParamsError("--count, --workers and --devices must be above 0")
    whole = load_params()
    if arguments.kernels:
        pairs = released(arguments.kernels, arguments.count)
    elif arguments.candidates:
        pairs = read(arguments.candidates, whole)
    else:
        pairs = rewritten(whole, arguments.count, arguments.device)
    params = changed(whole.judge, device=arguments.device, ray="local", timeout_s=TIMEOUT_S, memory_bytes=MEMORY_BYTES)
    present = gpus() if arguments.device == "cuda" else []
    if present and max(arguments.devices) > len(present):
        raise MachineError(f"{max(arguments.devices)} GPUs were asked for, but there are {len(present)}")
    rounds = []
    for number in (min(arguments.devices), *sorted(arguments.devices)):
        workers = arguments.workers if present else number
        if present:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(present[:number])
        rounds.append(judged(pairs, changed(params, workers=workers), num_devices=number))
        say(report(rounds))
    return report(rounds)


def main() -> None:
    """Parse the command line, judge with each number of devices and print a table."""
    parser = argparse.ArgumentParser(description="Throughput and steadiness of judging on several devices.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4], help="how many, one round each")
    parser.add_argument("--workers", type=int, default=12, help="candidates judged at once on a GPU")
    parser.add_argument("--count", type=int, default=96, help="candidates")
    parser.add_argument("--kernels", type=Path, help="take them from a file of CUDA-L1's release")
    parser.add_argument(
        "--candidates", type=Path, help="take them from what flows.benches.judge --write-candidates wrote"
    )
    try:
        sys.stdout.write(run(parser.parse_args()) + "\n")
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
