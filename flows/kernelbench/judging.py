"""The judging of `cuda-l1 kernelbench`: every case once on each model of device, all models at the same time."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.engine import say
from flows.kernelbench.docket import Docket, DocketCase, Session, cases_of, judge_all
from flows.panels.judges import open_judges
from tasks.errors import CudaL1Error
from tasks.judge.any_judge import AnyJudge
from tasks.judge.baselines import usable_baselines
from tasks.judge.batch import changed
from tasks.params import JudgeParams
from tasks.problems.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.variants.imported import ImportedKernel


@dataclass(frozen=True, kw_only=True, slots=True)
class Agenda:
    """What is to be judged, and for how long."""

    problems: Mapping[str, Problem]
    kernels: "Sequence[ImportedKernel]"
    baselines: Sequence[str] | None
    """Names; None for all that the device can run."""
    history: Path | None
    """Asked for what is known about baselines."""
    stop_at: float
    """Monotonic time from which on nothing new is begun."""


def judge_agenda(agenda: Agenda, params: JudgeParams, docket: Docket) -> int:
    """Judge what has no verdict yet; returns on how many the judge itself failed."""
    baselines = usable_baselines(params.device, agenda.baselines)
    cases = cases_of(agenda.problems.values(), agenda.kernels, baselines)
    with open_judges(params) as judges:
        for judge in judges:
            say(f"judging on {judge.device}, {judge.workers} in hand, behind walls: {judge.environment['walls']}")
            _recall(docket, judge, agenda, baselines)
        sessions = _judge_at_once(judges, docket, agenda, {judge.device: cases for judge in judges}, is_alone=False)
    failures = [words for session in sessions.values() for words in session.failures]
    crowded = {device: session.crowded for device, session in sessions.items()}
    if num_crowded := sum(map(len, crowded.values())):
        say(f"{num_crowded} ran out of memory beside others, and are judged alone")
        with open_judges(changed(params, workers=1)) as judges:
            for session in _judge_at_once(judges, docket, agenda, crowded, is_alone=True).values():
                failures += session.failures
    for words in failures:
        say(f"no verdict: {words}")
    for judge in judges:
        left = len(docket.pending(cases, judge))
        words = f"{len(cases) - left} of {len(cases)} have verdicts"
        say(_on(judge, judges) + words + (f"; {left} to go: give the command again" if left else ""))
    return len(failures)


def _judge_at_once(
    judges: Sequence[AnyJudge],
    docket: Docket,
    agenda: Agenda,
    cases: Mapping[str, Sequence[DocketCase]],
    *,
    is_alone: bool,
) -> dict[str, Session]:
    """A session for each judge, by the model of its device."""

    def hold(judge: AnyJudge) -> Session:
        asked = cases.get(judge.device, ())
        todo = docket.pending(asked, judge)
        name = _on(judge, judges)
        say(f"{name}{len(asked) - len(todo)} of {len(asked)} have verdicts; {len(todo)} to go")
        return judge_all(
            judge, todo, docket, workers=judge.workers, stop_at=agenda.stop_at, is_alone=is_alone, name=name
        )

    with _interruptible_pool(len(judges)) as pool:
        return dict(zip((judge.device for judge in judges), pool.map(hold, judges), strict=True))


@contextmanager
def _interruptible_pool(size: int) -> "Iterator[ThreadPoolExecutor]":
    """Not waited for: whoever interrupts us closes the judges next, which ends what is running."""
    pool = ThreadPoolExecutor(size, thread_name_prefix="session")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on(judge: AnyJudge, judges: Sequence[AnyJudge]) -> str:
    return f"{judge.device}: " if len(judges) > 1 else ""


def _recall(docket: Docket, judge: AnyJudge, agenda: Agenda, baselines: Sequence[str]) -> None:
    """Take over what the history knows about the baselines, on a machine that has one."""
    if agenda.history is None or not agenda.history.exists():
        return
    try:
        count = docket.recall(agenda.history, judge, agenda.problems.values(), baselines)
    except CudaL1Error as error:
        say(f"the history cannot be asked for baselines: {error}")
    else:
        say(f"{count} timings of baselines are known from the history")
