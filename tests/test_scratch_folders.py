"""Every judge has a scratch folder of its own; what killed judges left is swept by the next, and nothing else is."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.errors import MachineError
from tasks.judge.walls.scratch import PREFIX, ScratchFolder

MAKES_MANY = """
from tasks.judge.walls.scratch import ScratchFolder

for _ in range(300):
    folder = ScratchFolder.make()
    (folder.path / "worker").mkdir()
    folder.remove()
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_judges_that_begin_and_end_at_the_same_time_leave_each_other_alone(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", MAKES_MANY], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=120)[1] for process in processes] == [""] * 4
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_judge_was_killed_is_swept(scratch: Path) -> None:
    program = "import os\nfrom tasks.judge.walls.scratch import ScratchFolder\nScratchFolder.make()\nos.abort()\n"
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"TMPDIR": str(scratch)}, check=False)
    (left,) = scratch.iterdir()
    folder = ScratchFolder.make()
    assert list(scratch.iterdir()) == [folder.path]
    assert folder.path != left
    folder.remove()


def test_a_folder_that_is_being_made_is_left_alone_and_one_that_never_was_is_swept(scratch: Path) -> None:
    young, old = scratch / f"{PREFIX}young", scratch / f"{PREFIX}old"
    for path in (young, old):
        path.mkdir()
    an_hour_ago = time.time() - 3600
    os.utime(old, (an_hour_ago, an_hour_ago))
    folder = ScratchFolder.make()
    assert set(scratch.iterdir()) == {young, folder.path}
    folder.remove()


def test_where_a_file_system_has_no_locks_nothing_is_left_behind(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_locks(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", without_locks)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MachineError, match="No locks available"):
        ScratchFolder.make()
    assert not list(scratch.iterdir())
    assert len(os.listdir("/proc/self/fd")) == before
