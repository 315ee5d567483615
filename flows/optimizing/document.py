"""The verdict of an optimization as JSON."""

import hashlib
import time

from flows.optimizing.outcome import Outcome
from tasks.judge.verdict import Speedup
from tasks.search.contributions import proposed_as
from tasks.search.found import over
from tasks.search.user_file import UserFile


def verdict_document(file: UserFile, outcome: Outcome) -> dict[str, object]:
    """The verdict as JSON: what is claimed, and every number behind it."""
    name, baseline = outcome.baseline
    winner = outcome.winner
    speedup = outcome.speedup
    made_of = proposed_as(winner[1], outcome.progress.scored) if winner else None
    against = over(speedup, baseline) if speedup else None
    return {
        "file": file.path.name,
        "class": file.class_name,
        "faster": winner is not None,
        "speedup_over_eager": _numbers(speedup),
        "best_baseline": name,
        "baselines_not_judged": outcome.not_judged,
        "speedup_over_best_baseline": _numbers(against),
        "rung": winner[1].rung if winner else None,
        "long_timing_did_not_settle": outcome.unsettled.detail if outcome.unsettled else None,
        "drop_in_sha256": hashlib.sha256(winner[0].source.encode()).hexdigest() if winner else None,
        "recipe": list(winner[0].judged.recipe) if winner else None,
        "provider": made_of.candidate.origin if made_of else None,
        "candidate_id": made_of.candidate.candidate_id if made_of else None,
        "providers": [each.to_json() for each in outcome.contributions],
        "gradients": outcome.gradients.status.value if outcome.gradients else None,
        "interrupted": outcome.interrupted,
        "seconds": outcome.seconds,
        "judged_at": time.time(),
        "not_written_because": outcome.unwritten or None,
        "no_drop_in_because": outcome.no_drop_in or None,
        "verdict": winner[1].verdict.to_json() if winner else None,
        "baselines": [each.verdict.to_json() for each in outcome.baselines],
    }


def _numbers(speedup: Speedup | None) -> dict[str, float] | None:
    return {"median": speedup.median, "low": speedup.low, "high": speedup.high} if speedup else None
