"""How the tests are shared out when two processes run them: what is in one file stays together."""

from pathlib import Path
from typing import Any

import pytest

LOOK_AT_THE_WHOLE_MACHINE = {"test_judge_kernels", "test_judge_leaves_nothing", "test_judge_lifecycle", "test_sandbox"}
"""Files that start the same hostile programs, or look for what such programs leave: never at the same time."""


@pytest.hookimpl(optionalhook=True)  # one process needs no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = Path(nodeid.partition("::")[0]).stem
            return "the whole machine" if name in LOOK_AT_THE_WHOLE_MACHINE else name

    return ByFile(config, log)
