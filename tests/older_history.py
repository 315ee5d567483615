"""Files as earlier releases left them."""

import json

import duckdb
from history_builders import candidate, problem, verdict

from tasks.history.migrations import MIGRATIONS
from tasks.history.records import verdict_id
from tasks.history.schema import STORAGE_VERSION

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
