"""The history as files that DVC versions: exported and noted, where a user has put the folder under DVC's care."""

import subprocess
import sys
from pathlib import Path

from tasks.errors import MachineError

SNAPSHOT = Path("data/history")


def is_versioned() -> bool:
    """Whether somebody has asked for it, with `dvc add data/history`."""
    return SNAPSHOT.with_suffix(".dvc").exists()


def snapshot_history() -> None:
    """Export the project's history and let DVC note it; an unchanged one leaves data/history.dvc as it is.

    Raises:
        MachineError: if either fails; the one before is still there.
    """
    for command in (["flows.cli", "history", "export"], ["dvc", "add", "--quiet", str(SNAPSHOT)]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise MachineError(f"the history is not versioned: {' '.join(command)} failed: {done.stderr.strip()}")
