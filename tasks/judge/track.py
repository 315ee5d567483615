"""Which track a candidate is on, seen from outside: what native code its process has mapped."""

import os
from pathlib import Path

from tasks.judge.verdict import Track

_INDUCTOR_FOLDER = "/inductor/"
_TRITON_OWN = "cuda_utils."


def observed_track(pid: int, *, num_graphs: int, num_kernels: int) -> Track:
    """The deepest change that running the candidate brought about.

    KERNEL when it mapped executable code that it made itself, GRAPH when the graph compiler made code. What its process
    says a candidate could claim falsely: it decides a label, nothing else.

    Args:
        num_graphs: that its process says were compiled or captured.
        num_kernels: that it says were compiled for a device, which leave no mapping behind.
    """
    if num_kernels:
        return Track.KERNEL
    made = _made_code(pid)
    if num_graphs:  # what Triton compiles for itself on first use; its users also have a launcher for each kernel
        made = {path for path in made if not Path(path).name.startswith(_TRITON_OWN)}
    if any(_INDUCTOR_FOLDER not in path for path in made):
        return Track.KERNEL
    return Track.GRAPH if made or num_graphs else Track.FRAMEWORK


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""


def _made_code(pid: int) -> set[str]:
    """Paths of executable mappings that are not files of this machine's own installation."""
    made = set()
    # Names are the candidate's: any bytes, and of what may end a line only "\n" is written otherwise.
    for line in filter(None, _maps(pid).split("\n")):
        _, rights, _, device, inode, *path = line.split(maxsplit=5)
        if "x" in rights and path and inode != "0" and not _is_installed(path[0], device, int(inode)):
            made.add(path[0])
    return made


def _is_installed(path: str, device: str, inode: int) -> bool:
    """Whether we see the same file under that path; a worker's scratch folder is its own."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    same = (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino)
    major, minor = (int(part, 16) for part in device.split(":"))
    return same == (major, minor, inode) and "/worker-" not in path
