"""Verdicts read back from the history, for work that need not be done again."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tasks.history.store import History
from tasks.judge.verdict import Verdict

_KNOWN = """
    SELECT problem_hash, candidate_id, problem_id, status, device, protocol, detail,
           coalesce((SELECT json_group_object(software, version) FROM software_versions AS found
                     WHERE found.environment_id = verdicts.environment_id), '{}') AS environment,
           [[c.name, c.passed::VARCHAR, c.evidence] FOR c IN checks] AS checks, max_error, baseline,
           reference_ms, candidate_ms, [speedup, speedup_low, speedup_high] AS settled, track, seconds,
           epoch(judged_at) AS judged_at
    FROM verdicts WHERE device = ? AND protocol = ? AND list_contains(?, candidate_id) ORDER BY judged_at
"""
VERSIONS = ("torch", "python", "driver")
"""What must be the same for a timing to be used again; the kernel and the walls do not make programs faster."""


def known_verdicts(
    path: Path, candidate_ids: Collection[str], *, device: str, protocol: str, environment: dict[str, str]
) -> list[tuple[str, Verdict]]:
    """Hash of the problem and verdict of candidates judged before on such a device with the same versions.

    The newest come last.

    Raises:
        RecordError: if there is no history, or it cannot be read.
        HistoryBusyError: if a writer held the file for too long.
    """
    rows = History(path).query(_KNOWN, [device, protocol, list(candidate_ids)]).to_dicts()
    found = [(row["problem_hash"], _verdict(row)) for row in rows]
    return [(text, verdict) for text, verdict in found if same_versions(verdict.environment, environment)]


def same_versions(one: Any, other: Any) -> bool:
    """Whether two environments time alike."""
    return all(one.get(name) == other.get(name) for name in VERSIONS)


def _verdict(row: dict[str, Any]) -> Verdict:
    checks = [[name, passed == "true", evidence] for name, passed, evidence in row["checks"]]
    settled = None if row["baseline"] is None else row["settled"]
    return Verdict.from_json(
        {**row, "environment": json.loads(row["environment"]), "checks": checks, "settled": settled}
    )
