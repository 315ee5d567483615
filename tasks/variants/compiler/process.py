"""Starts the child process that runs a reference and compiles it, and leaves nothing of it behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.variants.compiler.emission import Emission, Variation

_CHILD = Path(__file__).with_name("child.py")
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Why there is no emission."""

    why: str


def emit(source: str, variations: Sequence[Variation], *, timeout_s: int) -> list[Emission | Refused]:
    """Compile a problem in every variation, with an answer for each.

    Args:
        timeout_s: for all of them together; those that were ready in time are kept.
    """
    request = {"source": source, "timeout_s": timeout_s, "variations": [dict(each.options) for each in variations]}
    with tempfile.TemporaryDirectory(prefix="compiler-") as scratch:
        # -P: the folder of the child's file is no place to import from.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=_environment(scratch),
            start_new_session=True,
            text=True,
        )
        missing = Refused(why=f"compiling took longer than {timeout_s} s")
        try:
            output, _ = process.communicate(json.dumps(request) + "\n", timeout=timeout_s)
            missing = Refused(why="the process that ran and compiled it ended")
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode(errors="replace")
        finally:
            _end(process)
    answers = [_answer(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return [*answers, *[missing] * (len(variations) - len(answers))]


def _answer(line: str) -> Emission | Refused:
    row = json.loads(line)
    return Refused(why=row["refused"]) if "refused" in row else Emission.from_json(row)


def _environment(scratch: str) -> dict[str, str]:
    """No secrets, every cache within the scratch folder, and the same order of sets and dictionaries every time."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    folders = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    settings = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONHASHSEED": "0"}
    return {**kept, **dict.fromkeys(folders, scratch), **settings}


def _end(process: subprocess.Popen[str]) -> None:
    """End the child and whatever it started; harmless where nothing is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
