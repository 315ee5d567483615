"""A history that an earlier release wrote: brought up to date with all it holds, refused where it is newer."""

import json

import duckdb
import pytest
from history_builders import candidate, problem, run, verdict

from tasks.errors import RecordError
from tasks.history.migrations import MIGRATIONS
from tasks.history.records import verdict_id
from tasks.history.schema import STORAGE_VERSION
from tasks.history.store import History

ONE = candidate()
JUDGED = verdict(ONE, speedup=3.0)


def written_by_schema(version, path):
    """A file as the release with that many migrations left it: a run with one candidate and its verdict."""
    with duckdb.connect(path, config={"storage_compatibility_version": STORAGE_VERSION}) as old:
        old.execute("CREATE TABLE schema_version (version INTEGER NOT NULL, views VARCHAR NOT NULL)")
        old.execute("INSERT INTO schema_version VALUES (?, 'of that release')", [version])
        for migration in MIGRATIONS[:version]:
            old.execute(migration)
        old.execute("INSERT INTO runs VALUES ('run-1', 'filter_variants', 0, '{}', NULL, '{}', '2023-11-14')")
        hash_ = problem().problem_hash
        old.execute("INSERT INTO problems VALUES ('level1/relu', ?, 1, 'elementwise', 'source')", [hash_])
        old.execute("INSERT INTO run_problems VALUES ('run-1', 'level1/relu', ?, 'train')", [hash_])
        row = [ONE.candidate_id, hash_, ONE.source]
        old.execute("INSERT INTO candidates VALUES (?, 'level1/relu', ?, 'rewrites', [], ?, 'run-1')", row)
        old.execute(
            """
            INSERT INTO verdicts VALUES ($verdict, $candidate, 'level1/relu', $hash, 'correct', '', 'a processor',
                $environment, 'protocol-1', [{name: 'fresh_inputs', passed: true, evidence: ''}], 0.5, 'eager',
                [3.0, 3.0], [1.0, 1.0], 3.0, 3.0, 3.0, 'framework', 0.25, '2023-11-14 22:13:20')
            """,
            {
                "verdict": verdict_id(JUDGED),
                "candidate": ONE.candidate_id,
                "hash": hash_,
                "environment": json.dumps({"torch": "2.13.0"}),
            },
        )
        old.execute("INSERT INTO run_verdicts VALUES ('run-1', ?)", [verdict_id(JUDGED)])
        # A view of that release, over a column that a later migration drops.
        old.execute("CREATE VIEW best_kernels AS SELECT candidate_id, environment FROM verdicts")
    return History(path)


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_an_older_file_keeps_what_it_holds_and_gets_what_it_lacks(tmp_path, version):
    history = written_by_schema(version, tmp_path / "history.duckdb")
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


def test_what_is_appended_again_after_migrating_is_the_same_verdict_in_the_same_environment(tmp_path):
    history = written_by_schema(len(MIGRATIONS) - 1, tmp_path / "history.duckdb")
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


def test_a_file_not_yet_brought_up_to_date_still_answers(tmp_path):
    history = written_by_schema(1, tmp_path / "history.duckdb")
    assert history.query("SELECT speedup FROM verdicts").item() == 3.0
