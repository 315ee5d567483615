"""Summaries: what the views of statistics read instead of every verdict, kept up to date within each append.

They hold nothing that the tables do not, in a schema of their own: dropped or out of date, they are made again whole.
"""

import duckdb

# $touched is what an append changed, or true for everything.
SUMMARIES: dict[str, str] = {
    # One row per correct candidate and way of timing it. Ratios multiply, so several verdicts average in log space. A
    # text once found wrong or dishonest is out, whatever it was found to be at other times.
    "speedups": """
        SELECT candidate_id, candidates.problem_id, verdicts.problem_hash, candidates.origin, candidates.recipe,
               candidates.run_id, device, protocol, baseline, max(track) AS track, count(*) AS num_verdicts,
               exp(avg(ln(speedup))) AS speedup, min(speedup_low) AS speedup_low, max(speedup_high) AS speedup_high,
               max(speedup_high / speedup_low) AS interval_ratio, max(speedup) / min(speedup) AS disagreement_ratio
        FROM verdicts JOIN candidates USING (candidate_id)
        WHERE status = 'correct' AND $touched AND candidate_id NOT IN
              (SELECT candidate_id FROM verdicts WHERE status IN ('wrong_output', 'cheated') AND $touched)
        GROUP BY ALL
    """,
    # One row per run, problem and way of timing it; without a baseline, of what was not timed. Other ways of running
    # the reference are yardsticks and no results, but judging them takes time too. A run pays for a verdict unless it
    # was reached before the run began.
    "results": """
        SELECT run_id, verdicts.problem_id, run_problems.split, device, protocol, baseline,
               count(*) FILTER (is_kernel) AS num_verdicts,
               count(DISTINCT candidate_id) FILTER (is_kernel) AS num_candidates,
               coalesce(list(speedup) FILTER (is_kernel), []) AS speedups,
               sum(ln(speedup)) FILTER (is_kernel) AS sum_ln_speedup, max(speedup) FILTER (is_kernel) AS best_speedup,
               count(*) FILTER (is_kernel AND speedup > 1) AS num_faster,
               coalesce(sum(seconds) FILTER (judged_at >= started_at), 0) AS judging_seconds
        FROM run_verdicts
        JOIN verdicts USING (verdict_id)
        JOIN (SELECT candidate_id, NOT starts_with(origin, 'baseline:') AS is_kernel FROM candidates)
             USING (candidate_id)
        JOIN runs USING (run_id)
        JOIN run_problems USING (run_id, problem_id)
        WHERE $touched
        GROUP BY ALL
    """,
}

_COUNTED = "(SELECT count(*) FROM verdicts) AS num_verdicts, (SELECT count(*) FROM run_verdicts) AS num_run_verdicts"

# The rows of a summary that new verdicts of one run change.
_TOUCHED = {
    "speedups": "candidate_id IN (SELECT candidate_id FROM new_verdicts)",
    "results": "run_id = $run_id AND problem_id IN (SELECT problem_id FROM new_verdicts)",
}


def make_summaries(connection: duckdb.DuckDBPyConnection) -> None:
    """Make all of them from the tables."""
    connection.execute("CREATE SCHEMA IF NOT EXISTS summaries")
    for name, select in SUMMARIES.items():
        connection.execute(f"CREATE OR REPLACE TABLE summaries.{name} AS {select.replace('$touched', 'true')}")
    connection.execute(f"CREATE OR REPLACE TABLE summaries.counted AS SELECT {_COUNTED}")


def update_summaries(connection: duckdb.DuckDBPyConnection, *, run_id: str) -> None:
    """Make those rows again that the frame new_verdicts has changed, all of them verdicts of one run."""
    for name, touched in _TOUCHED.items():
        values = {"run_id": run_id} if "$run_id" in touched else {}
        connection.execute(f"DELETE FROM summaries.{name} WHERE {touched}", values)
        connection.execute(f"INSERT INTO summaries.{name} {SUMMARIES[name].replace('$touched', touched)}", values)
    connection.execute(f"""
        UPDATE summaries.counted SET num_verdicts = now.num_verdicts, num_run_verdicts = now.num_run_verdicts
        FROM (SELECT {_COUNTED}) AS now
    """)


def repair_summaries(connection: duckdb.DuckDBPyConnection) -> None:
    """Make them again if somebody added verdicts without updating them."""
    counted = connection.execute("FROM summaries.counted").fetchall()
    if counted != connection.execute(f"SELECT {_COUNTED}").fetchall():
        make_summaries(connection)
