"""What a user sees while a search runs."""

import sys
import time
from collections.abc import Callable

from rich.live import Live
from rich.table import Table

from tasks.search.found import ranked
from tasks.search.report import in_words
from tasks.search.search import Progress

SHOWN = 8


def shown(live: Live, *, seconds: float) -> Callable[[Progress], None]:
    """What shows the progress: a live table, or a line for every new best where nobody watches a terminal."""
    began_at, best = time.monotonic(), [1.0]

    def show(progress: Progress) -> None:
        if live.console.is_terminal:
            live.update(_table(progress, elapsed_s=time.monotonic() - began_at, seconds=seconds), refresh=True)
            return
        for each in ranked(progress.scored)[:1]:
            if (each.speedup or 0.0) > best[0]:
                best[0] = each.speedup or 0.0
                by = ", ".join(each.candidate.recipe) or each.candidate.origin
                sys.stderr.write(f"{time.monotonic() - began_at:.0f} s: {best[0]:.2f}x by {by} ({each.rung})\n")

    return show


def _table(progress: Progress, *, elapsed_s: float, seconds: float) -> Table:
    refused = sum(not each.verdict.is_correct for each in progress.scored)
    awaited = f", {progress.num_pending} answers awaited" if progress.num_pending else ""
    title = f"{len(progress.scored)} judged, {refused} refused{awaited}, {elapsed_s:.0f} of {seconds:.0f} s"
    table = Table("speedup over eager", "by", "rung", title=title, caption="Ctrl-C keeps the best so far")
    for each in ranked(progress.scored)[:SHOWN]:
        assert each.interval is not None
        table.add_row(in_words(each.interval), ", ".join(each.candidate.recipe) or each.candidate.origin, each.rung)
    for candidate in progress.running:
        table.add_row("...", ", ".join(candidate.recipe) or candidate.origin, "", style="dim")
    return table
