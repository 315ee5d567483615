"""The file in which DVC's processes note what they read and write; ``python -m flows.dvc_lock`` removes a damaged one.

DVC writes it in place, so a kill at that moment leaves half of it, and every later `dvc repro` refuses to begin.
"""

import argparse
import json
import time
from pathlib import Path

from flows.engine import say

RWLOCK = Path(".dvc/tmp/rwlock")
WRITTEN_S = 1.0
"""Longer than any living process takes to write it."""


def mend_lock() -> None:
    """Remove what no process can have left but a killed one; DVC begins a new file."""
    if _is_damaged():
        time.sleep(WRITTEN_S)
        if _is_damaged():
            RWLOCK.unlink(missing_ok=True)
            say(f"{RWLOCK} was damaged by a kill and has been removed")


def _is_damaged() -> bool:
    try:
        json.loads(RWLOCK.read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return False


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m flows.dvc_lock", description=f"Remove {RWLOCK} where a kill left half of it; do nothing else."
    ).parse_args()
    mend_lock()


if __name__ == "__main__":
    main()
