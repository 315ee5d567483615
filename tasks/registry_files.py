"""The files of policies: what may be among them, what they hash to, and the folder in which fetched ones are kept."""

import hashlib
import shutil
from pathlib import Path

from tasks.errors import PolicyError

SAFE_SUFFIXES = (".json", ".safetensors", ".txt", ".jinja", ".model")
"""What a policy is made of. Anything else, such as a pickle, might run code when it is loaded."""


def policy_digest(folder: Path) -> str:
    """Content hash of a policy's files and their names.

    Raises:
        PolicyError: if there is none, or a file in it that might run code when it is loaded.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    if not files:
        raise PolicyError(f"no policy at {folder}; `dvc repro` makes it")
    digest = hashlib.sha256()
    for path in files:
        if path.suffix not in SAFE_SUFFIXES:
            raise PolicyError(f"{path} is none of {', '.join(SAFE_SUFFIXES)}; a policy must load without running code")
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def keep_latest(latest: Path, *, count: int) -> None:
    """Remove all policies of a folder but those that were fetched last, and what killed downloads have left in it.

    Nobody else may be at work in it.

    Args:
        latest: what was fetched just now, which a clock that was put back would call the oldest.
        count: policies that stay, this one included.
    """
    found = sorted(latest.parent.iterdir(), key=lambda path: (path == latest, path.stat().st_mtime))
    whole = [path for path in found if not path.name.startswith(".")]
    for path in found:
        if path in whole[-count:]:
            continue
        # Renamed first: what a kill amid the removal leaves must not look like a policy.
        doomed = path.with_name(f".{path.name.lstrip('.')}.removed")
        path.replace(doomed)
        shutil.rmtree(doomed)
