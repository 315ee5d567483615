"""The few Linux system calls that this Python has no function for."""

import ctypes
import struct

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_SYS_MOUNT_SETATTR = 442  # one number on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> bool:
    return bool(_libc.unshare(flags) == 0)


def call(number: int, *arguments: int | bytes) -> int:
    """A system call for which there is no function."""
    return int(_libc.syscall(number, *arguments))


def prctl(option: int, value: int) -> bool:
    return bool(_libc.prctl(option, value, 0, 0, 0) == 0)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    if _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        raise OSError(ctypes.get_errno(), "mount", target)


def set_mount(path: str, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    attributes = struct.pack("QQQQ", add, remove, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes)) != 0:
        raise OSError(ctypes.get_errno(), "mount_setattr", path)


def drop_rights() -> bool:
    """Give up every capability for good, and the way to get any by running a set-uid program."""
    for capability in range(64):
        if not prctl(PR_CAPBSET_DROP, capability):
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    dropped = _libc.capset(header, bytes(24)) == 0
    return prctl(PR_SET_NO_NEW_PRIVS, 1) and dropped
