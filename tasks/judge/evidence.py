"""What a judgement has found so far, and the end that it comes to when that is enough."""

from dataclasses import dataclass, field
from typing import NoReturn

from tasks.judge.verdict import Check, Status, Timing, Track
from tasks.judge.wire import readable


class RefusedError(Exception):
    """The judgement ends here, with this status."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = readable(detail)


@dataclass(kw_only=True, slots=True)
class Evidence:
    """What has been found so far; becomes part of the verdict however the judgement ends."""

    checks: list[Check] = field(default_factory=list)
    max_error: float | None = None
    timing: Timing | None = None
    track: Track | None = None

    def clear(self) -> None:
        """Forget what an attempt has found that does not count."""
        self.checks.clear()
        self.max_error = self.timing = self.track = None

    def passed(self, name: str, words: str = "") -> None:
        self.checks.append(Check(name=name, passed=True, evidence=words))

    def require(self, check: Check, status: Status) -> None:
        """Note a check; the judgement ends here, with this status, unless it has passed."""
        if not check.passed:
            self.refuse(check.name, status, check.evidence)
        self.checks.append(check)

    def refuse(self, name: str, status: Status, words: str) -> NoReturn:
        self.checks.append(Check(name=name, passed=False, evidence=words))
        raise RefusedError(status, words)
