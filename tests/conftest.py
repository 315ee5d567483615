"""How the tests are shared out when two processes run them: what is in one file stays together."""

import pytest

LOOK_AT_THE_WHOLE_MACHINE = {"test_judge_kernels", "test_judge_leaves_nothing", "test_judge_lifecycle", "test_sandbox"}
"""Files that start the same hostile programs, or look for what such programs leave: never at the same time."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.path.stem
        group = "the whole machine" if name in LOOK_AT_THE_WHOLE_MACHINE else name
        item.add_marker(pytest.mark.xdist_group(group))
