"""A history that an earlier release wrote: brought up to date with all it holds, refused where it is newer."""

import duckdb
import pytest
from history_builders import problem, run, verdict
from older_history import JUDGED, ONE, written_by_schema

from tasks.errors import RecordError
from tasks.history.migrations import MIGRATIONS
from tasks.history.records import verdict_id
from tasks.history.store import History


@pytest.fixture
def written(tmp_path):
    """A history as the release with that many migrations left it."""

    def write(version):
        written_by_schema(version, tmp_path / "history.duckdb")
        return History(tmp_path / "history.duckdb")

    return write


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_an_older_file_keeps_what_it_holds_and_gets_what_it_lacks(written, version):
    history = written(version)
    history.append(run("another"))
    assert history.query("SELECT origin, num_solved FROM leaderboard").rows() == [("rewrites", 1)]
    assert history.query("SELECT speedup, problem_hash FROM best_kernels").rows() == [
        (pytest.approx(3.0), problem().problem_hash)
    ]
    assert history.query("FROM run_verdicts").rows() == [("run-1", verdict_id(JUDGED))]
    assert history.query("SELECT problem_set FROM problems").item() == "local"
    assert history.query("FROM devices").rows() == [("a processor", False)]
    found = "SELECT device, software, version FROM environments JOIN software_versions USING (environment_id)"
    assert history.query(found).rows() == [("a processor", "torch", "2.13.0")]


def test_what_is_appended_again_after_migrating_is_the_same_verdict_in_the_same_environment(written):
    history = written(len(MIGRATIONS) - 1)
    history.append(run(), problems=[problem()], candidates=[ONE], verdicts=[JUDGED, verdict(ONE, judged_at=1.8e9)])
    assert history.query("SELECT count(*) FROM verdicts").item() == 2
    assert history.query("SELECT count(DISTINCT environment_id) FROM verdicts").item() == 1
    assert history.query("SELECT count(*) FROM environments").item() == 1
    assert history.query("SELECT count(*) FROM run_verdicts").item() == 2


def test_a_newer_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "history.duckdb"
    history = History(path)
    history.append(run())
    with duckdb.connect(path) as later:
        later.execute("UPDATE schema_version SET version = version + 1")
    before = path.read_bytes()
    for attempt in (lambda: history.append(run()), lambda: history.query("FROM runs")):
        with pytest.raises(RecordError, match="written by a newer version of this project"):
            attempt()
    assert path.read_bytes() == before


def test_a_file_not_yet_brought_up_to_date_still_answers(written):
    history = written(1)
    assert history.query("SELECT speedup FROM verdicts").item() == 3.0
