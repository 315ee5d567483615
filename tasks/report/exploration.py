"""What the page explores: every verdict as a few columns, the best kernels and the curves, asked of a history in SQL.

A speedup means something on one device, under one protocol and over one baseline only: those are columns everywhere,
and nothing here averages over them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.history.records import Run, Sample
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.report.kernel_pages import KernelPages, kernel_pages
from tasks.variants.candidate import Candidate

if TYPE_CHECKING:
    import polars

    from tasks.history.store import History

MAX_HACKS = 300
"""Latest hacks that the page lists; what there are more of, it counts."""

# The way in which a reference is run is no candidate: its verdicts are yardsticks.
_CANDIDATES = "NOT starts_with(origin, 'baseline:')"

# A verdict that several runs reused counts once, where it was reached first.
_VERDICTS = f"""
    SELECT verdict_id, candidate_id, problem_id, problem_hash, stage, split, level, origin, device, protocol, baseline,
           status, coalesce(track, 'unknown') AS track, speedup
    FROM stage_verdicts WHERE {_CANDIDATES}
    QUALIFY row_number() OVER (PARTITION BY verdict_id ORDER BY started_at, run_id) = 1
    ORDER BY judged_at, verdict_id
"""

_REMEMBERED = """
    SELECT candidate_id, problem_id, problem_hash, device, protocol, baseline, track,
           speedup, speedup_low, speedup_high, num_verdicts
    FROM candidate_speedups
"""

# The fastest of many noisy timings is a lucky one: where a run timed the best again, only that timing counts.
_TIMED_AGAIN = """
    SELECT candidate_id, problem_id, problem_hash, device, protocol, baseline, track,
           speedup, speedup_low, speedup_high, 1 AS num_verdicts
    FROM stage_verdicts WHERE run_id = $run AND status = 'correct'
"""

# The fastest of every combination that the page can be filtered by, so that no filter shows a wrong champion.
_CHAMPIONS = f"""
    WITH speeds AS ({{speeds}}),
    places AS (
        SELECT DISTINCT candidate_id, problem_hash, device, protocol, baseline, stage, split, level, origin
        FROM stage_verdicts WHERE status = 'correct' AND {_CANDIDATES}
    )
    SELECT speeds.* REPLACE (coalesce(track, 'unknown') AS track), stage, split, level, origin
    FROM speeds JOIN places USING (candidate_id, problem_hash, device, protocol, baseline)
    QUALIFY row_number() OVER (
        PARTITION BY problem_id, problem_hash, device, protocol, baseline, stage, split, speeds.track, origin
        ORDER BY speedup DESC, candidate_id
    ) = 1
    ORDER BY speedup DESC, candidate_id, stage
"""

_BASELINES = """
    SELECT problem_id, problem_hash, device, protocol, substr(origin, 10) AS name, exp(avg(ln(speedup))) AS speedup
    FROM (SELECT DISTINCT verdict_id, problem_id, problem_hash, device, protocol, baseline, origin, speedup
          FROM stage_verdicts WHERE status = 'correct' AND starts_with(origin, 'baseline:'))
    WHERE baseline = 'eager' AND origin != 'baseline:eager' GROUP BY ALL ORDER BY ALL
"""

_CURVES = """
    SELECT stage, run_id, split, device, protocol, step, avg((status = 'correct')::INTEGER) AS share_correct,
           exp(avg(ln(speedup))) AS geomean_speedup, count(DISTINCT candidate_id) / count(*) AS distinct_share
    FROM stage_samples WHERE status IS NOT NULL AND stage != 'evaluate'
    GROUP BY ALL ORDER BY stage, run_id, split, device, protocol, step
"""

_HACKS = f"""
    SELECT verdict_id, candidate_id, problem_id, problem_hash, stage, split, level, origin, device, protocol,
           coalesce(track, 'unknown') AS track, status AS found, detail AS reason
    FROM stage_verdicts WHERE status = 'cheated' AND {_CANDIDATES}
    QUALIFY row_number() OVER (PARTITION BY verdict_id ORDER BY started_at, run_id) = 1
    ORDER BY judged_at DESC, verdict_id LIMIT {MAX_HACKS}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageRecords:
    """What one run of a stage left behind."""

    run_id: str
    stage: str
    candidates: Sequence[Candidate] = ()
    """All that its verdicts and samples refer to and that no run before it brought."""
    verdicts: Sequence[Verdict] = ()
    samples: Sequence[Sample] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Exploration:
    """Frames whose rows the page filters."""

    verdicts: "polars.DataFrame"
    """One row per verdict on a candidate, in the order in which they were reached."""
    champions: "polars.DataFrame"
    """The fastest candidate of every problem in every combination of what can be filtered by."""
    baselines: "polars.DataFrame"
    """Speedup over eager of the other ways to run each reference."""
    curves: "polars.DataFrame"
    """What each step's samples came to."""
    hacks: "polars.DataFrame"
    """The latest candidates caught cheating."""
    pages: KernelPages


def history_of(problems: Iterable[Problem], runs: Sequence[StageRecords], path: Path) -> "History":
    """A history of these records alone, in their order: whatever can be asked of a history can be asked of them."""
    from tasks.history.store import History

    history, all_problems = History(path), list(problems)
    for place, records in enumerate(runs):
        history.append(
            Run(run_id=records.run_id, stage=records.stage, seed=0, params={}, started_at=float(place)),
            problems=all_problems,
            candidates=records.candidates,
            samples=records.samples,
            verdicts=records.verdicts,
        )
    return history


def explore(history: "History", *, timed_again: str | None = None) -> Exploration:
    """Everything the page shows of a history.

    Args:
        timed_again: the run in which the best were timed afresh; then no other timing makes a champion.
    """
    speeds, named = (_TIMED_AGAIN, (timed_again,)) if timed_again else (_REMEMBERED, ())
    champions = history.query(_CHAMPIONS.format(speeds=speeds.replace("$run", "?")), named)
    hacks = history.query(_HACKS)
    return Exploration(
        verdicts=history.query(_VERDICTS),
        champions=champions,
        baselines=history.query(_BASELINES),
        curves=history.query(_CURVES),
        hacks=hacks,
        pages=kernel_pages(history, _wanted(champions, hacks)),
    )


def _wanted(champions: "polars.DataFrame", hacks: "polars.DataFrame") -> list[str]:
    """Ids of the candidates whose pages matter most, most wanted first: best of all, caught, best of some filter."""
    ways = ["problem_id", "problem_hash", "device", "protocol", "baseline"]
    best = champions.unique(ways, keep="first", maintain_order=True)
    ids: list[Any] = [*best["candidate_id"], *hacks["candidate_id"], *champions["candidate_id"]]
    return list(dict.fromkeys(ids))
