"""What a user sees while an optimization runs."""

import sys
import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tasks.search.clock import Clock
from tasks.search.found import Scored, ranked
from tasks.search.report import counts_in_words, in_words, written_by
from tasks.search.search import Progress

SHOWN = 8
SILENCE_S = 30.0


class Display:
    """On a terminal what is being done and a table, drawn anew each second; elsewhere lines, so that none waits long.

    Args:
        console: of standard error.
        seconds: that the search may take.
        silence_s: the longest where nobody watches a terminal.
    """

    def __init__(self, console: Console, *, seconds: float, silence_s: float = SILENCE_S) -> None:
        self._seconds = seconds
        self._silence_s = silence_s
        self._began_at = self._said_at = time.monotonic()
        self._clock: Clock | None = None
        self._progress: Progress | None = None
        self._best = 1.0
        self._hint = "Ctrl-C keeps the best so far"
        self._is_over = threading.Event()
        self._speaker = threading.Thread(target=self._break_silences, name="display", daemon=True)
        self.step = ""
        """What is being done."""
        self._live: Live | None = None
        if console.is_interactive:
            self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=1, transient=True)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start(refresh=True)
        else:
            self._speaker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
        else:
            self._is_over.set()
            self._speaker.join()

    def begin(self, step: str) -> None:
        """Tell what is begun."""
        self.step = step
        if not self._live:
            self._say(step)

    def watch(self, clock: Clock) -> None:
        """Tell the time that the search has used from now on, that of runs before included."""
        self._clock = clock

    def show(self, progress: Progress) -> None:
        """Tell how far the search is."""
        self._progress = progress
        for each in ranked(progress.scored)[:1]:
            if (each.speedup or 0.0) > self._best and not self._live:
                self._best = each.speedup or 0.0
                self._say(_in_words(each))

    def interrupt(self) -> None:
        """From now on Ctrl-C does something else."""
        self._hint = "Ctrl-C ends at once"

    def _say(self, words: str) -> None:
        self._said_at = time.monotonic()
        sys.stderr.write(f"{self._said_at - self._began_at:.0f} s: {words}\n")

    def _break_silences(self) -> None:
        while not self._is_over.wait(max(0.0, self._said_at + self._silence_s - time.monotonic())):
            if time.monotonic() >= self._said_at + self._silence_s:
                self._say(f"still {self.step}{self._how_far()}")

    def _how_far(self) -> str:
        if self._progress is None:
            return ""
        best = "".join(f"; the best is {_in_words(each)}" for each in ranked(self._progress.scored)[:1])
        return f": {self._counts(self._progress)}{best}"

    def _counts(self, progress: Progress) -> str:
        awaited = f", {progress.num_pending} answers awaited" if progress.num_pending else ""
        return f"{len(progress.scored)} judged, {counts_in_words(progress.scored)}{awaited}{self._time()}"

    def _time(self) -> str:
        if self._clock is None:
            return ""
        elapsed_s = self._clock.elapsed_s
        limit = f" of {self._seconds:.0f}" if elapsed_s < self._seconds else ""  # what proves the best comes on top
        return f", {elapsed_s:.0f}{limit} s"

    def _drawn(self) -> RenderableType:
        progress = self._progress
        if progress is None:
            return Text(f"{self.step}, {time.monotonic() - self._began_at:.0f} s" if self.step else "")
        table = Table("speedup over eager", "by", "rung")
        for each in ranked(progress.scored)[:SHOWN]:
            assert each.interval is not None
            table.add_row(in_words(each.interval), written_by(each.candidate), each.rung)
        for candidate in progress.running:
            table.add_row("...", written_by(candidate), "", style="dim")
        return Group(Text(self._counts(progress)), table, Text(f"{self.step}; {self._hint}"))


def _in_words(scored: Scored) -> str:
    return f"{scored.speedup:.2f}x by {written_by(scored.candidate)} ({scored.rung})"
