"""The faults of the soak: what is done to a retraining machine, how it is undone, and what is promised for it."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from flows.soaks.retrain_machine import PROBLEM, Machine

Undo = Callable[[], None]
Inject = Callable[[Machine, random.Random], Undo | None]
"""Does it; what undoes it, or None where there was nothing to hit at that moment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One kind of fault."""

    name: str
    promise: str
    inject: Inject
    hold_s: tuple[float, float] = (0.0, 0.0)
    """For how long it lasts, at least and at most."""
    before: bool = False
    """Whether it is there before the run begins, because it strikes at one moment only."""
    words: str = ""
    """What the run or its log must say if the run fails of it."""


def _nothing() -> None:
    pass


def _kill(choose: Callable[[Machine], list[psutil.Process]]) -> Inject:
    def inject(machine: Machine, rng: random.Random) -> Undo | None:
        if not (found := choose(machine)):
            return None
        with suppress(psutil.NoSuchProcess):
            rng.choice(found).kill()
            return _nothing
        return None

    return inject


def _with_words(machine: Machine, *words: str) -> list[psutil.Process]:
    found = []
    for process in machine.below_runner():
        with suppress(psutil.Error):
            if all(word in " ".join(process.cmdline()) for word in words):
                found.append(process)
    return found


def flow_processes(machine: Machine) -> list[psutil.Process]:
    return _with_words(machine, "prefect", "engine")


def _stages(machine: Machine) -> list[psutil.Process]:
    return [process for process in _with_words(machine, "-m flows.") if process.name().startswith("python")]


def _kill_machine(machine: Machine, rng: random.Random) -> Undo | None:
    """Everything but the server at once, as when the machine with the runner loses power."""
    if machine.runner is None or not flow_processes(machine):
        return None
    for process in [machine.runner, *machine.below_runner()]:
        with suppress(psutil.Error):
            process.kill()
    return machine.start_runner


def _kill_runner(machine: Machine, rng: random.Random) -> Undo:
    assert machine.runner is not None
    machine.runner.kill()
    return machine.start_runner


def _kill_server(machine: Machine, rng: random.Random) -> Undo:
    machine.kill_server()
    return machine.start_server


def _fill_disk(machine: Machine, rng: random.Random) -> Undo | None:
    if os.stat(machine.root).st_dev == os.stat(machine.folder).st_dev:
        return None  # the machine allows no mounts, so the disk is everybody's
    balloon = machine.root / "balloon"
    with balloon.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    with balloon.open("r+b") as file:
        file.truncate(max(0, balloon.stat().st_size - rng.choice((0, 4, 64)) * 1024))
    return balloon.unlink


def _refuse_remote(machine: Machine, rng: random.Random) -> Undo:
    """Its folder is a file now, which no user may write into."""
    aside = machine.folder / "remote.aside"
    if machine.remote.exists():
        machine.remote.rename(aside)
    machine.remote.write_text("no folder")

    def undo() -> None:
        machine.remote.unlink()
        if aside.exists():
            aside.rename(machine.remote)

    return undo


def _damage_cache(machine: Machine, rng: random.Random) -> Undo | None:
    """One bit of one file, with times and permissions as they were."""
    files = [path for path in sorted((machine.root / ".dvc/cache/files/md5").rglob("*")) if path.is_file()]
    files = [path for path in files if path.suffix != ".dir" and path.stat().st_size]
    if not files:
        return None
    flip_a_bit(rng.choice(files), rng)
    return _nothing


def flip_a_bit(path: Path, rng: random.Random) -> None:
    before, content = path.stat(), bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(before.st_mode & 0o777)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _damage_arrival(machine: Machine, rng: random.Random) -> Undo:
    """A problem of which a part is random bytes, or which ends amid a line."""
    text = PROBLEM.format(size=32).encode()
    at = rng.randrange(40, len(text) - 40)
    broken = text[:at] if rng.random() < 0.5 else text[:at] + rng.randbytes(40) + text[at + 40 :]
    inbox = machine.root / "data/problems/inbox/level1"
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / f"broken{rng.randrange(10**6)}.py").write_bytes(broken + b"\nclass (")
    return _nothing


def _jump_clock(machine: Machine, rng: random.Random) -> Undo:
    """What was written so far is of another day, before or after now, as by a clock that has jumped."""
    shift_s = rng.choice((-1, 1)) * rng.choice((3_600, 86_400, 30 * 86_400))
    for path in (machine.root / "work").rglob("*"):
        with suppress(OSError):
            found = path.stat()
            os.utime(path, (found.st_atime + shift_s, found.st_mtime + shift_s))
    return _nothing


def _lock_store(machine: Machine, rng: random.Random) -> Undo:
    """MLflow's database is taken by a writer that does not let go."""
    connection = sqlite3.connect(machine.root / "mlflow.db", timeout=30, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    return connection.close


def _hide_store(machine: Machine, rng: random.Random) -> Undo | None:
    """MLflow's files cannot be reached: where they were is nothing."""
    store, aside = machine.root / "mlruns", machine.root / "mlruns.aside"
    store.rename(aside)
    with suppress(IsADirectoryError):  # somebody was faster, and files go astray for a while
        store.write_text("no folder")

    def undo() -> None:
        shutil.rmtree(store) if store.is_dir() else store.unlink()
        aside.rename(store)

    return undo


AGAIN = "the run is Crashed with the reason, and the same run is begun again and finishes"
FAULTS = (
    Fault(name="flow killed", promise=AGAIN, inject=_kill(flow_processes)),
    Fault(
        name="dvc killed",
        promise="the run fails and names the stage, or goes on; the next one finishes",
        inject=_kill(lambda machine: _with_words(machine, "-m dvc")),
        words="failed",
    ),
    Fault(
        name="stage killed",
        promise="the run fails and names the stage; the next one finishes",
        inject=_kill(_stages),
        words="failed",
    ),
    Fault(
        name="judge's worker killed",
        promise="another worker judges again; the run finishes",
        inject=_kill(lambda machine: _with_words(machine, "tasks.judge")),
        words="failed",
    ),
    Fault(name="runner killed", promise="the run goes on without it, and is told", inject=_kill_runner),
    Fault(name="machine lost", promise=f"within LOST_S {AGAIN}", inject=_kill_machine),
    Fault(
        name="server killed",
        promise="the run goes on, and its page lacks something at most, or it is begun again",
        inject=_kill_server,
        hold_s=(0.0, 12.0),
        words="server",
    ),
    Fault(
        name="disk full",
        promise="the run fails and names the stage, its log the disk; the next one finishes",
        inject=_fill_disk,
        hold_s=(2.0, 10.0),
        words="space left|is full|disk|failed",
    ),
    Fault(
        name="remote refuses",
        promise="the promotion stands, the run fails and names the remote; the next one pushes",
        inject=_refuse_remote,
        hold_s=(30.0, 60.0),
        before=True,
        words="dvc push",
    ),
    Fault(
        name="cache damaged",
        promise="the damaged file is made anew and never reaches the remote",
        inject=_damage_cache,
        before=True,
    ),
    Fault(
        name="inbox file damaged",
        promise="it is quarantined with its reason; the run finishes",
        inject=_damage_arrival,
        before=True,
    ),
    Fault(name="clock jumped", promise="nothing: no result depends on the clock", inject=_jump_clock),
    Fault(
        name="store locked",
        promise="tried again; else the run fails and names the registry, and the next one finishes",
        inject=_lock_store,
        hold_s=(2.0, 25.0),
        words="registry",
    ),
    Fault(
        name="store unreachable",
        promise="tried again; else the run fails and names the registry, and the next one finishes",
        inject=_hide_store,
        hold_s=(2.0, 15.0),
        words="registry",
    ),
)
