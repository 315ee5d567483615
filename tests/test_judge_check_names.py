"""Names of checks by which others find them have one home, in the judge."""

from pathlib import Path

import pytest

from tasks.judge.long import BUCKET_MEANS
from tasks.judge.verdict import UNEVEN_CALLS


@pytest.mark.parametrize("name", [BUCKET_MEANS, UNEVEN_CALLS])
def test_a_name_that_others_look_for_is_written_once(name: str) -> None:
    files = [*Path("tasks").rglob("*.py"), *Path("flows").rglob("*.py")]
    homes = [path for path in files if f'"{name}"' in path.read_text(encoding="utf-8")]
    assert [path.parts[:2] for path in homes] == [("tasks", "judge")]
