"""The whole files of DVC's cache: one that was damaged is made anew from the output it is a copy of, or removed.

DVC takes a write-protected file of its cache for what its name says. A disk that lost a bit would so reach the remote,
and from there every clone.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import MachineError

DIRECTORY = ".dir"
"""What the name of a folder's list of files ends with."""
ASK_LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """One file of the cache."""

    md5: str
    path: Path
    """Where in the cache it is."""
    output: Path
    """What it is a copy of."""


def mend_cache() -> list[Path]:
    """Look at every file of the cache that dvc.lock names; the outputs whose copies were damaged.

    Raises:
        MachineError: if DVC does not tell where its cache is.
    """
    if not Path("dvc.lock").exists():
        return []
    damaged = []
    for copy in _copies(_cache()):
        if not copy.path.exists() or _md5(copy.path) == copy.md5.removesuffix(DIRECTORY):
            continue
        damaged.append(copy.output)
        copy.path.unlink()
        if copy.output.is_file() and _md5(copy.output) == copy.md5:
            _put(copy)
    return damaged


def _put(copy: Copy) -> None:
    partial = copy.path.with_name(f".{copy.path.name}.partial")
    shutil.copyfile(copy.output, partial)
    partial.chmod(0o444)  # as DVC does with its own
    partial.replace(copy.path)


def _copies(cache: Path) -> Iterator[Copy]:
    stages: dict[str, Any] = (yaml.safe_load(Path("dvc.lock").read_text()) or {}).get("stages", {})
    for out in (out for stage in stages.values() for out in stage.get("outs", ())):
        copy = _copy(cache, out["md5"], Path(out["path"]))
        yield copy
        # Read after it was looked at: a damaged list is gone by now.
        if copy.md5.endswith(DIRECTORY) and copy.path.exists():
            for entry in json.loads(copy.path.read_text()):
                yield _copy(cache, entry["md5"], copy.output / entry["relpath"])


def _copy(cache: Path, md5: str, output: Path) -> Copy:
    return Copy(md5=md5, path=cache / "files" / "md5" / md5[:2] / md5[2:], output=output)


def _cache() -> Path:
    asked = subprocess.run(
        [sys.executable, "-m", "dvc", "cache", "dir"],
        capture_output=True,
        text=True,
        timeout=ASK_LIMIT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if asked.returncode:
        raise MachineError(
            f"DVC does not tell where its cache is: `dvc cache dir` failed with status {asked.returncode} "
            f"{asked.stderr.strip()}"
        )
    return Path(asked.stdout.strip())


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
