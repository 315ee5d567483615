"""The benchmark of `cuda-l1 optimize` for one problem: its steps, which are taken in turns with those of the others."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.optimize import Optimization
from flows.optimizing.document import verdict_document
from flows.optimizing.judging import Judges, Record
from flows.optimizing.outcome import Settings
from flows.optimizing.providers import rewriting
from tasks.errors import ProblemError
from tasks.judge.batch import changed
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.search.clock import Clock
from tasks.search.experience import Experience
from tasks.search.search import SCREEN
from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tasks.search.user_file import read_user_file

RESERVE = 0.94
"""Of the time is given out: the last baseline that is begun may take as long as the limit on a candidate allows."""
SCREENING_SHARE = 0.5
"""Of the time that is given out; drop-ins and baselines take the rest."""
FIRST, MORE = 4, 4
"""Candidates of each problem in the first pass, and at a time later on."""
PATIENCE = 12
HOPELESS, HOPEFUL = 0.2, 1.1
"""Problems with hopes below the first are left; of those with hopes between the two the least tried comes first."""


class Shared:
    """What all problems of a run have in common."""

    def __init__(self, judges: Judges, params: JudgeParams, *, folder: Path, minutes: float, num_problems: int) -> None:
        self.judges = judges
        self.folder = folder
        self.clock = Clock()
        self.experience = Experience()
        self.settings = Settings(
            seconds=RESERVE * 60 * minutes,
            screening_share=1.0,  # the passes have their own end
            window_s=0.0,
            judge=changed(params, workers=1),
            patience=PATIENCE,
            proves_all=False,
        )
        self.share_s = SCREENING_SHARE * self.settings.seconds * params.workers / num_problems
        """Of the screening, for each problem."""

    @property
    def is_screening_over(self) -> bool:
        return self.clock.elapsed_s > SCREENING_SHARE * self.settings.seconds

    @property
    def is_over(self) -> bool:
        return self.clock.elapsed_s > self.settings.seconds


class Run:
    """One problem on its way."""

    def __init__(self, problem: Problem, shared: Shared) -> None:
        self.problem = problem
        self.seconds = 0.0
        self.error = ""
        self._shared = shared
        self._optimization: Optimization | None = None
        self._record: Record | None = None

    @property
    def promise(self) -> tuple[float, int]:
        """The larger the sooner: the factor that is hoped for over the best so far, then how little was tried."""
        if self._optimization is None or self.error:
            return 0.0, 0
        hoped, num_tried = self._optimization.promise, len(self._optimization.outcome.progress.at(SCREEN))
        return (1.0 if HOPELESS < hoped < HOPEFUL else hoped), -num_tried

    @property
    def screened(self) -> float:
        """The best speedup over eager until now."""
        scored = self._optimization.outcome.progress.scored if self._optimization else []
        return max((each.speedup or 0.0 for each in scored), default=0.0)

    @property
    def speedup(self) -> float:
        """Of the best drop-in over eager."""
        finals = self._optimization.outcome.finals if self._optimization else []
        return max((each.speedup or 0.0 for _, each in finals), default=0.0)

    def begin(self) -> None:
        """Screen the first candidates, fewer where the machine is too busy for as many of every problem.

        What a run before had screened comes first.
        """
        self._counted(lambda optimization: optimization.screen(more=self._num_known))
        for _ in range(self._num_known, FIRST):
            if self.seconds < self._shared.share_s:
                self._counted(lambda optimization: optimization.screen(more=1))

    def go_on(self) -> None:
        self._counted(lambda optimization: optimization.screen(more=MORE))

    def make_drop_ins(self) -> None:
        if not self._shared.is_over:
            self._counted(Optimization.make_drop_ins)

    def decide(self) -> None:
        self._counted(Optimization.decide)

    def close(self) -> None:
        if self._record is not None:
            self._record.close()

    def row(self) -> dict[str, Any]:
        """What the page says about it."""
        facts = {"problem_id": self.problem.problem_id, "level": self.problem.level, "split": self.problem.split.value}
        if self._optimization is None or self.error:
            return {**facts, "error": self.error, "seconds": self.seconds}
        outcome = self._optimization.outcome
        document = verdict_document(self._file, outcome)
        verdict = document.pop("verdict")
        document.pop("baselines")
        any_verdict = next((each.verdict for each in outcome.progress.scored), None)
        return {
            **facts,
            **document,
            "seconds": self.seconds,
            "tried": len({each.candidate.candidate_id for each in outcome.progress.scored}),
            "compile": next((each.speedup for each in outcome.baselines), None),
            "best_drop_in": self.speedup or None,
            "track": verdict["track"] if isinstance(verdict, dict) else None,
            "device": any_verdict.device if any_verdict else None,
            "environment": dict(any_verdict.environment) if any_verdict else None,
        }

    @property
    def _num_known(self) -> int:
        return sum(rung == SCREEN for rung, _ in self._record.known) if self._record else 0

    def _begun(self) -> Optimization:
        if self._optimization is not None:
            return self._optimization
        shared = self._shared
        self._file = read_user_file(Path("data/problems") / f"{self.problem.problem_id}.py")
        facts = survey(self._file)
        texts = problem_texts(self._file, facts)
        judge, settings = shared.judges.at(SCREEN), shared.settings
        asked = [texts.judged.problem_hash, judge.device, judge.protocol, json.dumps(dict(judge.environment))]
        self._record = Record(shared.folder / self.problem.problem_id, [*asked, str(settings.judge)])
        self._optimization = Optimization(
            self._file,
            facts,
            texts,
            settings=settings,
            judges=shared.judges,
            record=self._record,
            proposers=rewriting(
                texts.shown, seed=settings.seed, device=settings.judge.device, experience=shared.experience
            ),
            clock=shared.clock,
        )
        return self._optimization

    def _counted(self, work: Callable[[Optimization], object]) -> None:
        """Do something for the problem, unless that has failed before."""
        if self.error:
            return
        began_at = time.monotonic()
        try:
            work(self._begun())
        except ProblemError as error:
            self.error = str(error)
        self.seconds += time.monotonic() - began_at
