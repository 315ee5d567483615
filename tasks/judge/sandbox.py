"""The walls around one worker: what it may see, reach, use up and leave behind.

Runs inside the judge's own processes, before any candidate's text is read. Every wall is put up on its own; one that
this machine does not allow is left out, and the names of those that stand go into the verdict.
"""

import contextlib
import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

SCRATCH_BYTES = 512 << 20
FILE_BYTES = 256 << 20
MAX_PROCESSES = 96
MAX_FILES = 512
FIRST_UID = 61_000  # up to 61,183 belong to nobody: systemd's range for dynamic users begins above
DEVICES = ("null", "zero", "full", "random", "urandom")

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_SYS_MOUNT_SETATTR = 442  # one number on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


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
    inductor_cache: str | None
    """A folder of compiled headers that trusted code filled; candidates read it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Self:
        return cls(**row)


def die_with_parent(signal_number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def leave_shared_spaces() -> list[str]:
    """Give this process and all its children a network, an ipc and a host name space of their own.

    Once for all workers, because a network space takes milliseconds to make. Without the right to do so it is asked for
    inside a new user space, where we have every right and nobody outside does.
    """
    spaces = {"network": _NEWNET, "ipc": _NEWIPC, "uts": _NEWUTS}
    uid, gid = os.geteuid(), os.getegid()
    if _unshare(_NEWNET | _NEWIPC | _NEWUTS):
        return list(spaces)
    if _unshare(_NEWUSER):
        _map_identity(uid, gid)
        return ["user", *(name for name, flag in spaces.items() if _unshare(flag))]
    return [name for name, flag in spaces.items() if _unshare(flag)]


def enter_pid_space() -> bool:
    """Let the next child be the first process of a space of its own, whose end is the end of everything in it."""
    return _unshare(_NEWPID)


def confine(limits: Limits) -> list[str]:
    """Put this process behind every wall that can be put up; returns the names of those that stand."""
    walls = []
    if _own_files(limits):
        walls.append("mount")
    scratch = Path(limits.scratch)
    for folder in (scratch, scratch / "home", scratch / "cache"):
        folder.mkdir(parents=True, exist_ok=True)
        if limits.uid is not None:
            os.chown(folder, limits.uid, limits.uid)
    _own_environment(scratch, limits)
    os.chdir(scratch)
    _set_limits(limits)
    walls.append("limits")
    if limits.uid is not None and _become(limits.uid):
        walls.append("uid")
    if _drop_rights():
        walls.append("rights")
    return walls


def can_read_installation() -> bool:
    """Whether this process can still import what a candidate may import later."""
    try:
        with open(sys.executable, "rb"), open(os.__file__, "rb"):
            return all(os.access(path, os.R_OK | os.X_OK) for path in _installation())
    except OSError:
        return False


def _own_files(limits: Limits) -> bool:
    """A view of the file system in which everything is read-only and what is private is covered by empty folders."""
    if not _unshare(_NEWNS):
        return False
    try:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        _set_mount("/", add=_MS_RDONLY | _MS_NOSUID | _MS_NODEV, recursive=True)
        kept = [(path, os.open(path, os.O_PATH)) for path in _kept(limits)]
        devices = [(name, os.open(f"/dev/{name}", os.O_PATH)) for name in DEVICES]
        covers = _covers(limits)
        for path in covers:
            Path(path).mkdir(parents=True, exist_ok=True)  # the scratch folder may lie within a cover
            size = SCRATCH_BYTES if path == limits.scratch else 64 << 20
            _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},nr_inodes=65536,mode=1777")
        for path, fd in kept:
            if any(Path(path).is_relative_to(cover) for cover in covers):
                Path(path).mkdir(parents=True, exist_ok=True)
                _mount(f"/proc/self/fd/{fd}", path, None, _MS_BIND | _MS_REC)
            os.close(fd)
        _own_devices(devices)
        with contextlib.suppress(OSError):  # refused where parts of /proc are hidden, as in most containers
            _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_RDONLY)
    except OSError:
        return False
    return True


def _covers(limits: Limits) -> list[str]:
    """Folders to hide, outer ones first. What is in them belongs to the user or to other programs."""
    wanted = {os.path.realpath(limits.scratch), "/tmp", "/var/tmp", "/dev/shm", "/run", "/home", "/root"}
    wanted.add(os.path.realpath(os.environ.get("JUDGE_USER_HOME", "/root")))
    installation = {os.path.realpath(path) for path in _installation()}
    return sorted(
        path
        for path in wanted
        if path != "/" and path not in installation and os.path.isdir(path) and os.path.realpath(path) == path
    )


def _kept(limits: Limits) -> list[str]:
    paths = [*_installation(), *([limits.inductor_cache] if limits.inductor_cache else [])]
    return sorted({os.path.realpath(path) for path in paths})


def _installation() -> Iterator[str]:
    """Folders that lazy imports read: the interpreter's, the environment's, and those of added packages."""
    yield from (path for path in (sys.prefix, sys.base_prefix, sys.exec_prefix) if path != "/")
    yield from (path for path in sys.path if path and os.path.isdir(path) and "-packages" in path)


def _own_devices(devices: list[tuple[str, int]]) -> None:
    _mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID, "size=64k,mode=755")
    for name, fd in devices:
        Path(f"/dev/{name}").touch()
        _mount(f"/proc/self/fd/{fd}", f"/dev/{name}", None, _MS_BIND)
        _set_mount(f"/dev/{name}", remove=_MS_RDONLY | _MS_NODEV)
        os.close(fd)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")
    _mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={64 << 20},mode=1777")


def _own_environment(scratch: Path, limits: Limits) -> None:
    """The variables that decide where programs write. The rest was scrubbed when the zygote started."""
    os.environ.pop("JUDGE_USER_HOME", None)
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = str(scratch)
    os.environ["HOME"] = str(scratch / "home")
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "inductor")
    os.environ["TORCH_EXTENSIONS_DIR"] = str(scratch / "extensions")
    os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
    import tempfile

    tempfile.tempdir = None  # the zygote's answer is cached there


def _set_limits(limits: Limits) -> None:
    with open("/proc/self/statm") as statm:
        started_with = int(statm.read().split()[0]) * resource.getpagesize()
    ceilings = {
        resource.RLIMIT_AS: started_with + limits.memory_bytes,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NPROC: MAX_PROCESSES,
        resource.RLIMIT_NOFILE: MAX_FILES,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_CORE: 0,
    }
    for name, ceiling in ceilings.items():
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
    _prctl(_PR_SET_DUMPABLE, 1)  # changing user hid /proc/self from ourselves
    return True


def _drop_rights() -> bool:
    """Give up every capability for good, and the way to get any by running a set-uid program."""
    for capability in range(64):
        if not _prctl(_PR_CAPBSET_DROP, capability):
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    dropped = _libc.capset(header, bytes(24)) == 0
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1) and dropped


def _map_identity(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with contextlib.suppress(OSError):
            Path(f"/proc/self/{name}").write_text(text)


def _unshare(flags: int) -> bool:
    return bool(_libc.unshare(flags) == 0)


def _prctl(option: int, value: int) -> bool:
    return bool(_libc.prctl(option, value, 0, 0, 0) == 0)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    if _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        raise OSError(ctypes.get_errno(), "mount", target)


def _set_mount(path: str, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    attributes = struct.pack("QQQQ", add, remove, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes)) != 0:
        raise OSError(ctypes.get_errno(), "mount_setattr", path)

