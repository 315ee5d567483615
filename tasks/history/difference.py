"""What changed between two runs: statuses, speedups whose intervals do not meet, wins gained and lost."""

from collections.abc import Iterable
from dataclasses import dataclass

from tasks.errors import RecordError
from tasks.history.store import History

_RUNS = "SELECT run_id, stage, coalesce(git_commit, '') FROM runs ORDER BY started_at, run_id"

# A run may judge a text twice, such as the best ones again: its last word counts.
_LAST_WORDS = """
    SELECT candidate_id, problem_id, concat_ws(', ', device, protocol) AS conditions, status,
           speedup, speedup_low, speedup_high
    FROM run_verdicts JOIN verdicts USING (verdict_id)
    WHERE run_id = ?
    QUALIFY row_number() OVER (PARTITION BY candidate_id ORDER BY judged_at DESC, verdict_id) = 1
    ORDER BY problem_id, candidate_id
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A run's last word on a candidate."""

    candidate_id: str
    problem_id: str
    conditions: str
    """Device and protocol: what two speedups must have in common to be compared."""
    status: str
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None

    @property
    def is_win(self) -> bool:
        """Faster than the baseline with all of its interval."""
        return self.speedup_low is not None and self.speedup_low > 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The same candidate in both runs; or a problem's fastest candidate in each, where there is one."""

    problem_id: str
    before: Judged | None
    after: Judged | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """From run A to run B."""

    run_a: str
    run_b: str
    num_a: int
    """Candidates judged in A."""
    num_b: int
    num_shared: int
    conditions_a: tuple[str, ...]
    conditions_b: tuple[str, ...]
    statuses: tuple[Change, ...]
    """Candidates of both that have another status."""
    speedups: tuple[Change, ...]
    """Candidates of both, under the same conditions, whose intervals of the speedup do not meet."""
    new_wins: tuple[Change, ...]
    """Problems with a win in B and none in A."""
    lost_wins: tuple[Change, ...]


def compare_runs(history: History, run_a: str, run_b: str) -> Difference:
    """What run B found otherwise than run A.

    Args:
        run_a: a run's id or the beginning of one, or a stage, or stage@commit with the beginning of a commit.
        run_b: as run_a.

    Raises:
        RecordError: if a name fits no run, or several.
    """
    runs = history.query(_RUNS).rows()
    before, after = (_named(name, runs) for name in (run_a, run_b))
    ones, others = ([_judged(row) for row in history.query(_LAST_WORDS, [run]).rows()] for run in (before, after))
    known = {one.candidate_id: one for one in ones}
    shared = [
        Change(problem_id=other.problem_id, before=known[other.candidate_id], after=other)
        for other in others
        if other.candidate_id in known
    ]
    best_before, best_after = _fastest(ones), _fastest(others)
    problems = sorted({judged.problem_id for judged in (*ones, *others)})
    best = [Change(problem_id=name, before=best_before.get(name), after=best_after.get(name)) for name in problems]
    return Difference(
        run_a=before,
        run_b=after,
        num_a=len(ones),
        num_b=len(others),
        num_shared=len(shared),
        conditions_a=tuple(sorted({one.conditions for one in ones})),
        conditions_b=tuple(sorted({other.conditions for other in others})),
        statuses=tuple(c for c in shared if c.before and c.after and c.before.status != c.after.status),
        speedups=tuple(c for c in shared if _is_apart(c.before, c.after)),
        new_wins=tuple(c for c in best if _is_win(c.after) and not _is_win(c.before)),
        lost_wins=tuple(c for c in best if _is_win(c.before) and not _is_win(c.after)),
    )


def _named(name: str, runs: Iterable[tuple[str, str, str]]) -> str:
    """The run that a name fits, whole ids before beginnings of them."""
    stage, _, commit = name.partition("@")
    by_id = [run_id for run_id, _, _ in runs if run_id == name]
    found = by_id or [
        run_id
        for run_id, of_stage, of_commit in runs
        if (not commit and run_id.startswith(name)) or (of_stage == stage and of_commit.startswith(commit))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise RecordError(f"{len(found)} runs are called {name!r}; say which: {', '.join(found)}")
    raise RecordError(f'no run is called {name!r}; `cuda-l1 sql "SELECT run_id, git_commit FROM runs"` names them')


def _judged(row: tuple[str, str, str, str, float | None, float | None, float | None]) -> Judged:
    candidate_id, problem_id, conditions, status, speedup, low, high = row
    return Judged(
        candidate_id=candidate_id,
        problem_id=problem_id,
        conditions=conditions,
        status=status,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
    )


def _fastest(judged: Iterable[Judged]) -> dict[str, Judged]:
    """The fastest correct candidate of each problem that has one."""
    return {one.problem_id: one for one in sorted(judged, key=lambda one: one.speedup or 0.0) if one.speedup}


def _is_win(judged: Judged | None) -> bool:
    return judged is not None and judged.is_win


def _is_apart(one: Judged | None, other: Judged | None) -> bool:
    if one is None or other is None or one.conditions != other.conditions:
        return False
    bounds = (one.speedup_low, one.speedup_high, other.speedup_low, other.speedup_high)
    if None in bounds:
        return False
    low, high, other_low, other_high = map(float, bounds)  # type: ignore[arg-type]
    return high < other_low or other_high < low
