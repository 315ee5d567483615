"""What counts as an answer, and what a refusal means."""

import json
from datetime import UTC, datetime

import pytest

from tasks.variants.llm.answers import Answer, AnswerError, read_answer
from tasks.variants.llm.refusals import Again, LostError, RefusedError, retry_after_s, status_error

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def body(message: object, **changes: object) -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    whole = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    return json.dumps(whole | changes).encode()


def test_an_answer_is_kept_word_for_word_with_its_usage():
    assert read_answer(body({"content": " x\n\u00e9 "})) == Answer(
        content=" x\n\u00e9 ", finish_reason="stop", prompt_tokens=3, answer_tokens=5, served_model="m"
    )


@pytest.mark.parametrize(
    ("message", "content"),
    [
        pytest.param({"content": None}, "", id="null"),
        pytest.param({"refusal": "no"}, "", id="a refusal"),
        pytest.param({"content": [{"type": "text", "text": "a"}, {"type": "image"}]}, "a", id="parts"),
        pytest.param({"content": "a\ud800"}, "a?", id="a lone surrogate"),
    ],
)
def test_unusual_contents_are_read(message, content):
    assert read_answer(body(message)).content == content


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(None, id="none"),
        pytest.param({}, id="empty"),
        pytest.param({"prompt_tokens": -1, "completion_tokens": -1}, id="negative"),
        pytest.param({"prompt_tokens": 1e3, "completion_tokens": True}, id="of other types"),
        pytest.param({"prompt_tokens": 1 << 60, "completion_tokens": "7"}, id="absurd"),
    ],
)
def test_usage_that_makes_no_sense_is_not_known(usage):
    answer = read_answer(body({"content": "x"}, usage=usage))
    assert (answer.prompt_tokens, answer.answer_tokens) == (None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\x00", id="bytes"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"[" * 100_000, id="nesting"),
        pytest.param(b"9" * 100_000, id="a long number"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"choices": []}', id="no choice"),
        pytest.param(b'{"choices": {"0": {}}}', id="choices of another type"),
        pytest.param(b'{"choices": [{"text": "x"}]}', id="a completion that is no chat"),
        pytest.param(body("x"), id="a message of another type"),
        pytest.param(body({"content": {"text": "x"}}), id="content of another type"),
        pytest.param(body({"content": ["x"]}), id="parts of another type"),
        pytest.param(body({"content": "x"}, usage=7), id="usage of another type"),
    ],
)
def test_anything_else_is_no_answer(wrong):
    with pytest.raises(AnswerError, match="not a chat completion"):
        read_answer(wrong)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="a fraction"),
        pytest.param({"retry-after": "-3"}, 0.0, id="negative"),
        pytest.param({"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, 60.0, id="a date"),
        pytest.param({"retry-after": "Fri, 02 Jan 2026 04:04:15 +0100"}, 10.0, id="a date of another zone"),
        pytest.param({"retry-after": "Fri, 02 Jan 2026 03:04:06 -0000"}, 1.0, id="a date without a zone"),
        pytest.param({"retry-after": "Thu, 01 Jan 2026 03:04:05 GMT"}, 0.0, id="a date that has passed"),
        pytest.param({"retry-after": "soon"}, None, id="a word"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": "Fri, 99 Jan 2026 03:04:05 GMT"}, None, id="a day that is none"),
        pytest.param({"retry-after-ms": "250", "retry-after": "1"}, 0.25, id="milliseconds"),
        pytest.param({"retry-after-ms": "x", "retry-after": "1"}, 1.0, id="milliseconds that are none"),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers, seconds):
    assert retry_after_s(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, Again.NOT_HERE) for status in (301, 307, 401, 402, 403, 404)),
        *((status, Again.NOT_THIS) for status in (400, 413, 422)),
        *((status, Again.SOON) for status in (408, 409, 500, 502, 503, 529)),
        (429, Again.SLOWER),
    ],
)
def test_a_status_says_when_to_ask_again(status, again):
    error = status_error(status, said="no", code=None, headers={})
    assert isinstance(error, RefusedError)
    assert error.again is again


def test_where_a_gateway_gave_up_waiting_an_answer_may_have_been_charged():
    assert isinstance(status_error(504, said="", code=None, headers={}), LostError)


def test_no_money_and_no_patience_end_it_for_the_endpoint():
    unpaid = status_error(429, said="", code="insufficient_quota", headers={})
    tomorrow = status_error(429, said="", code=None, headers={"retry-after": "86400"})
    assert isinstance(unpaid, RefusedError)
    assert isinstance(tomorrow, RefusedError)
    assert unpaid.again is tomorrow.again is Again.NOT_HERE
