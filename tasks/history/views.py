"""Views of single rows: what was recorded, with what belongs to it beside it."""

# In order: a view may use those before it.
ROW_VIEWS: dict[str, str] = {
    # Rounds and checks are lists within their verdict: no key is stored once a round, and no verdict is ever torn.
    "timing_rounds": """
        SELECT verdict_id, generate_subscripts(reference_ms, 1) AS round,
               unnest(reference_ms) AS reference_ms, unnest(candidate_ms) AS candidate_ms
        FROM verdicts
    """,
    "checks": """
        SELECT verdict_id, "check".name AS name, "check".passed AS passed, "check".evidence AS evidence
        FROM (SELECT verdict_id, unnest(checks) AS "check" FROM verdicts)
    """,
    "problem_sets": """
        SELECT problem_set_id, problem_sets, num_problems, num_held_out, count(*) AS num_runs,
               list(run_id ORDER BY run_id) AS run_ids
        FROM (SELECT run_id, string_agg(DISTINCT problem_set, ', ' ORDER BY problem_set) AS problem_sets,
                     count(*) AS num_problems, count(*) FILTER (split = 'held_out') AS num_held_out,
                     sha256(string_agg(concat_ws(' ', problem_id, problem_hash), chr(10) ORDER BY problem_id))[:16]
                         AS problem_set_id
              FROM run_problems JOIN problems USING (problem_id, problem_hash) GROUP BY run_id)
        GROUP BY ALL
    """,
    "stage_verdicts": """
        SELECT runs.stage, run_id, runs.started_at, run_problems.split, problems.level, problems.family,
               candidates.origin, verdicts.*
        FROM run_verdicts
        JOIN runs USING (run_id)
        JOIN verdicts USING (verdict_id)
        JOIN candidates USING (candidate_id)
        JOIN run_problems ON run_problems.run_id = runs.run_id AND run_problems.problem_id = verdicts.problem_id
        JOIN problems ON problems.problem_id = verdicts.problem_id AND problems.problem_hash = verdicts.problem_hash
    """,
    "stage_samples": """
        SELECT runs.stage, samples.*, prompts.problem_id, prompts.exemplar_ids, run_problems.split,
               found.verdict_id, found.device, found.protocol, found.baseline, found.status, found.speedup
        FROM samples
        JOIN runs USING (run_id)
        JOIN prompts USING (prompt_id)
        JOIN run_problems ON run_problems.run_id = samples.run_id AND run_problems.problem_id = prompts.problem_id
        LEFT JOIN (SELECT run_id, verdicts.* FROM run_verdicts JOIN verdicts USING (verdict_id)
                   WHERE candidate_id IN (SELECT candidate_id FROM samples)) AS found
               ON found.run_id = samples.run_id AND found.candidate_id = samples.candidate_id
    """,
    # What is known of every correct candidate, one row per way of timing it.
    "candidate_speedups": """
        SELECT problem_id, problem_hash, candidate_id, device, protocol, baseline, speedup, speedup_low, speedup_high,
               num_verdicts, track
        FROM summaries.speedups
    """,
    # What came of showing a kernel in a prompt: a row per sample and exemplar.
    "exemplar_uses": """
        SELECT runs.stage, uses.run_id, step, number, policy, uses.problem_id, split, uses.prompt_id, position,
               uses.exemplar_id, uses.candidate_id, uses.candidate_id = uses.exemplar_id AS is_copy, status,
               found.device, found.protocol, found.baseline, found.speedup, exemplars.speedup AS exemplar_speedup,
               found.speedup / exemplars.speedup AS gain
        FROM (SELECT run_id, step, number, policy, problem_id, prompt_id, candidate_id,
                     unnest(exemplar_ids) AS exemplar_id, generate_subscripts(exemplar_ids, 1) AS position
              FROM samples JOIN prompts USING (prompt_id)) AS uses
        JOIN runs USING (run_id)
        JOIN run_problems ON run_problems.run_id = uses.run_id AND run_problems.problem_id = uses.problem_id
        LEFT JOIN (SELECT run_id, verdicts.* FROM run_verdicts JOIN verdicts USING (verdict_id)
                   WHERE candidate_id IN (SELECT candidate_id FROM samples)) AS found
               ON found.run_id = uses.run_id AND found.candidate_id = uses.candidate_id
        LEFT JOIN summaries.speedups AS exemplars
               ON exemplars.candidate_id = uses.exemplar_id AND exemplars.device = found.device
              AND exemplars.protocol = found.protocol AND exemplars.baseline = found.baseline
    """,
    # From where a candidate comes: a recorded parent, or what the prompts showed that it was written for.
    "parents": """
        SELECT candidate_id, parent_id, 'parent' AS relation FROM candidates WHERE parent_id IS NOT NULL
        UNION
        SELECT candidate_id, unnest(exemplar_ids) AS parent_id, 'exemplar' AS relation
        FROM (SELECT DISTINCT candidate_id, prompt_id FROM samples) JOIN prompts USING (prompt_id)
    """,
    "lineage": """
        SELECT candidates.problem_id, parents.candidate_id, candidates.origin, parents.relation, parents.parent_id,
               sources.origin AS parent_origin, own.device, own.protocol, own.baseline, own.speedup,
               former.speedup AS parent_speedup, own.speedup / former.speedup AS gain
        FROM parents
        JOIN candidates ON candidates.candidate_id = parents.candidate_id
        LEFT JOIN candidates AS sources ON sources.candidate_id = parents.parent_id
        LEFT JOIN summaries.speedups AS own ON own.candidate_id = parents.candidate_id
        LEFT JOIN summaries.speedups AS former
               ON former.candidate_id = parents.parent_id AND former.device = own.device
              AND former.protocol = own.protocol AND former.baseline = own.baseline
        WHERE parents.candidate_id != parents.parent_id
    """,
    "suspected_hacks": """
        SELECT opinions.candidate_id, opinions.problem_id, opinions.hack_group, opinions.reason, opinions.model,
               opinions.asked_at, candidate_speedups.speedup, candidates.source
        FROM opinions
        JOIN candidates USING (candidate_id)
        LEFT JOIN candidate_speedups USING (candidate_id)
        WHERE opinions.is_hack AND candidates.source NOT IN (SELECT source FROM hack_cases)
    """,
}
