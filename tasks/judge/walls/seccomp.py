"""System calls that a worker is refused: what they do outlives it, or reaches beyond its core, its walls or its turn.

Nothing that programs need. What is asked for as a favour, such as another core, is said to be done and is not.
"""

import ctypes
import errno
import platform
import socket
import struct
from dataclasses import dataclass

from tasks.judge.walls import system

_SET_MODE_FILTER, _ALLOW_SPECULATION = 1, 4  # the latter keeps a filter from slowing the process down on older kernels
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_NUMBERS = 0x40000000  # the x32 calls of x86
_NEW_SPACES = (
    system.NEWNS | system.NEWUTS | system.NEWIPC | system.NEWUSER | system.NEWPID | system.NEWNET | 0x02000000
)  # the last one is for control groups
_FAMILIES = socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK
"""Of the sockets that a program may make: all of these end at its network space. Others, such as AF_VSOCK, may reach
every process of the machine."""

_Instruction = tuple[int, int, int, int]
"""Code, jumps if true and if false, and operand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Calls:
    """Numbers of the system calls on one kind of machine."""

    machine: int
    seccomp: int
    clone: int
    socket: int
    refused: dict[int, int]
    """Number -> errno; 0 to pretend that it was done."""


def _refused(
    *, keys: tuple[int, int, int], set_affinity: int, timer: int, unshare: int, setns: int, fault: int
) -> dict[int, int]:
    return {
        **dict.fromkeys(keys, errno.ENOSYS),  # keys stay in the kernel for the next process of the same user
        set_affinity: 0,
        timer: errno.ENOSYS,  # its signal may be SIGCONT, which wakes a process that was stopped
        unshare: errno.EPERM,  # in a user space of its own everybody is root
        setns: errno.EPERM,
        fault: errno.ENOSYS,  # userfaultfd: who reads such memory waits for as long as its owner likes
        425: errno.ENOSYS,  # io_uring: the kernel would go on working for a process that is stopped
        435: errno.ENOSYS,  # clone3: its flags cannot be looked at; libraries then take clone
    }


_CALLS = {
    "x86_64": _Calls(
        machine=0xC000003E,
        seccomp=317,
        clone=56,
        socket=41,
        refused=_refused(keys=(248, 249, 250), set_affinity=203, timer=222, unshare=272, setns=308, fault=323),
    ),
    "aarch64": _Calls(
        machine=0xC00000B7,
        seccomp=277,
        clone=220,
        socket=198,
        refused=_refused(keys=(217, 218, 219), set_affinity=122, timer=107, unshare=97, setns=268, fault=282),
    ),
}


def refuse_calls() -> bool:
    """Refuse this process and all that it starts what _CALLS names; whether that worked. There is no way back.

    Needs the right to gain no rights to have been given up already.
    """
    calls = _CALLS.get(platform.machine())
    if calls is None:
        return False
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _filter(calls))
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    return system.call(calls.seccomp, _SET_MODE_FILTER, _ALLOW_SPECULATION, head) == 0


def _filter(calls: _Calls) -> list[_Instruction]:
    program = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_JUMP_EQUAL, 1, 0, calls.machine),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _OTHER_NUMBERS),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    for number, error in calls.refused.items():
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | error)]
    program += [
        (_JUMP_EQUAL, 0, 3, calls.clone),
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_JUMP_ANY_BIT, 0, 1, _NEW_SPACES),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_EQUAL, 0, 2 + len(_FAMILIES), calls.socket),
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        *((_JUMP_EQUAL, len(_FAMILIES) - place, 0, family) for place, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _REFUSE | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return program
