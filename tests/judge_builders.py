"""Problems and candidates for the tests of the judge. flows/benches/specimens.py reads what tests/kernels declares."""

from dataclasses import replace
from pathlib import Path

from flows.benches.specimens import Specimen, read_collection, read_problem, read_specimen
from tasks.judge.verdict import Status
from tasks.params import JudgeParams
from tasks.problems.problem import Problem, Split

KERNELS = Path(__file__).parent / "kernels"
PARAMS = JudgeParams(
    device="cpu", workers=2, trials=3, rounds=5, settled_error=0.04, timeout_s=10.0, memory_bytes=1 << 30
)
RIGHT = (Status.CORRECT, Status.UNSTABLE)  # all outputs were right; on a busy machine the times may not settle
Kernel = Specimen
kernel = read_specimen


def kernels(*, device: str = "cpu") -> list[Kernel]:
    """All kernels for a kind of device, "cpu" or "cuda"."""
    return read_collection(KERNELS / "cuda" if device == "cuda" else KERNELS)


def with_source(specimen: Kernel, source: str) -> Kernel:
    """The same with another text."""
    return replace(specimen, candidate=replace(specimen.candidate, source=source))


def problem(name: str) -> Problem:
    return read_problem(KERNELS / "problems" / f"{name}.py")


def problem_of(source: str, *, name: str = "inline", precision: str = "fp32") -> Problem:
    return Problem(
        problem_id=f"tests/{name}", level=1, family="tests", split=Split.TRAIN, source=source, precision=precision
    )


def running(words: str) -> list[int]:
    """Processes of this machine whose command line contains the words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in command:
            found.append(int(path.parent.name))
    return found
