"""Full disks and folders that take nothing: told in words, nothing half-written is believed, nothing done is lost."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from flows.parts.journal import Journal, read_rows
from tasks.history.store import History
from tests.stage_runs import candidate_rows, run, said_no, with_mounts, workspace, write_generated, write_taught

pytestmark = pytest.mark.slow

READ_ONLY = 'mount --bind data data && mount -o remount,bind,ro data && exec "$@"'
NEARLY_FULL = (  # a disk that holds what is in data, and a little more
    "cp -r data before && mount -t tmpfs -o size=$(($(du -sk before | cut -f 1) + 150))k none data && "
    'cp -r before/. data && exec "$@"'
)
FULL = "No space left on device"


def full_disk(folder: str, kib: int) -> list[str]:
    """What to run a command with, so that a folder is on a disk of its own; its files are in `kept` afterwards."""
    return with_mounts(
        f"mkdir -p {folder} kept && mount -t tmpfs -o size={kib}k none {folder} && "
        f'"$@"; status=$?; cp -r {folder}/. kept; exit $status'
    )


def test_a_read_only_data_folder_is_told_before_the_work(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    result = run(root, "flows.generate_variants", before=with_mounts(READ_ONLY))
    said_no(result, "data cannot be written to: Read-only file system; make it writable")
    assert "generating" not in result.stderr
    assert run(root, "flows.generate_variants").returncode == 0


def test_a_disk_too_full_for_an_output_is_told_and_the_next_run_publishes_it(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    said_no(run(root, "flows.generate_variants", before=full_disk("data/generate_variants", 4)), FULL)
    assert not (root / "kept/metrics.json").exists()
    again = run(root, "flows.generate_variants")
    assert again.returncode == 0, again.stderr
    assert "continuing the run that was interrupted" in again.stderr
    published = root / "data/generate_variants"
    assert sorted(path.name for path in published.iterdir()) == [
        "answers.jsonl",
        "candidates.jsonl",
        "metrics.json",
        "run.json",
        "verdicts.jsonl",
    ]
    assert (root / "kept/candidates.jsonl").read_bytes() == (published / "candidates.jsonl").read_bytes()


def test_a_disk_too_full_for_the_journal_or_the_history_loses_no_verdict(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    write_generated(root, candidate_rows(many=20))
    said_no(run(root, "flows.filter_variants", before=full_disk("work", 12)), FULL, "the disk of work is full")
    (journal,) = (root / "kept/filter_variants").glob("*/verdicts.jsonl")
    judged = read_rows(journal)  # every line is whole
    assert 0 < len(judged) < 22
    (root / "work").rmdir()
    (root / "kept").rename(root / "work")
    result = run(root, "flows.filter_variants", before=with_mounts(NEARLY_FULL))
    said_no(result, "warning: the history is not being written", "free some space", "the disk of data is full")
    assert f"/{22 - len(judged)} [" in result.stderr  # the others only
    again = run(root, "flows.filter_variants")
    assert again.returncode == 0, again.stderr
    assert "judging" not in again.stderr
    verdicts = read_rows(root / "data/filter_variants/verdicts.jsonl")
    assert len(verdicts) == 22
    assert all(verdict in verdicts for verdict in judged)
    stored = History(root / "data/history.duckdb").query("SELECT candidate_id FROM verdicts")["candidate_id"]
    assert sorted(stored) == sorted(verdict["candidate_id"] for verdict in verdicts)


def test_a_disk_too_full_for_a_checkpoint_is_told(tmp_path: Path) -> None:
    root = workspace(tmp_path, sft__steps=1)
    write_taught(root)
    said_no(run(root, "flows.sft", before=full_disk("work", 200)), "the disk of work is full: free some space")
    assert not (root / "data/sft").exists()
    assert not list((root / "kept/sft").glob("*/checkpoints/*/whole"))


def test_rows_that_do_not_fit_leave_a_journal_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    program = (
        "from pathlib import Path\nfrom flows.parts.journal import Journal\n"
        f"Journal(Path({str(path)!r})).append({{'number': number}} for number in range(1000))"
    )
    journal = Journal(path)
    journal.append([{"number": -1}])
    limited = subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        check=False,
    )
    assert b"File too large" in limited.stderr
    assert read_rows(path) == [{"number": -1}]
    journal.append([{"number": -2}])
    assert [row["number"] for row in read_rows(path)] == [-1, -2]
