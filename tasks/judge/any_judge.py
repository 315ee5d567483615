"""What callers may ask of a judge, be it of this process or on devices elsewhere."""

from collections.abc import Mapping
from typing import Protocol

from tasks.judge.long import OnProgress
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate


class AnyJudge(Protocol):
    """An open judge of one model of device. Any thread may use it."""

    @property
    def device(self) -> str:
        """The device's model, as verdicts name it."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Versions and walls that verdicts are given with."""

    @property
    def protocol(self) -> str:
        """The version of the way of judging."""

    @property
    def workers(self) -> int:
        """How many candidates it takes at once; whoever comes besides waits. On a device some of them only build."""

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        *,
        seed: int,
        best_speedup: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Verdict:
        """What one candidate is worth; the arguments are those of Judge.judge."""
