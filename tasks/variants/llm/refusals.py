"""Why an endpoint gave no answer, sorted by what matters: may it cost money, and can asking again help.

A status that is an error is taken to be free, as price lists of endpoints say. Where a connection broke, time ran out
or a response made no sense after a question was sent, an answer may have been written and charged: that is in doubt.
"""

import email.utils
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from tasks.errors import ProviderError

MAX_RETRY_AFTER_S = 600.0
# Something between us and the model gave up waiting; the model may have gone on.
GATEWAY_TIMEOUTS = (504, 524)
TOO_MANY = 429
BUSY = (408, 409, 425, TOO_MANY)
CLOSED = (401, 402, 403, 404, 405)
NO_MONEY = "insufficient_quota"


class Again(StrEnum):
    """When a question that was refused may be asked again."""

    SOON = "soon"
    SLOWER = "slower"
    """There are too many questions for the moment: no reason to lose patience while others are answered."""
    NOT_THIS = "not this"
    """The endpoint will say the same to this prompt."""
    NOT_HERE = "not here"
    """It will say the same to every question until somebody mends a setting, a key or a bill."""


class RefusedError(ProviderError):
    """No answer, and nothing to pay."""

    def __init__(self, message: str, *, again: Again, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after_s = retry_after_s
        """What the endpoint asked for, if it did."""


class LostError(ProviderError):
    """No answer, though one may have been written and charged."""


def status_error(status: int, *, said: str, code: str | None, headers: Mapping[str, str]) -> ProviderError:
    """What a response with an error status means.

    Args:
        said: the beginning of its body.
        code: the endpoint's own name of the error, if it gave one.
        headers: with names in lower case.
    """
    message = f"status {status}: {said}"
    if status in GATEWAY_TIMEOUTS:
        return LostError(message)
    if status in CLOSED or status < 400 or code == NO_MONEY:
        return RefusedError(f"{message}; see base_url, model and the key", again=Again.NOT_HERE)
    if status < 500 and status not in BUSY:
        return RefusedError(message, again=Again.NOT_THIS)
    wait_s = retry_after_s(headers)
    if wait_s is not None and wait_s > MAX_RETRY_AFTER_S:
        return RefusedError(f"{message}; it asks to come back in {wait_s:.0f} s", again=Again.NOT_HERE)
    return RefusedError(message, again=Again.SLOWER if status == TOO_MANY else Again.SOON, retry_after_s=wait_s)


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds to wait by Retry-After, which is a number or a date, or by the retry-after-ms of some endpoints."""
    milliseconds, said = headers.get("retry-after-ms"), headers.get("retry-after")
    wait_s = _number(milliseconds) if milliseconds is not None else None
    if wait_s is not None:
        return wait_s / 1000
    if said is None:
        return None
    wait_s = _number(said)
    if wait_s is not None:
        return wait_s
    try:
        moment = email.utils.parsedate_to_datetime(said)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else max(value, 0.0)
