"""How many candidates a minute does the judge judge, and how much dearer is it than an evaluator that believes them?

    python -m flows.benches.judge            # the built-in rewrites, on the processor
    python -m flows.benches.judge --device cuda:0 --write-candidates FILE    # those for a GPU, written anywhere
    python -m flows.benches.judge --device cuda:0 --candidates FILE --native tests/kernels/cuda --kernelbench FOLDER

The same candidates go through a plain loop in one process, and through KernelBench's evaluator where that is given.
Needs little more than PyTorch when candidates come from a file, which --write-candidates makes elsewhere.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from flows.benches.specimens import Specimen, read_collection
from flows.engine import progress, say
from flows.panels.judges import open_judge
from tasks.errors import CudaL1Error, MachineError
from tasks.params import JudgeParams, Params, load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

Pair = tuple[Problem, Candidate]
NATIVE_WORDS = ("load_inline", "cpp_extension", "nvcc")
NATIVE_TIMEOUT_S = 180.0  # building one takes up to a minute
LOOK_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one way of evaluating took for a number of candidates."""

    name: str
    num_candidates: int
    seconds: float
    words: str
    """What came out, and what else was seen."""

    @property
    def per_minute(self) -> float:
        return 60 * self.num_candidates / self.seconds


def rewritten(params: Params, count: int, device: str) -> list[Pair]:
    """Candidates as generate_variants makes them for a device, nothing compiled, equally many for every problem."""
    from tasks.variants.builtin import BuiltinProvider
    from tasks.variants.rewrites import rewrites_for

    problems = load_problems(params.problems)
    uncompiled = replace(params.generate_variants, compiled_share=0.0)  # type: ignore[type-var]
    provider = BuiltinProvider(uncompiled, rewrites=rewrites_for(device))
    each = -(-count // len(problems))
    return [
        (problem, candidate)
        for problem in problems.values()
        for candidate in islice(provider.candidates(problem, seed=params.seed), each)
    ][:count]


def read(path: Path, params: Params) -> list[Pair]:
    """Candidates from a file of JSON lines, for the problems of the catalogue."""
    problems = load_problems(params.problems)
    candidates = [Candidate.from_json(json.loads(line)) for line in path.read_text().splitlines()]
    return [(problems[candidate.problem_id], candidate) for candidate in candidates]


def native(folder: Path, count: int) -> list[Pair]:
    """The honest C++ and CUDA candidates of a collection, again and again, with texts that share no build."""
    chosen = [each for each in read_collection(folder) if _is_native(each)]
    return [
        (each.problem, replace(each.candidate, source=f"{each.candidate.source}\n# {number}\n"))
        for number, each in enumerate(islice(cycle(chosen), count))
    ]


def _is_native(specimen: Specimen) -> bool:
    honest = specimen.name.startswith("honest/")
    return honest and any(word in specimen.candidate.source for word in NATIVE_WORDS)


def judged(pairs: Sequence[Pair], params: JudgeParams, *, name: str) -> Measured:
    """The judge's time for all candidates, studies of their problems included, its start not."""
    statuses: Counter[str] = Counter()
    with open_judge(params) as judge, ThreadPoolExecutor(judge.workers) as pool, busy_share(params.device) as busy:
        bar = progress(f"judging, {name}", total=len(pairs), unit="candidate")
        started = time.monotonic()
        for verdict in pool.map(lambda pair: judge.judge(*pair, seed=0), pairs):
            statuses[verdict.status.value] += 1
            bar.update()
        seconds = time.monotonic() - started
        bar.close()
    words = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    if busy:
        words += f"; the device was busy for {sum(busy) / len(busy):.0f} % of the time"
    return Measured(
        name=f"the judge, {name}, {params.workers} at once, {judge.workers} in hand",
        num_candidates=len(pairs),
        seconds=seconds,
        words=words,
    )


@contextmanager
def busy_share(device: str) -> Iterator[list[float]]:
    """Percentages of time in which a kernel ran on the device, sample after sample; none for the processor."""
    samples: list[float] = []
    if device == "cpu":
        yield samples
        return
    stop = threading.Event()
    thread = threading.Thread(target=_sample, args=(int(device.split(":")[1]), samples, stop), daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _sample(index: int, samples: list[float], stop: threading.Event) -> None:
    read = _reader(index)
    while not stop.wait(LOOK_S):
        samples.append(read())


def _reader(index: int) -> Callable[[], float]:
    """What tells the share of the last moments in which a kernel ran, in percent."""
    try:
        import pynvml
    except ImportError:
        query = ["nvidia-smi", f"--id={index}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        return lambda: float(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return lambda: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def plain(pairs: Sequence[Pair], params: JudgeParams, *, kernelbench: Path | None = None) -> Measured:
    """The time of an evaluator without walls: as many processes as the judge has workers, each with its share."""
    num_processes = 1 if params.device != "cpu" else params.workers
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(num_processes) as pool:
        shares = []
        for number in range(num_processes):
            cases = Path(folder) / f"{number}.jsonl"
            rows = [
                {"reference": problem.source, "candidate": candidate.source}
                for problem, candidate in pairs[number::num_processes]
            ]
            cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
            shares.append((cases, len(rows)))
        asked = [pool.submit(_evaluated, *share, params.device, kernelbench) for share in shares]
        answers = [each.result() for each in asked]
    rights = [is_right for share in answers for is_right, _ in share]
    words = f"{rights.count(True)} right"
    if crashes := rights.count(None):
        words += f", {crashes} crashed the evaluator, whose new start is not counted"
    return Measured(
        name=f"{'KernelBench' if kernelbench else 'a plain loop'}, {num_processes} process(es)",
        num_candidates=len(pairs),
        seconds=max(sum(seconds for _, seconds in share) for share in answers),
        words=words,
    )


def _evaluated(cases: Path, num_cases: int, device: str, kernelbench: Path | None) -> list[tuple[bool | None, float]]:
    """Whether each case is right, None where it ended the process, and the seconds it took as far as they are known."""
    command = [sys.executable, "-m", "flows.benches.plain_evaluator", str(cases), "--device", device]
    if kernelbench:
        command += ["--kernelbench", str(kernelbench)]
    answers: list[tuple[bool | None, float]] = []
    while len(answers) < num_cases:
        done = subprocess.run([*command, "--first", str(len(answers))], stdout=subprocess.PIPE, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        answers += [(row["is_right"], row["seconds"]) for row in rows]
        if done.returncode > 0:
            raise MachineError(f"the evaluator ended with {done.returncode}: {' '.join(command)}")
        if len(answers) < num_cases:  # a signal ended it
            answers.append((None, 0.0))
    return answers


def report(groups: Sequence[Sequence[Measured]]) -> str:
    """A line for each way; the first of each group is the judge, to which the others are compared."""
    lines = []
    for group in groups:
        for measured in group:
            ratio = f"; the judge has {group[0].per_minute / measured.per_minute:.2f} of that" * (measured != group[0])
            lines.append(
                f"{measured.name}: {measured.num_candidates} candidates in {measured.seconds:.0f} s, "
                f"{measured.per_minute:.0f} a minute, {60 * measured.per_minute:.0f} an hour{ratio} ({measured.words})"
            )
    return "\n".join(lines)


def main() -> None:
    """Parse the command line, run all ways one after the other and print a line for each."""
    parser = argparse.ArgumentParser(description="Throughput of the judge.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, help="candidates judged at once; as in params.yaml if not given")
    parser.add_argument("--count", type=int, default=118, help="candidates at the level of PyTorch")
    parser.add_argument("--candidates", type=Path, help="take them from this file of JSON lines")
    parser.add_argument("--write-candidates", type=Path, help="only write them to this file")
    parser.add_argument("--native", type=Path, help="a collection with candidates that build C++ or CUDA")
    parser.add_argument("--native-count", type=int, default=32)
    parser.add_argument("--kernelbench", type=Path, help="the folder of a checkout that holds the package kernelbench")
    arguments = parser.parse_args()
    try:
        run(arguments)
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")


def run(arguments: argparse.Namespace) -> None:
    params = load_params()
    if arguments.candidates:
        pairs = read(arguments.candidates, params)
    else:
        pairs = rewritten(params, arguments.count, arguments.device)
    if arguments.write_candidates:
        rows = (json.dumps(candidate.to_json()) + "\n" for _, candidate in pairs)
        arguments.write_candidates.write_text("".join(rows))
        return
    workers = arguments.workers or params.judge.workers
    judge = replace(params.judge, device=arguments.device, workers=workers)  # type: ignore[type-var]
    groups = [[judged(pairs, judge, name="PyTorch"), plain(pairs, judge)]]
    if arguments.native:
        built = native(arguments.native, arguments.native_count)
        patient = replace(judge, timeout_s=NATIVE_TIMEOUT_S)  # type: ignore[type-var]
        groups.append([judged(built, patient, name="C++ and CUDA"), plain(built, patient)])
    if arguments.kernelbench:
        for group, cases in zip(groups, (pairs, built) if arguments.native else (pairs,), strict=True):
            group.append(plain(cases, judge, kernelbench=arguments.kernelbench))
    elif arguments.device == "cpu":
        say("KernelBench's own evaluator needs CUDA: here the judge is compared with a plain loop only, which does as")
        say("many trials and timed runs in one process, believes the candidate, and gives it no process of its own.")
    say(report(groups))


if __name__ == "__main__":
    main()
