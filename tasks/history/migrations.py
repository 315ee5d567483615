"""The tables of history.duckdb, as an append-only list of migrations: one that has been released is never edited.

There are no foreign keys: DuckDB refuses to alter a table that one refers to. The store checks references itself.
"""

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
    """
    CREATE TABLE devices (
        device         VARCHAR PRIMARY KEY,
        is_gpu         BOOLEAN NOT NULL
    );
    CREATE TABLE environments (
        environment_id VARCHAR PRIMARY KEY,
        device         VARCHAR NOT NULL
    );
    CREATE TABLE software_versions (
        environment_id VARCHAR NOT NULL,
        software       VARCHAR NOT NULL,
        version        VARCHAR NOT NULL,
        PRIMARY KEY (environment_id, software)
    );
    INSERT INTO devices SELECT device, bool_or(json_exists(environment, '$.driver')) FROM verdicts GROUP BY device;
    CREATE TEMP TABLE environments_before AS
        SELECT DISTINCT device, environment, sha256(concat(device, chr(10), environment))[:16] AS environment_id
        FROM verdicts;
    INSERT INTO environments SELECT environment_id, device FROM environments_before;
    INSERT INTO software_versions
        SELECT environment_id, software, json_extract_string(environment, concat('$."', software, '"'))
        FROM (SELECT *, unnest(json_keys(environment)) AS software FROM environments_before);
    ALTER TABLE verdicts ADD COLUMN environment_id VARCHAR;
    UPDATE verdicts SET environment_id = sha256(concat(device, chr(10), environment))[:16];
    ALTER TABLE verdicts ALTER COLUMN environment_id SET NOT NULL;
    ALTER TABLE verdicts DROP COLUMN environment;
    DROP TABLE environments_before;

    ALTER TABLE problems ADD COLUMN problem_set VARCHAR DEFAULT 'local';
    ALTER TABLE problems ALTER COLUMN problem_set SET NOT NULL;
    ALTER TABLE candidates ADD COLUMN parent_id VARCHAR;
    CREATE TABLE run_links (
        run_id         VARCHAR NOT NULL,
        system         VARCHAR NOT NULL,
        identifier     VARCHAR NOT NULL,
        PRIMARY KEY (run_id, system, identifier)
    );
    CREATE TABLE costs (
        cost_id        VARCHAR PRIMARY KEY,
        run_id         VARCHAR NOT NULL,
        candidate_id   VARCHAR,
        purpose        VARCHAR NOT NULL,
        seconds        DOUBLE NOT NULL,
        prompt_tokens  BIGINT NOT NULL,
        answer_tokens  BIGINT NOT NULL,
        price_usd      DOUBLE NOT NULL,
        spent_at       TIMESTAMP NOT NULL
    );

    -- A key over both columns takes as much room as all timing rounds together; the store keeps pairs apart itself.
    CREATE TABLE kept_run_verdicts AS FROM run_verdicts;
    DROP TABLE run_verdicts;
    CREATE TABLE run_verdicts (
        run_id         VARCHAR NOT NULL,
        verdict_id     VARCHAR NOT NULL
    );
    INSERT INTO run_verdicts FROM kept_run_verdicts;
    DROP TABLE kept_run_verdicts;
    """,
)
