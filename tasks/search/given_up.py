"""Whether a drop-in gave its fast code up where it was judged: it warns of that, and is then right and slow.

A verdict on what is right holds nothing of what was printed, so the same file is judged with that warning as an error.
"""

from dataclasses import replace

from tasks.judge.verdict import Verdict
from tasks.variants.candidate import Candidate

WORDS = "stays as slow as it was"
"""In every warning of a drop-in that does so."""
_RAISING = f"""

__import__("warnings").filterwarnings("error", message=".*{WORDS}")
"""


def telling(judged: Candidate) -> Candidate:
    """The drop-in so that giving up is an error."""
    return replace(judged, source=judged.source + _RAISING)


def reason_in(verdict: Verdict) -> str | None:
    """Why it gave up, from the verdict on what `telling` makes of it; None if it did not."""
    _, found, reason = verdict.detail.partition("last output:")[0].rpartition(f" {WORDS}: ")
    return next((line.strip() for line in reason.splitlines() if line.strip()), "") if found else None
