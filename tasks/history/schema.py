"""The shape of history.duckdb, as an append-only list of migrations, and the views over it.

To change a table, add a migration at the end; never edit one that has been released. Views hold no data: edit them
freely, the next append replaces those of the file.

There are no foreign keys: DuckDB refuses to alter a table that one refers to. The store checks references itself.
"""

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB that can open the file, so that the plain shell of that line can."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        run_id       VARCHAR PRIMARY KEY,
        stage        VARCHAR NOT NULL,
        seed         BIGINT NOT NULL,
        params       JSON NOT NULL,
        git_commit   VARCHAR,
        versions     JSON NOT NULL,
        started_at   TIMESTAMP NOT NULL
    );
    CREATE TABLE problems (
        problem_id   VARCHAR NOT NULL,
        problem_hash VARCHAR NOT NULL,
        level        INTEGER NOT NULL,
        family       VARCHAR NOT NULL,
        source       VARCHAR NOT NULL,
        PRIMARY KEY (problem_id, problem_hash)
    );
    CREATE TABLE run_problems (
        run_id       VARCHAR NOT NULL,
        problem_id   VARCHAR NOT NULL,
        problem_hash VARCHAR NOT NULL,
        split        VARCHAR NOT NULL,
        PRIMARY KEY (run_id, problem_id)
    );
    CREATE TABLE candidates (
        candidate_id VARCHAR PRIMARY KEY,
        problem_id   VARCHAR NOT NULL,
        problem_hash VARCHAR NOT NULL,
        origin       VARCHAR NOT NULL,
        recipe       VARCHAR[] NOT NULL,
        source       VARCHAR NOT NULL,
        run_id       VARCHAR NOT NULL
    );
    CREATE TABLE prompts (
        prompt_id    VARCHAR PRIMARY KEY,
        problem_id   VARCHAR NOT NULL,
        exemplar_ids VARCHAR[] NOT NULL,
        text         VARCHAR NOT NULL
    );
    CREATE TABLE samples (
        run_id       VARCHAR NOT NULL,
        step         INTEGER NOT NULL,
        number       INTEGER NOT NULL,
        prompt_id    VARCHAR NOT NULL,
        candidate_id VARCHAR NOT NULL,
        policy       VARCHAR NOT NULL,
        temperature  DOUBLE NOT NULL,
        completion   VARCHAR NOT NULL,
        PRIMARY KEY (run_id, step, number)
    );
    CREATE TABLE verdicts (
        verdict_id   VARCHAR PRIMARY KEY,
        candidate_id VARCHAR NOT NULL,
        problem_id   VARCHAR NOT NULL,
        problem_hash VARCHAR NOT NULL,
        status       VARCHAR NOT NULL,
        detail       VARCHAR NOT NULL,
        device       VARCHAR NOT NULL,
        environment  JSON NOT NULL,
        protocol     VARCHAR NOT NULL,
        checks       STRUCT(name VARCHAR, passed BOOLEAN, evidence VARCHAR)[] NOT NULL,
        max_error    DOUBLE,
        baseline     VARCHAR,
        reference_ms DOUBLE[],
        candidate_ms DOUBLE[],
        speedup      DOUBLE,
        speedup_low  DOUBLE,
        speedup_high DOUBLE,
        track        VARCHAR,
        seconds      DOUBLE NOT NULL,
        judged_at    TIMESTAMP NOT NULL,
        CHECK ((status = 'correct') = (speedup IS NOT NULL)),
        CHECK (len(reference_ms) = len(candidate_ms))
    );
    CREATE TABLE run_verdicts (
        run_id       VARCHAR NOT NULL,
        verdict_id   VARCHAR NOT NULL,
        PRIMARY KEY (run_id, verdict_id)
    );
    """,
    """
    CREATE TABLE hack_cases (
        case_id      VARCHAR PRIMARY KEY,
        name         VARCHAR NOT NULL,
        hack_group   VARCHAR NOT NULL,
        source       VARCHAR NOT NULL,
        words        VARCHAR NOT NULL,
        added_at     TIMESTAMP NOT NULL,
        origin       VARCHAR NOT NULL
    );
    CREATE TABLE opinions (
        opinion_id   VARCHAR PRIMARY KEY,
        candidate_id VARCHAR NOT NULL,
        problem_id   VARCHAR NOT NULL,
        asked_at     TIMESTAMP NOT NULL,
        model        VARCHAR NOT NULL,
        is_hack      BOOLEAN NOT NULL,
        hack_group   VARCHAR NOT NULL,
        reason       VARCHAR NOT NULL,
        prompt       VARCHAR NOT NULL
    );
    """,
    "ALTER TABLE problems ADD COLUMN problem_set VARCHAR DEFAULT 'local'",
)

# In order: a view may use those before it.
VIEWS: dict[str, str] = {
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
        LEFT JOIN (SELECT run_id, verdicts.* FROM run_verdicts JOIN verdicts USING (verdict_id)) AS found
               ON found.run_id = samples.run_id AND found.candidate_id = samples.candidate_id
    """,
    # One row per candidate and way of timing it. Ratios multiply, so several verdicts average in log space. A text
    # once found wrong or dishonest is out, whatever it was found to be at other times.
    "candidate_speedups": """
        SELECT problem_id, problem_hash, candidate_id, device, protocol, baseline,
               exp(avg(ln(speedup))) AS speedup, min(speedup_low) AS speedup_low, max(speedup_high) AS speedup_high,
               count(*) AS num_verdicts, max(track) AS track
        FROM verdicts
        WHERE status = 'correct' AND candidate_id NOT IN
              (SELECT candidate_id FROM verdicts WHERE status IN ('wrong_output', 'cheated'))
        GROUP BY ALL
    """,
    "best_kernels": """
        SELECT best.*, candidates.origin, candidates.recipe, candidates.source
        FROM (SELECT unnest(max_by(candidate_speedups, speedup)) FROM candidate_speedups
              GROUP BY problem_id, problem_hash, device, protocol, baseline) AS best
        JOIN candidates USING (candidate_id)
    """,
    "speedups_by_stage": """
        SELECT stage, run_id, started_at, split, device, protocol, baseline,
               count(DISTINCT problem_id) AS num_problems, count(DISTINCT candidate_id) AS num_candidates,
               exp(avg(ln(speedup))) AS geomean_speedup, median(speedup) AS median_speedup,
               max(speedup) AS best_speedup, avg((speedup > 1)::INTEGER) AS faster_share
        FROM stage_verdicts WHERE status = 'correct'
        GROUP BY ALL
    """,
    # What the reward checker called a hack and nobody has made a case of, with what the judge measured.
    "suspected_hacks": """
        SELECT opinions.candidate_id, opinions.problem_id, opinions.hack_group, opinions.reason, opinions.model,
               opinions.asked_at, candidate_speedups.speedup, candidates.source
        FROM opinions
        JOIN candidates USING (candidate_id)
        LEFT JOIN candidate_speedups USING (candidate_id)
        WHERE opinions.is_hack AND candidates.source NOT IN (SELECT source FROM hack_cases)
    """,
    "leaderboard": """
        SELECT origin, device, protocol, baseline, count(*) AS num_solved, count(*) FILTER (speedup > 1) AS num_faster,
               exp(avg(ln(speedup))) AS geomean_best_speedup, median(speedup) AS median_best_speedup,
               max(speedup) AS best_speedup
        FROM (SELECT origin, device, protocol, baseline, max(speedup) AS speedup
              FROM candidate_speedups JOIN candidates USING (candidate_id)
              GROUP BY origin, device, protocol, baseline, candidates.problem_id)
        GROUP BY ALL
    """,
}
