"""Starts the child process that runs a reference and compiles it, and leaves nothing of it behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.variants.compiler.emission import Emission, Variation
from tasks.variants.shortening import shortened

_CHILD = Path(__file__).with_name("child.py")
LOOK_S = 0.2
"""Whether to stop is asked this often."""
MESSAGE_CHARS = 300
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Why there is no emission."""

    why: str


def emit(
    source: str, variations: Sequence[Variation], *, timeout_s: int, is_stopped: Callable[[], bool] = lambda: False
) -> list[Emission | Refused]:
    """Compile a problem in every variation, with an answer for each.

    Args:
        timeout_s: for all of them together; those that were ready in time are kept.
        is_stopped: ends the child where it is true; what was ready is kept.
    """
    request = {"source": source, "timeout_s": timeout_s, "variations": [dict(each.options) for each in variations]}
    with tempfile.TemporaryDirectory(prefix="compiler-") as scratch, open(f"{scratch}/messages", "w+b") as messages:
        # -P: the folder of the child's file is no place to import from.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            cwd=scratch,
            env=_environment(scratch),
            start_new_session=True,
            text=True,
        )
        try:
            output, missing = _communicated(process, json.dumps(request) + "\n", timeout_s, is_stopped)
        finally:
            _end(process)
        if missing is None:
            messages.seek(0)
            missing = Refused(why=_how_it_ended(process.returncode, messages.read().decode(errors="replace")))
    answers = [_answer(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return [*answers, *[missing] * (len(variations) - len(answers))]


def _communicated(
    process: subprocess.Popen[str], request: str, timeout_s: int, is_stopped: Callable[[], bool]
) -> tuple[str, Refused | None]:
    """What the child wrote, and why there is no more of it; None where it has ended by itself."""
    deadline = time.monotonic() + timeout_s
    sent: str | None = request
    while True:
        try:
            return process.communicate(sent, timeout=LOOK_S)[0], None
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode(errors="replace")
        sent = None  # it goes on with what is left of it
        if is_stopped():
            return output, Refused(why="it was not waited for")
        if time.monotonic() > deadline:
            return output, Refused(why=f"compiling took longer than {timeout_s} s")


def _how_it_ended(status: int, messages: str) -> str:
    last = shortened(messages.strip().split("\n")[-1], MESSAGE_CHARS)
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"the process that ran and compiled it ended {how}{': ' if last else ''}{last}"


def _answer(line: str) -> Emission | Refused:
    row = json.loads(line)
    return Refused(why=shortened(row["refused"], MESSAGE_CHARS)) if "refused" in row else Emission.from_json(row)


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
