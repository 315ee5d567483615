"""The history: one DuckDB file that remembers every kernel ever judged, append-only.

Nothing light may import this file: duckdb and polars take a second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import polars

from tasks.errors import RecordError
from tasks.history.connection import reading, writing
from tasks.history.records import Cost, Run, RunLink, Sample
from tasks.history.rows import (
    candidate_frame,
    cost_frame,
    link_frame,
    problem_frame,
    run_frame,
    sample_frame,
    software_frame,
    verdict_frame,
)
from tasks.history.summaries import update_summaries
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

# In order. The frames new_... hold what is appended; $run_id is the run it belongs to.
_INSERTS = (
    "INSERT INTO runs BY NAME FROM new_runs ON CONFLICT DO NOTHING",
    "INSERT INTO problems BY NAME SELECT * EXCLUDE split FROM new_problems ON CONFLICT DO NOTHING",
    """
    INSERT INTO run_problems BY NAME
    SELECT $run_id AS run_id, problem_id, problem_hash, split FROM new_problems ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO candidates BY NAME
    SELECT new_candidates.*, problem_hash, run_id FROM new_candidates JOIN run_problems USING (problem_id)
    WHERE run_id = $run_id ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO prompts BY NAME
    SELECT prompt_id, problem_id, exemplar_ids, prompt AS text FROM new_samples ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO samples BY NAME
    SELECT $run_id AS run_id, * EXCLUDE (problem_id, exemplar_ids, prompt) FROM new_samples ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO devices
    SELECT device, bool_or(software IS NOT DISTINCT FROM 'driver') FROM new_software GROUP BY device
    ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO environments SELECT DISTINCT environment_id, device FROM new_software ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO software_versions
    SELECT environment_id, software, version FROM new_software WHERE software IS NOT NULL ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO verdicts BY NAME
    SELECT new_verdicts.*, problem_hash FROM new_verdicts JOIN run_problems USING (problem_id)
    WHERE run_id = $run_id ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO run_verdicts BY NAME
    SELECT DISTINCT $run_id AS run_id, verdict_id FROM new_verdicts
    WHERE verdict_id NOT IN (SELECT verdict_id FROM run_verdicts WHERE run_id = $run_id)
    """,
    "INSERT INTO costs BY NAME SELECT $run_id AS run_id, * FROM new_costs ON CONFLICT DO NOTHING",
    "INSERT INTO run_links BY NAME SELECT $run_id AS run_id, * FROM new_links ON CONFLICT DO NOTHING",
)

# Each finds what must not be there once everything is inserted, and is followed by what it means.
_CONTRADICTIONS = (
    (
        "SELECT run_id FROM new_runs JOIN runs USING (run_id) WHERE (new_runs.stage, new_runs.seed, new_runs.params) "
        "IS DISTINCT FROM (runs.stage, runs.seed, runs.params::VARCHAR)",
        "is recorded as a run of another stage, seed or params; a run_id must be made of all three",
    ),
    (
        "SELECT problem_id FROM new_problems JOIN run_problems USING (problem_id) WHERE run_id = $run_id AND "
        "(new_problems.problem_hash, new_problems.split) != (run_problems.problem_hash, run_problems.split)",
        "is recorded for this run with another text or split; a run_id must depend on its problems",
    ),
    (
        "SELECT problem_id FROM (SELECT problem_id FROM new_candidates UNION SELECT problem_id FROM new_samples UNION "
        "SELECT problem_id FROM new_verdicts) ANTI JOIN (FROM run_problems WHERE run_id = $run_id) USING (problem_id)",
        "is not a problem of this run; append the run's problems first",
    ),
    (
        "SELECT candidate_id FROM (SELECT candidate_id FROM new_samples UNION SELECT candidate_id FROM new_verdicts "
        "UNION SELECT candidate_id FROM new_costs WHERE candidate_id IS NOT NULL) "
        "ANTI JOIN candidates USING (candidate_id)",
        "has a sample, verdict or cost but is not a known candidate; append the candidate with it",
    ),
    # The text may differ: a killed step that is taken again samples anew, and what it wrote first was judged too.
    (
        "SELECT concat('sample ', number, ' of step ', step) FROM new_samples JOIN samples USING (step, number) "
        "WHERE run_id = $run_id AND (new_samples.policy, new_samples.temperature) "
        "!= (samples.policy, samples.temperature)",
        "is recorded for another policy or temperature; give each its own step",
    ),
    (
        "SELECT concat('sample ', number, ' of step ', step) FROM new_samples "
        "GROUP BY step, number HAVING count(*) > 1",
        "comes twice; number the samples of a step",
    ),
)


class History:
    """Every append and every query opens the file for a moment, so that several processes can share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(
        self,
        run: Run,
        *,
        problems: Iterable[Problem] = (),
        candidates: Iterable[Candidate] = (),
        samples: Iterable[Sample] = (),
        verdicts: Sequence[Verdict] = (),
        costs: Iterable[Cost] = (),
        links: Iterable[RunLink] = (),
    ) -> None:
        """Record what a run did, all of it or nothing. What is recorded already stays as it is.

        So a resumed stage may simply append everything again. The problems of a run come with or before what was done
        on them, and a candidate with or before its samples, verdicts and costs.

        Raises:
            RecordError: if a record contradicts one stored, or refers to one that is not.
            HistoryBusyError: if other processes held the file for too long.
            MachineError: if it cannot be written.
        """
        frames = {
            "new_runs": run_frame(run),
            "new_problems": problem_frame(problems),
            "new_candidates": candidate_frame(candidates),
            "new_samples": sample_frame(samples),
            "new_verdicts": verdict_frame(verdicts),
            "new_software": software_frame(verdicts),
            "new_costs": cost_frame(costs, run_id=run.run_id),
            "new_links": link_frame(links),
        }
        with writing(self.path) as connection:
            for name, frame in frames.items():
                connection.register(name, frame)
            for insert in _INSERTS:
                connection.execute(insert, _named(insert, run))
            self._refuse_contradictions(connection, run)
            if verdicts:
                update_summaries(connection, run_id=run.run_id)

    def query(self, sql: str, parameters: Sequence[object] = ()) -> polars.DataFrame:
        """The rows of one SELECT, as of now. Cannot change the file.

        Raises:
            RecordError: if there is no history yet, it is damaged, or DuckDB refuses the statement.
            HistoryBusyError: if a writer held the file for too long.
        """
        with reading(self.path) as connection:
            relation = connection.sql(sql, params=list(parameters))
            if relation is None:
                raise RecordError(f"{self.path}: {sql!r} has no rows to return; ask with SELECT")
            return relation.pl()

    def _refuse_contradictions(self, connection: duckdb.DuckDBPyConnection, run: Run) -> None:
        for select, meaning in _CONTRADICTIONS:
            found = connection.execute(select, _named(select, run)).fetchall()
            if found:
                more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
                raise RecordError(f"run {run.run_id} of {run.stage}: {found[0][0]}{more} {meaning}")


def _named(statement: str, run: Run) -> dict[str, str]:
    """DuckDB refuses a parameter the statement does not use."""
    return {"run_id": run.run_id} if "$run_id" in statement else {}
