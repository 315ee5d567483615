"""The functions the history's file brings along, usable in every query and by the views."""

MACROS: dict[str, str] = {
    "geomean(value)": "exp(avg(ln(value)))",
    # A speedup is empty where nothing is correct, which counts as not faster.
    "fast_p(speedup, p := 1.0)": "avg((coalesce(speedup, 0) > p)::INTEGER)",
}

TABLE_MACROS: dict[str, str] = {
    # Of all problems of a run, those without a correct candidate included, the share that is faster than p.
    "fast_p_by_stage(p)": """
        SELECT stage, started_at, results.run_id, results.split, device, protocol, baseline, num_problems,
               results.num_faster, results.num_faster / num_problems AS fast_p
        FROM (SELECT run_id, split, device, protocol, baseline, count(*) FILTER (best_speedup > p) AS num_faster
              FROM run_results WHERE baseline IS NOT NULL AND num_verdicts > 0 GROUP BY ALL) AS results
        JOIN (SELECT run_id, split, count(*) AS num_problems FROM run_problems GROUP BY ALL) USING (run_id, split)
        JOIN runs USING (run_id)
    """,
    # A candidate, what it was made from or shown, what those were made from, and so on.
    "ancestors(of)": """
        WITH RECURSIVE walk AS (
            SELECT of AS candidate_id, 0 AS generation, NULL::VARCHAR AS relation
            UNION
            SELECT parents.parent_id, walk.generation + 1, parents.relation
            FROM walk JOIN parents USING (candidate_id) WHERE walk.generation < 100
        )
        SELECT generation, relation, candidate_id, problem_id, origin, recipe, source
        FROM (SELECT candidate_id, min(generation) AS generation, min_by(relation, generation) AS relation
              FROM walk GROUP BY candidate_id)
        JOIN candidates USING (candidate_id)
    """,
}
