"""The walls around one worker: what it may see, reach, use up and leave behind.

Runs inside the judge's own processes, before any candidate's text is read. Every wall is put up on its own; one that
this machine does not allow is left out, and the names of those that stand go into the verdict.
"""

import contextlib
import glob
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tasks.judge.device_files import num_devices
from tasks.judge.walls import seccomp, system

SCRATCH_BYTES = 512 << 20
COVER_BYTES = 64 << 20
FILE_BYTES = 256 << 20
MAX_PROCESSES = 96
MAX_FILES = 512
FIRST_UID, NUM_UIDS = 61_000, 180  # these belong to nobody: systemd's range for dynamic users begins above
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run", "/home", "/root")
MACHINE_ENTRIES = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one worker may use."""

    memory_bytes: int
    """Beyond what the process starts with."""
    cpu_s: int
    core: int
    uid: int | None
    """The user to become, where we may choose; None to stay who we are."""
    scratch: str
    """Its only writable folder. Kept in memory where mounts can be made, else this folder itself."""
    user_home: str
    """Hidden, as other folders with things of the user's are."""
    compiler_cache: str
    """A folder of compiled headers that trusted code filled; candidates read it, if it exists."""
    device_files: Sequence[str] | None
    """Names below /dev through which it reaches the accelerator that it runs on; None for the processor."""

    max_processes: int | None
    """Of the user, whatever else that user runs; None where a control group limits the worker's own."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Self:
        return cls(**row)


def die_with_parent(signal_number: int) -> None:
    system.prctl(system.PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)


def leave_shared_spaces() -> list[str]:
    """Give this process and all its children a host name space of their own.

    Without the right to do so it is asked for inside a new user space, where we have every right and nobody outside
    does; it is then the right to make all other spaces too.
    """
    uid, gid = os.geteuid(), os.getegid()
    if system.unshare(system.NEWUTS):
        return ["uts"]
    if system.unshare(system.NEWUSER):
        _map_identity(uid, gid)
        return ["user", *(["uts"] if system.unshare(system.NEWUTS) else [])]
    return []


def leave_spaces() -> list[str]:
    """Let the next child be the first process of a space of its own, whose end is the end of everything in it.

    It also gets its own queues and shared segments, which would outlive it and tell the next worker something, and its
    own network, in which names that are no files reach nobody: two candidates that are judged at once could tell each
    other what they were asked. To make one takes half a millisecond to one.
    """
    spaces = {"pid": system.NEWPID, "ipc": system.NEWIPC, "network": system.NEWNET}
    return [name for name, flag in spaces.items() if system.unshare(flag)]


def confine(limits: Limits) -> list[str]:
    """Put this process behind every wall that can be put up; returns the names of those that stand."""
    walls = []
    if _own_files(limits):
        walls.append("mount")
        if num_devices(limits.device_files or ()) == 1:
            walls.append("device")
    scratch = Path(limits.scratch)
    for folder in (scratch, scratch / "home", scratch / "cache"):
        folder.mkdir(parents=True, exist_ok=True)
        if limits.uid is not None:
            with contextlib.suppress(OSError):  # a user space without that user, who then is not become either
                os.chown(folder, limits.uid, limits.uid)
    _own_environment(scratch, limits)
    os.chdir(scratch)
    _set_limits(limits)
    walls.append("limits")
    if limits.uid is not None and _become(limits.uid):
        walls.append("uid")
    if system.drop_rights():
        walls.append("rights")
    if seccomp.refuse_calls():
        walls.append("calls")
    return walls


def can_read_installation() -> bool:
    """Whether this process can still import what a candidate may import later."""
    return all(os.access(path, os.R_OK | os.X_OK) for path in (sys.executable, *_installation())) and all(
        os.access(path, os.R_OK) for path in (os.__file__, *glob.glob(f"{sys.prefix}/lib/python*/site-packages/*.py"))
    )


def _own_files(limits: Limits) -> bool:
    """A view of the file system in which everything is read-only and what is private is covered by empty folders."""
    if not system.unshare(system.NEWNS):
        return False
    try:
        system.mount(None, "/", None, system.MS_REC | system.MS_PRIVATE)
        system.set_mount("/", add=system.MS_RDONLY | system.MS_NOSUID | system.MS_NODEV, recursive=True)
        kept = [(path, os.open(path, os.O_PATH)) for path in _kept(limits)]
        names = [*DEVICES, *(limits.device_files or ())]
        devices = [(name, os.open(f"/dev/{name}", os.O_PATH)) for name in names]
        covers = _covers(limits)
        for path in covers:
            Path(path).mkdir(parents=True, exist_ok=True)  # the scratch folder may lie within a cover
            size = SCRATCH_BYTES if path == limits.scratch else COVER_BYTES
            system.mount(
                "tmpfs", path, "tmpfs", system.MS_NOSUID | system.MS_NODEV, f"size={size},nr_inodes=65536,mode=1777"
            )
        for path, fd in kept:
            if any(Path(path).is_relative_to(cover) for cover in covers):
                Path(path).mkdir(parents=True, exist_ok=True)
                system.mount(f"/proc/self/fd/{fd}", path, None, system.MS_BIND | system.MS_REC)
            os.close(fd)
        _own_devices(devices)
        with contextlib.suppress(OSError):  # refused where parts of /proc are hidden, as in most containers
            _own_proc()
    except OSError:
        return False
    return True


def _own_proc() -> None:
    """Only our own processes. Drivers write to their own entries; what belongs to the machine is read-only."""
    system.mount("proc", "/proc", "proc", system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC)
    for path in filter(os.path.exists, MACHINE_ENTRIES):
        system.mount(path, path, None, system.MS_BIND | system.MS_REC)
        system.set_mount(path, add=system.MS_RDONLY, recursive=True)


def _mount_empty(path: str, num_bytes: int) -> None:
    flags = system.MS_NOSUID | system.MS_NODEV
    system.mount("tmpfs", path, "tmpfs", flags, f"size={num_bytes},nr_inodes=65536,mode=1777")


def _covers(limits: Limits) -> list[str]:
    """Folders to hide, outer ones first. What is in them belongs to the user or to other programs."""
    wanted = {os.path.realpath(limits.scratch), os.path.realpath(limits.user_home), *PRIVATE_FOLDERS}
    installation = {os.path.realpath(path) for path in _installation()}
    return sorted(
        path
        for path in wanted
        if path != "/" and path not in installation and os.path.isdir(path) and os.path.realpath(path) == path
    )


def _kept(limits: Limits) -> list[str]:
    """Folders to show again inside of the covers: where they lie, and where a link in a cover leads to them."""
    paths = [path for path in (*_installation(), limits.compiler_cache) if os.path.isdir(path)]
    return sorted({name for path in paths for name in (os.path.realpath(path), os.path.abspath(path))})


def _installation() -> Iterator[str]:
    """Folders that lazy imports read: the interpreter's, the environment's, and those of added packages."""
    yield from (path for path in (sys.prefix, sys.base_prefix, sys.exec_prefix) if path != "/")
    yield from (path for path in sys.path if path and os.path.isdir(path) and "-packages" in path)


def _own_devices(devices: list[tuple[str, int]]) -> None:
    system.mount("tmpfs", "/dev", "tmpfs", system.MS_NOSUID, "size=64k,mode=755")
    for name, fd in devices:
        Path(f"/dev/{name}").touch()
        system.mount(f"/proc/self/fd/{fd}", f"/dev/{name}", None, system.MS_BIND)
        system.set_mount(f"/dev/{name}", remove=system.MS_RDONLY | system.MS_NODEV)
        os.close(fd)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")
    _mount_empty("/dev/shm", COVER_BYTES)


def _own_environment(scratch: Path, limits: Limits) -> None:
    """The variables that decide where programs write. The rest was scrubbed when the zygote started."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = str(scratch)
    os.environ["HOME"] = str(scratch / "home")
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "inductor")
    os.environ["TORCH_EXTENSIONS_DIR"] = str(scratch / "extensions")
    os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
    tempfile.tempdir = None  # the zygote's answer is cached there


def _set_limits(limits: Limits) -> None:
    with open("/proc/self/statm") as statm:
        started_with = int(statm.read().split()[0]) * resource.getpagesize()
    ceilings = {
        resource.RLIMIT_AS: started_with + limits.memory_bytes,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NPROC: limits.max_processes,
        resource.RLIMIT_NOFILE: MAX_FILES,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_CORE: 0,
    }
    if limits.device_files is not None:
        del ceilings[resource.RLIMIT_AS]  # drivers reserve addresses without end
    for name, ceiling in ceilings.items():
        if ceiling is None:
            continue
        hard = resource.getrlimit(name)[1]
        ceiling = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
        resource.setrlimit(name, (ceiling, ceiling))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # when memory runs out all the same, the worker goes first


def _become(uid: int) -> bool:
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError:
        return False
    system.prctl(system.PR_SET_DUMPABLE, 1)  # changing user hid /proc/self from ourselves
    return True


def _map_identity(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with contextlib.suppress(OSError):
            Path(f"/proc/self/{name}").write_text(text)
