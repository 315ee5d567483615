"""The pages of single kernels: texts, verdicts with their rounds and checks, and where a kernel comes from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.history.store import History

Row = dict[str, Any]

MAX_PAGES = 500
"""Kernels that get a page, so that a file of a million verdicts still opens at once."""
MAX_RELATIVES = 12
"""Prompts that showed a kernel may be many; so many of the candidates that came of them are named."""
MAX_VERDICTS = 20
"""Latest verdicts of a kernel on its page."""

_KERNELS = """
    SELECT candidate_id, problem_id, problem_hash, origin, recipe, source FROM candidates
    WHERE candidate_id IN (SELECT unnest(?))
"""

_REFERENCES = """
    SELECT problem_id, problem_hash, level, family, source FROM problems
    WHERE (problem_id, problem_hash) IN
          (SELECT (problem_id, problem_hash) FROM candidates WHERE candidate_id IN (SELECT unnest(?)))
"""

_VERDICTS = f"""
    SELECT verdict_id, candidate_id, stage, split, device, protocol, baseline, status, detail, max_error, track,
           speedup, speedup_low, speedup_high, seconds, judged_at,
           coalesce((SELECT json_group_object(software, version) FROM software_versions AS found
                     WHERE found.environment_id = stage_verdicts.environment_id), '{{}}') AS environment
    FROM stage_verdicts WHERE candidate_id IN (SELECT unnest(?))
    QUALIFY row_number() OVER (PARTITION BY verdict_id ORDER BY started_at, run_id) = 1
        AND dense_rank() OVER (PARTITION BY candidate_id ORDER BY judged_at DESC, verdict_id) <= {MAX_VERDICTS}
    ORDER BY judged_at, verdict_id
"""

_ROUNDS = """
    SELECT verdict_id, list(reference_ms ORDER BY round) AS reference_ms, list(candidate_ms ORDER BY round) AS kernel_ms
    FROM timing_rounds WHERE verdict_id IN (SELECT unnest(?)) GROUP BY verdict_id
"""

_CHECKS = "SELECT verdict_id, name, passed, evidence FROM checks WHERE verdict_id IN (SELECT unnest(?))"

_PARENTS = """
    SELECT candidate_id, parent_id FROM candidates
    WHERE candidate_id IN (SELECT unnest(?)) AND parent_id IN (SELECT candidate_id FROM candidates)
"""

_SHOWN = """
    SELECT DISTINCT candidate_id, unnest(exemplar_ids) AS exemplar_id FROM stage_samples
    WHERE len(exemplar_ids) > 0 ORDER BY ALL
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelPages:
    """Rows to be written into the page: by candidate, and for each problem's text its reference."""

    kernels: Mapping[str, Row]
    references: Mapping[str, Row]
    """Under "problem id@hash"."""
    num_without: int
    """Wanted candidates beyond MAX_PAGES, which have none."""


def kernel_pages(history: "History", wanted: Sequence[str]) -> KernelPages:
    """Pages of the first of the wanted candidates, and of those they come from, with all that is known of them."""
    ids = list(wanted[:MAX_PAGES])
    parents = {row["candidate_id"]: row["parent_id"] for row in _rows(history, _PARENTS, ids)}
    shown = [(candidate_id, exemplar_id) for candidate_id, exemplar_id in history.query(_SHOWN).iter_rows()]
    chosen = set(ids)
    relatives = [*parents.values(), *(exemplar_id for candidate_id, exemplar_id in shown if candidate_id in chosen)]
    ids = list(dict.fromkeys([*ids, *relatives]))[:MAX_PAGES]
    kernels = {
        row["candidate_id"]: row
        | {"verdicts": [], "exemplars": [], "shown_to": [], "parent": parents.get(row["candidate_id"])}
        for row in _rows(history, _KERNELS, ids)
    }
    verdicts = {row["verdict_id"]: row | {"checks": []} for row in _rows(history, _VERDICTS, ids)}
    judged = list(verdicts)
    for row in _rows(history, _ROUNDS, judged):
        verdicts[row["verdict_id"]] |= {"reference_ms": row["reference_ms"], "kernel_ms": row["kernel_ms"]}
    for row in _rows(history, _CHECKS, judged):
        verdicts[row["verdict_id"]]["checks"].append([row["name"], row["passed"], row["evidence"]])
    for row in verdicts.values():
        kernels[row["candidate_id"]]["verdicts"].append(row)
    _add_exemplars(shown, kernels)
    references = {f"{row['problem_id']}@{row['problem_hash']}": row for row in _rows(history, _REFERENCES, ids)}
    ordered = {candidate_id: kernels[candidate_id] for candidate_id in ids if candidate_id in kernels}
    return KernelPages(kernels=ordered, references=references, num_without=max(len(wanted) - MAX_PAGES, 0))


def _add_exemplars(shown: Iterable[tuple[str, str]], kernels: Mapping[str, Row]) -> None:
    """Which kernels the prompts showed that a kernel answers, and what came of the prompts that showed it."""
    for candidate_id, exemplar_id in shown:
        for held, kind, relative in ((candidate_id, "exemplars", exemplar_id), (exemplar_id, "shown_to", candidate_id)):
            if held in kernels and len(kernels[held][kind]) < MAX_RELATIVES and held != relative:
                kernels[held][kind].append(relative)


def _rows(history: "History", sql: str, ids: Sequence[str]) -> list[Row]:
    return history.query(sql, [list(ids)]).to_dicts() if ids else []
