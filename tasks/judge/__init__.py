"""The only code that runs candidates, and what it says about them.

To judge one candidate from Python: ``tasks.judge.judge_source``. To judge many: ``judge_cases`` with an open ``Judge``.
Both load when they are first named, since a candidate's own process imports this package too.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.judge.batch import judge_cases, judge_source
    from tasks.judge.cases import Case, read_cases
    from tasks.judge.judge import Judge

__all__ = ["Case", "Judge", "judge_cases", "judge_source", "read_cases"]

_HOMES = {"Case": "cases", "Judge": "judge", "judge_cases": "batch", "judge_source": "batch", "read_cases": "cases"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"tasks.judge.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
