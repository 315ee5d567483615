"""What a retraining leaves on its run's page in Prefect's UI."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast
from uuid import UUID

import httpx
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.logging import get_run_logger

from flows.retraining.inbox import Arrival
from flows.retraining.trial import Trial
from tasks.report.comparison_page import bout_rows, comparison_metrics, decision_page, speedup_plot


def show_arrivals(arrivals: Sequence[Arrival]) -> None:
    """A table of what was in the inboxes."""
    rows = [{"file": arrival.name, "became": arrival.fate.value, "why": arrival.headline} for arrival in arrivals]
    with _if_it_answers():
        create_table_artifact(rows, key="retrain-arrivals", description=f"{len(rows)} files were in the inboxes")


class Progress:
    """How far the comparison is, as a bar on the run's page and in its log."""

    def __init__(self) -> None:
        self._artifact: UUID | None = None

    def show(self, share: float, words: str) -> None:
        get_run_logger().info("%3.0f %%: %s", 100 * share, words)
        with _if_it_answers():
            if self._artifact is None:
                made = create_progress_artifact(100 * share, key="retrain-progress", description=words)
                self._artifact = cast(UUID, made)
            else:
                update_progress_artifact(self._artifact, 100 * share, description=words)


def arrivals_page(arrivals: Sequence[Arrival]) -> str:
    """How many were in the inboxes, and why some were not admitted, in Markdown.

    Names and reasons are strangers' words: they stand in code, where nothing of them is a link or a tag.
    """
    counts = Counter(arrival.fate.value for arrival in arrivals)
    page = f"New problems: {', '.join(f'{count} {fate}' for fate, count in counts.items()) or 'none'}.\n\n"
    for arrival in arrivals:
        if arrival.headline:
            page += f"- {_code(arrival.name)} {arrival.fate.value}: {_code(arrival.headline)}\n"
    return page


def announce(trial: Trial, arrivals: Sequence[Arrival], links: Mapping[str, str]) -> None:
    """The decision with its links, a row for each problem, and a plot."""
    judgement = trial.judgement
    metrics = comparison_metrics(trial.bouts, judgement)
    page = f"{decision_page(judgement, metrics, links)}\n{arrivals_page(arrivals)}"
    with _if_it_answers():
        create_markdown_artifact(page, key="retrain-decision", description=judgement.decision.value)
        if trial.bouts:
            rows = bout_rows(trial.bouts)
            create_table_artifact(rows, key="retrain-problems", description="challenger and champion on every problem")
            picture = base64.b64encode(speedup_plot(trial.bouts)).decode()
            # As an image artifact its address would be shown as well, which is the picture itself.
            create_markdown_artifact(
                f"![speedups](data:image/png;base64,{picture})",
                key="retrain-speedups",
                description="speedup of the best candidates",
            )


def _code(text: str) -> str:
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


@contextmanager
def _if_it_answers() -> Iterator[None]:
    """A server that is down keeps nobody from retraining: the decision is in the registry, and all of this is in it."""
    try:
        yield
    except httpx.HTTPError as error:
        get_run_logger().warning("the run's page lacks something, since the Prefect server does not answer: %s", error)
