"""An endpoint's response read as an answer, strictly: whatever is not one is refused with a reason."""

import json
from dataclasses import dataclass
from typing import Any

MAX_COUNT = 1 << 40
"""A number of tokens above this is nonsense, not usage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a model wrote, word for word, and what the endpoint says it took."""

    content: str
    """Empty when the model refused or wrote nothing. A lone surrogate, which no file takes, is replaced."""
    finish_reason: str
    """"stop", "length" where it was cut off by its limit, or whatever else the endpoint says; may be empty."""
    prompt_tokens: int | None
    answer_tokens: int | None
    """None, like prompt_tokens, where the endpoint does not say."""
    served_model: str
    """Which model the endpoint says has answered; may be empty."""


class AnswerError(ValueError):
    """The body is not a chat completion."""


def read_answer(body: bytes) -> Answer:
    """The first choice of a chat completion.

    Raises:
        AnswerError: if the body is anything else.
    """
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        usage = completion.get("usage") or {}
        return Answer(
            content=_text(choice["message"].get("content")),
            finish_reason=_text(choice.get("finish_reason")),
            prompt_tokens=_count(usage.get("prompt_tokens")),
            answer_tokens=_count(usage.get("completion_tokens")),
            served_model=_text(completion.get("model")),
        )
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        raise AnswerError(f"not a chat completion: {body[:200].decode(errors='replace')!r}") from None


def _text(value: Any) -> str:
    """The text of a message: a string, nothing, or the text parts of a list.

    Raises:
        TypeError: if it is anything else.
    """
    if value is None:
        return ""
    if isinstance(value, list):
        value = "".join(part["text"] for part in value if part.get("type") == "text")
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value.encode("utf-8", "replace").decode()


def _count(value: Any) -> int | None:
    """A number of tokens, or None where it is missing or none."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None
