"""What rewrites have brought to the problems searched so far, for those that are searched beside them or next."""

import math
import threading
from collections import defaultdict

LEAST = 0.5
"""What a rewrite that was refused or slowed a text down counts as at least: it may fit the next problem."""


class Experience:
    """Factors on the speed of the text that a rewrite was applied to. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: defaultdict[str, list[float]] = defaultdict(list)

    def note(self, rewrite: str, factor: float) -> None:
        with self._lock:
            self._logs[rewrite].append(math.log(max(factor, LEAST)))

    def expected(self, rewrite: str, *, prior: float) -> float:
        """The geometric mean of what it brought, with the prior as one more of those.

        >>> experience = Experience()
        >>> experience.note("reduction_in_c", 4.0)
        >>> experience.expected("reduction_in_c", prior=1.0), experience.expected("call_mm", prior=1.1)
        (2.0, 1.1)
        """
        with self._lock:
            logs = [math.log(prior), *self._logs.get(rewrite, ())]
        return math.exp(math.fsum(logs) / len(logs)) if len(logs) > 1 else prior
