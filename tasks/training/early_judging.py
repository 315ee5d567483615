"""A judge that works in a thread, so that candidates can be handed over while others are still being written."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from tasks.errors import MachineError, TrainingError, WorkerError
from tasks.judge.verdict import Verdict
from tasks.training.rollouts import Judge
from tasks.variants.candidate import Candidate

POLL_S = 0.5


class JudgeLostError(TrainingError):
    """The judge does not answer any more. What else goes wrong around it is raised as what it is."""


class EarlyJudge:
    """Verdicts do not depend on what was handed over early: batches are judged one after another, each text once.

    What the judge raises is raised where its verdicts are asked for; that it is lost, as a JudgeLostError. The thread
    has a second use: who waits for verdicts can be interrupted at once, however long the judge goes on.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="early-judge")
        self._handed_over: dict[str, Future[dict[str, Verdict]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not waiting after an error: whoever closes the judge next ends what is running.
        self._thread.shutdown(wait=error is None, cancel_futures=True)

    def hand_over(self, candidates: Sequence[Candidate]) -> None:
        """Have candidates judged from now on; those that were handed over before are left out."""
        new = {each.candidate_id: each for each in candidates if each.candidate_id not in self._handed_over}
        if new:
            self._handed_over |= dict.fromkeys(new, self._thread.submit(self._verdicts, list(new.values())))

    def judge(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        """The verdicts of distinct candidates, in their order; what is handed over next is another batch."""
        self.hand_over(candidates)
        handed_over, self._handed_over = self._handed_over, {}
        # Waking up now and then, since a signal that another thread has caught is handled by the main one awake.
        while wait(handed_over.values(), timeout=POLL_S).not_done:
            pass
        try:
            return [handed_over[each.candidate_id].result()[each.candidate_id] for each in candidates]
        except (WorkerError, MachineError) as error:
            raise JudgeLostError(str(error)) from error

    def _verdicts(self, candidates: Sequence[Candidate]) -> dict[str, Verdict]:
        verdicts = self._judge(candidates)
        return {each.candidate_id: found for each, found in zip(candidates, verdicts, strict=True)}
