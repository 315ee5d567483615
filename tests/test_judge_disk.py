"""A full disk is the machine's fault and never a candidate's, unless it was the candidate that filled it."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.errors import MachineError
from tasks.judge import fork_server
from tasks.judge.compilers import GRAPHS
from tasks.judge.fork_server import ForkServer
from tasks.judge.judge import Judge
from tasks.judge.verdict import Status, Verdict
from tasks.judge.walls import system
from tasks.judge.walls.scratch import RESERVE_BYTES, ScratchFolder, require_space
from tests.judge_builders import KERNELS, PARAMS, kernel

FULL_BYTES = RESERVE_BYTES // 2  # a judge still works in it, but a failure there proves nothing
ROOMY_BYTES = 4 * RESERVE_BYTES

Disk = Callable[[int], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Makes a disk of so many bytes; tests that need one are skipped where nothing can be mounted."""
    mounted: list[Path] = []

    def make(num_bytes: int) -> Path:
        path = tmp_path / f"disk-{len(mounted)}"
        path.mkdir()
        try:
            system.mount("tmpfs", str(path), "tmpfs", 0, f"size={num_bytes}")
        except OSError as error:
            pytest.skip(f"this machine allows no mounts: {error}")
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def scratch_on(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Makes a disk and has judges keep their scratch folders on it."""

    def make(num_bytes: int) -> Path:
        path = disk(num_bytes)
        monkeypatch.setattr(tempfile, "tempdir", str(path))
        return path

    return make


def judged(name: str) -> Verdict:
    with Judge(PARAMS) as judge:
        return judge.judge(kernel(KERNELS / f"{name}.py").problem, kernel(KERNELS / f"{name}.py").candidate, seed=0)


@pytest.mark.parametrize("name", ["broken/build_fails", "broken/fails_at_import"])
def test_a_failure_while_the_scratch_folders_disk_is_full_is_the_machines(name: str, scratch_on: Disk) -> None:
    path = scratch_on(FULL_BYTES)
    with pytest.raises(MachineError, match=f"{path}.* free .*TMPDIR"):
        judged(name)


def test_a_failure_while_the_compiler_caches_disk_is_full_is_the_machines(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = disk(FULL_BYTES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    with pytest.raises(MachineError, match=f"{path}.* free .*XDG_CACHE_HOME"):
        judged("broken/build_fails")


def test_a_wrong_output_stays_the_candidates_fault_on_a_full_disk(scratch_on: Disk) -> None:
    scratch_on(FULL_BYTES)
    assert judged("hostile/wrong_dtype").status is Status.WRONG_OUTPUT


def test_a_failed_build_stays_the_candidates_fault_where_there_is_space(scratch_on: Disk) -> None:
    scratch_on(ROOMY_BYTES)
    assert judged("broken/build_fails").status is Status.COMPILE_ERROR


def test_a_candidate_that_fills_the_disk_itself_has_crashed(scratch_on: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "PROGRAM", "tests.zygote_without_walls")  # with walls it cannot
    path = scratch_on(ROOMY_BYTES)
    verdict = judged("hostile/fills_disk")
    assert verdict.status is Status.CRASHED
    # what the candidate saw, unless the judge saw first how little was left
    assert "No space left on device" in verdict.detail or verdict.detail == "the process filled the disk"
    assert shutil.disk_usage(path).free > RESERVE_BYTES


def test_no_header_is_compiled_where_it_would_not_fit(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = disk(2 * RESERVE_BYTES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    try:
        with pytest.raises(MachineError, match=str(path)):
            server.load_compilers([GRAPHS])
    finally:
        server.close()
        scratch.remove()


def test_a_scratch_folder_that_cannot_be_made_names_the_remedy(scratch_on: Disk) -> None:
    path = scratch_on(FULL_BYTES)
    subprocess.run(["mount", "-o", "remount,nr_inodes=1", path], check=True)  # the one of the disk's root
    with pytest.raises(MachineError, match="TMPDIR"):
        ScratchFolder.make()


def test_space_is_looked_for_where_a_missing_folder_would_be_made(tmp_path: Path) -> None:
    require_space(tmp_path / "missing" / "folder", num_bytes=1, remedy="")
    with pytest.raises(MachineError, match="missing"):
        require_space(tmp_path / "missing" / "folder", num_bytes=1 << 60, remedy="")
