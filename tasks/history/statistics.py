"""Views of statistics. Speedups of different devices, protocols or baselines are never mixed."""

# In order: a view may use those before it. All of them but hacks_caught read the summaries, never every verdict.
STATISTICS_VIEWS: dict[str, str] = {
    # A row without verdicts holds only what judging baselines took.
    "run_results": """
        SELECT runs.stage, runs.started_at, results.* FROM summaries.results AS results JOIN runs USING (run_id)
    """,
    "best_kernels": """
        SELECT best.*, candidates.origin, candidates.recipe, candidates.source
        FROM (SELECT problem_id, problem_hash, device, protocol, baseline,
                     max_by(candidate_id, (speedup, candidate_id)) AS candidate_id
              FROM candidate_speedups GROUP BY ALL)
        JOIN candidate_speedups AS best USING (problem_id, problem_hash, device, protocol, baseline, candidate_id)
        JOIN candidates USING (candidate_id)
    """,
    "leaderboard": """
        SELECT origin, device, protocol, baseline, count(*) AS num_solved, count(*) FILTER (speedup > 1) AS num_faster,
               geomean(speedup) AS geomean_best_speedup, median(speedup) AS median_best_speedup,
               max(speedup) AS best_speedup
        FROM (SELECT origin, device, protocol, baseline, problem_id, max(speedup) AS speedup
              FROM summaries.speedups GROUP BY ALL)
        GROUP BY ALL
    """,
    "speedups_by_stage": """
        SELECT stage, run_id, started_at, split, device, protocol, baseline, count(*) AS num_problems,
               sum(num_candidates)::BIGINT AS num_candidates,
               exp(sum(sum_ln_speedup) / sum(num_verdicts)) AS geomean_speedup,
               list_median(flatten(list(speedups))) AS median_speedup, max(best_speedup) AS best_speedup,
               sum(num_faster) / sum(num_verdicts) AS faster_share
        FROM run_results WHERE baseline IS NOT NULL AND num_verdicts > 0
        GROUP BY ALL
    """,
    # A win is a problem on which a run found the first candidate that is faster beyond doubt.
    "cost_per_win": """
        SELECT runs.stage, run_id, runs.started_at, coalesce(num_wins, 0) AS num_wins,
               coalesce(judging_seconds, 0) AS judging_seconds, coalesce(other_seconds, 0) AS other_seconds,
               coalesce(tokens, 0) AS tokens, coalesce(price_usd, 0) AS price_usd,
               (coalesce(judging_seconds, 0) + coalesce(other_seconds, 0)) / num_wins AS seconds_per_win,
               coalesce(tokens, 0) / num_wins AS tokens_per_win, coalesce(price_usd, 0) / num_wins AS usd_per_win
        FROM runs
        LEFT JOIN (SELECT run_id, sum(judging_seconds) AS judging_seconds FROM summaries.results GROUP BY run_id)
               USING (run_id)
        LEFT JOIN (SELECT run_id, sum(seconds) AS other_seconds, sum(prompt_tokens + answer_tokens)::BIGINT AS tokens,
                          sum(price_usd) AS price_usd FROM costs GROUP BY run_id) USING (run_id)
        LEFT JOIN (SELECT run_id, count(DISTINCT problem_id) AS num_wins FROM summaries.speedups
                   WHERE speedup_low > 1 AND baseline = 'eager' AND NOT starts_with(origin, 'baseline:')
                   GROUP BY run_id) USING (run_id)
        WHERE judging_seconds IS NOT NULL OR other_seconds IS NOT NULL
    """,
    # Within each problem, what candidates with a rewrite reach over what candidates of other rewrites do.
    "technique_gains": """
        WITH rewritten AS (
            SELECT problem_id, problem_hash, device, protocol, baseline, list_distinct(recipe) AS recipe,
                   ln(speedup) AS ln_speedup, speedup > 1 AS is_faster
            FROM summaries.speedups WHERE len(recipe) > 0
        ), totals AS (
            SELECT problem_id, problem_hash, device, protocol, baseline, count(*) AS num, sum(ln_speedup) AS ln_sum
            FROM rewritten GROUP BY ALL
        ), used AS (
            SELECT problem_id, problem_hash, device, protocol, baseline, technique, count(*) AS num,
                   sum(ln_speedup) AS ln_sum, count(*) FILTER (is_faster) AS num_faster
            FROM (SELECT * EXCLUDE recipe, unnest(recipe) AS technique FROM rewritten) GROUP BY ALL
        )
        SELECT level, technique, device, protocol, baseline, count(*) AS num_problems,
               sum(used.num)::BIGINT AS num_candidates, sum(num_faster) / sum(used.num) AS faster_share,
               exp(sum(used.ln_sum) / sum(used.num)) AS geomean_speedup,
               exp(avg(used.ln_sum / used.num - (totals.ln_sum - used.ln_sum) / nullif(totals.num - used.num, 0)))
                   AS gain_over_others
        FROM used
        JOIN totals USING (problem_id, problem_hash, device, protocol, baseline)
        JOIN problems USING (problem_id, problem_hash)
        GROUP BY ALL
    """,
    "flaky_timings": """
        SELECT problem_id, candidate_id, device, protocol, baseline, num_verdicts, 'verdicts disagree' AS reason,
               disagreement_ratio AS ratio, speedup
        FROM summaries.speedups WHERE disagreement_ratio > 1.2
        UNION ALL
        SELECT problem_id, candidate_id, device, protocol, baseline, num_verdicts, 'interval is wide', interval_ratio,
               speedup
        FROM summaries.speedups WHERE interval_ratio > 1.2
        UNION ALL
        SELECT problem_id, candidate_id, device, protocol, NULL, count(*), 'never settled', NULL, NULL
        FROM verdicts WHERE status = 'unstable' GROUP BY ALL
    """,
    "hacks_caught": """
        SELECT caught_by, origin, device, protocol, count(*) AS num_verdicts,
               count(DISTINCT candidate_id) AS num_candidates, count(DISTINCT cheats.problem_id) AS num_problems,
               min(judged_at) AS first_caught_at, max(judged_at) AS last_caught_at,
               max_by(candidate_id, (judged_at, candidate_id)) AS last_candidate_id
        FROM (SELECT candidate_id, problem_id, device, protocol, judged_at,
                     coalesce(list_filter(checks, lambda c: NOT c.passed)[-1].name, 'screen') AS caught_by
              FROM verdicts WHERE status = 'cheated') AS cheats
        JOIN candidates USING (candidate_id)
        GROUP BY ALL
    """,
}
