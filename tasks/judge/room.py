"""Judgements side by side, or one alone for which that was too crowded or too noisy."""

import contextlib
import threading
from collections.abc import Callable, Iterator

HadCompany = Callable[[], bool]
"""Tells whoever is inside whether anybody else has been there since they came in."""


class Room:
    """Lets many in, or one that must not be beside the others. Thread safe.

    Whoever waits to be alone is not overtaken by those who come later, and waits as long as the judgements under way
    take, which have limits of their own.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_inside = 0
        self._num_entered = 0
        self._num_alone_or_waiting = 0

    @contextlib.contextmanager
    def shared(self) -> Iterator[HadCompany]:
        """Be inside beside others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._num_alone_or_waiting)
            self._num_inside += 1
            self._num_entered += 1
            number, came_to_others = self._num_entered, self._num_inside > 1
        try:
            yield lambda: came_to_others or self._num_entered > number
        finally:
            self._leave(was_alone=False)

    @contextlib.contextmanager
    def alone(self) -> Iterator[HadCompany]:
        """Be inside with nobody else, once all have left."""
        with self._changed:
            self._num_alone_or_waiting += 1
            try:
                self._changed.wait_for(lambda: not self._num_inside)
                self._num_inside += 1
            except BaseException:
                self._num_alone_or_waiting -= 1
                self._changed.notify_all()
                raise
        try:
            yield lambda: False
        finally:
            self._leave(was_alone=True)

    def _leave(self, *, was_alone: bool) -> None:
        with self._changed:
            self._num_inside -= 1
            self._num_alone_or_waiting -= was_alone
            self._changed.notify_all()
