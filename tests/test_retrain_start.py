"""When a retraining begins: one at a time, and missed runs caught up or skipped."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from flows.retraining.start import only_one, why_skip
from tasks.errors import MachineError

DUE = datetime(2026, 11, 21, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("late", "changes", "is_skipped"),
    [
        pytest.param(timedelta(hours=5), {}, True, id="late, and late runs are skipped"),
        pytest.param(timedelta(hours=5), {"catch_up": True}, False, id="late, and late runs are caught up"),
        pytest.param(timedelta(minutes=50), {}, False, id="a little late"),
        pytest.param(timedelta(seconds=-3), {}, False, id="early, because a runner looks ahead"),
        pytest.param(timedelta(hours=5), {"is_first_try": False}, False, id="began in time, and again after a crash"),
    ],
)
def test_a_missed_run_is_caught_up_or_skipped_as_asked(late, changes, is_skipped):
    asked = {"is_first_try": True, "catch_up": False, "late_after_s": 3600.0} | changes
    words = why_skip(DUE, DUE + late, **asked)
    assert (words is not None) == is_skipped
    assert words is None or "2026-11-21 02:00 UTC, 5.0 hours ago" in words


def test_there_is_one_retraining_at_a_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        only_one(),
        pytest.raises(MachineError, match=r"another retraining is under way in .* \(process \d+, since .*\)"),
        only_one(),
    ):
        pass
    with only_one():
        pass


def test_a_killed_retraining_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "import os\nfrom flows.retraining.start import only_one\nwith only_one():\n    os.kill(os.getpid(), 9)\n"
    killed = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert killed.returncode == -9
    with only_one():
        pass
