"""Judgements side by side, or one alone for which that was too crowded or too noisy."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

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


class MeasuredAlone:
    """A stay beside others while something is built, and with nobody else while it is measured. To be entered.

    Nothing is built while somebody is alone, and nobody waits for the minutes that a compiler takes.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._inside = contextlib.ExitStack()
        self._is_alone = False
        self.had_company: HadCompany = lambda: False

    def __enter__(self) -> Self:
        self.had_company = self._inside.enter_context(self._room.shared())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.close()

    def take(self) -> None:
        """Wait until all others have left; nothing more where they have."""
        if not self._is_alone:
            self._inside.close()  # or two who want to be alone would wait for each other
            self.had_company = self._inside.enter_context(self._room.alone())
            self._is_alone = True

    def leave(self) -> None:
        """Let others in again."""
        if self._is_alone:
            self._is_alone = False
            self._inside.close()
            self.had_company = self._inside.enter_context(self._room.shared())
