"""Buying answers from a real server that behaves in every wrong way; and the books afterwards."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flows.soaks.provider import compare, hostile_server, soak
from tasks.errors import ParamsError
from tasks.variants.llm.ledger import Outcome
from tests.llm_builders import KEY, KEY_VARIABLE, bought, generator, question, requests_in


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("server") / "server.jsonl"


@pytest.fixture(scope="module")
def url(log):
    with hostile_server(log) as url:
        yield url


def asked(log: Path, model: str) -> list[dict]:
    return [request for request in requests_in(log) if request["request"]["model"] == model]


def test_an_answer_costs_what_the_server_says(url, log, tmp_path):
    params = generator(url, "right")
    (purchase,), _ = bought(tmp_path, params)
    (request,) = asked(log, "right")
    assert purchase.outcome is Outcome.ANSWERED
    assert purchase.answer is not None
    assert purchase.answer.content.startswith("Here it is.\n```python\n")
    assert purchase.answer.served_model == "right-served"
    assert purchase.cost.tokens == request["tokens"]
    prompt_tokens = len("Make it faster.") // 4 + 1
    assert purchase.cost.usd == pytest.approx((prompt_tokens + 4 * (request["tokens"] - prompt_tokens)) / 1e6)


def test_the_question_is_sent_as_the_params_say(url, log, tmp_path):
    params = generator(url, "empty", limit_name="max_completion_tokens", temperature=None)
    bought(tmp_path, params)
    (request,) = asked(log, "empty")
    assert request["path"] == "/v1/chat/completions"
    assert request["request"] == {
        "model": "empty",
        "messages": [{"role": "user", "content": "Make it faster."}],
        "max_completion_tokens": 100,
    }


def test_what_was_bought_is_not_bought_again(url, log, tmp_path):
    params = generator(url, "same")
    first, _ = bought(tmp_path, params, 3)
    again, _ = bought(tmp_path, params, 4)
    assert again[:3] == first
    assert len(asked(log, "same")) == 4


@pytest.mark.parametrize(
    ("model", "changes", "outcome", "said"),
    [
        pytest.param("wrong type", {}, Outcome.ANSWERED, "", id="an answer that says it is a picture"),
        pytest.param("twice", {}, Outcome.ANSWERED, "", id="an answer sent twice"),
        pytest.param("cut", {}, Outcome.LOST, "RemoteProtocolError", id="cut"),
        pytest.param("garbage", {}, Outcome.LOST, "not a chat completion", id="garbage"),
        pytest.param("page", {}, Outcome.LOST, "<html>log in", id="a page"),
        pytest.param("endless", {}, Outcome.LOST, "more than 8388608 bytes", id="endless"),
        pytest.param("closed", {}, Outcome.LOST, "disconnected", id="closed"),
        pytest.param("packed", {}, Outcome.LOST, "packed", id="packed"),
        pytest.param("slow", {"answer_timeout_s": 0.3}, Outcome.LOST, "answer_timeout_s", id="slow"),
        pytest.param("trickles", {"answer_timeout_s": 0.5}, Outcome.LOST, "answer_timeout_s", id="never whole"),
        pytest.param("status-504", {}, Outcome.LOST, "status 504", id="a gateway's time-out"),
        pytest.param("broken", {}, Outcome.REFUSED, "out of luck", id="500"),
        pytest.param("overloaded page", {}, Outcome.REFUSED, "busy", id="503"),
        pytest.param("busy until", {}, Outcome.REFUSED, "status 429", id="429"),
        pytest.param("status-400", {}, Outcome.REFUSED, "status 400", id="400"),
        pytest.param("elsewhere", {}, Outcome.REFUSED, "status 307", id="a redirect"),
    ],
)
def test_every_fault_is_accounted_for(url, tmp_path, model, changes, outcome, said):
    params = generator(url, model, **changes)
    (purchase,), _ = bought(tmp_path, params)
    assert purchase.outcome is outcome
    assert said in purchase.detail
    most = question(params).most_prompt_tokens + params.answer_tokens
    if outcome is Outcome.LOST:
        assert purchase.cost.tokens == most
    else:
        assert (purchase.cost.tokens > 0) == (outcome is Outcome.ANSWERED)


@pytest.mark.parametrize(
    ("model", "requests"),
    [("status-502", 3), ("status-409", 3), ("status-422", 1), ("status-401", 1), ("quota", 1), ("tomorrow", 1)],
)
def test_only_what_may_pass_is_asked_again(url, log, tmp_path, model, requests):
    (purchase,), _ = bought(tmp_path, generator(url, model))
    assert purchase.outcome is Outcome.REFUSED
    assert len(asked(log, model)) == requests


def test_a_lost_question_is_not_asked_again_by_the_next_run(url, log, tmp_path):
    params = generator(url, "cut", answer_tokens=77)
    bought(tmp_path, params)
    before = len(asked(log, "cut"))
    (purchase,), _ = bought(tmp_path, params)
    assert purchase.outcome is Outcome.LOST
    assert len(asked(log, "cut")) == before


def test_a_busy_endpoint_is_left_alone_until_it_says_and_then_answers_all(url, log, tmp_path):
    purchases, _ = bought(tmp_path, generator(url, "first busy", concurrency=3), 3)
    assert {purchase.outcome for purchase in purchases} == {Outcome.ANSWERED}
    assert len(asked(log, "first busy")) == 6


@pytest.mark.parametrize("usage", ["no usage", "nonsense usage"])
def test_an_answer_without_usage_counts_as_the_most_it_can_have_cost(url, tmp_path, usage):
    params = generator(url, usage)
    (purchase,), _ = bought(tmp_path, params)
    assert purchase.outcome is Outcome.ANSWERED
    assert purchase.cost.tokens == question(params).most_prompt_tokens + params.answer_tokens


def test_an_endpoint_that_is_not_there_is_refused_with_a_remedy(tmp_path):
    (purchase,), _ = bought(tmp_path, generator("http://127.0.0.1:9/v1"))
    assert purchase.outcome is Outcome.REFUSED
    assert "is http://127.0.0.1:9/v1 right?" in purchase.detail


def test_an_endpoint_that_only_fails_is_given_up_and_asked_nothing_more(url, log, tmp_path):
    params = generator(url, "garbage", concurrency=2, answer_tokens=78)
    purchases, buyer = bought(tmp_path, params, 40)
    unasked = [purchase for purchase in purchases if purchase.outcome is Outcome.UNASKED]
    assert len(unasked) == 40 - len(requests_of(log, purchases))
    assert len(unasked) >= 28
    assert "in a row" in buyer.gave_up


def requests_of(log: Path, purchases: list) -> list[dict]:
    ids = {purchase.request_id for purchase in purchases}
    return [request for request in requests_in(log) if request["request_id"] in ids]


def test_a_wrong_key_ends_it_at_once(url, tmp_path):
    purchases, buyer = bought(tmp_path, generator(url, "status-403", concurrency=1), 5)
    assert [purchase.outcome for purchase in purchases] == [Outcome.REFUSED, *[Outcome.UNASKED] * 4]
    assert all(purchase.is_final for purchase in purchases)
    assert "status 403" in buyer.gave_up


@pytest.mark.parametrize("cap", [{"max_tokens": 2000}, {"max_usd": 0.005}], ids=["tokens", "money"])
def test_a_cap_is_never_exceeded_however_many_ask_at_once(url, log, tmp_path, cap):
    params = generator(url, "right", concurrency=8)
    purchases, _ = bought(tmp_path, params, 60, **cap)
    tokens = sum(purchase.cost.tokens for purchase in purchases)
    usd = sum(purchase.cost.usd for purchase in purchases)
    assert tokens <= cap.get("max_tokens", tokens)
    assert usd <= cap.get("max_usd", usd)
    unasked = [purchase for purchase in purchases if purchase.outcome is Outcome.UNASKED]
    assert unasked
    assert "raise max_usd" in unasked[0].detail
    # Room is used up: the next question may have taken more than there is left.
    most_tokens = question(params).most_prompt_tokens + params.answer_tokens
    assert tokens + most_tokens > cap.get("max_tokens", 0)
    again, _ = bought(tmp_path, params, 60, **cap)
    assert [purchase.outcome for purchase in again] == [purchase.outcome for purchase in purchases]


def test_the_key_is_sent_and_kept_nowhere(url, log, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, f" {KEY}\n")
    params = generator(url, "tells key", key_variable=KEY_VARIABLE)
    (answered,), _ = bought(tmp_path, params)
    (refused,), _ = bought(tmp_path, replace(params, model="status-500"))
    assert asked(log, "tells key")[0]["key"] == f"Bearer {KEY}"
    assert "[key]" in str(answered)
    assert "[key]" in refused.detail
    assert KEY not in f"{answered}{refused}"
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_an_endpoint_without_a_key_is_not_sent_anothers(url, log, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    bought(tmp_path, generator(url, "chatty"))
    assert KEY not in str(asked(log, "chatty"))


@pytest.mark.parametrize("value", [None, "", "two words", "sch\u00f6n"])
def test_a_missing_key_is_told_by_its_variable_and_never_by_its_value(url, tmp_path, monkeypatch, value):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(KEY_VARIABLE, value)
    with pytest.raises(ParamsError, match=KEY_VARIABLE) as error:
        bought(tmp_path, generator(url, key_variable=KEY_VARIABLE))
    assert not value or value not in str(error.value)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_every_answer_of_a_hostile_server_is_accounted_for_though_the_buyer_is_killed(tmp_path):
    books = soak(tmp_path, calls=200, kills=1)
    assert books.mistakes == []
    assert books.kills == 1
    assert len(books.ways) == 13
    assert books.outcomes["answered"] > books.outcomes["lost"] > 0
    forge(tmp_path)
    found = "\n".join(compare(tmp_path, calls=200, kills=1, seconds=0.0).mistakes)
    assert all(words in found for words in ("199 in the ledger", "not in the ledger", "is answered with", "2 times"))


def forge(folder: Path) -> None:
    """Mistakes that the comparison must find: a missing row, a wrong sum and a second purchase."""
    with closing(sqlite3.connect(folder / "purchases.sqlite")) as connection, connection:
        rows = connection.execute("SELECT request_id FROM purchases WHERE outcome = 'answered' LIMIT 3").fetchall()
        missing, wrong, twice = (request_id for (request_id,) in rows)
        connection.execute("DELETE FROM purchases WHERE request_id = ?", [missing])
        connection.execute("UPDATE purchases SET tokens = tokens + 1 WHERE request_id = ?", [wrong])
    log = folder / "server.jsonl"
    (line,) = [each for each in log.read_text().splitlines() if twice in each and '"tokens": 0' not in each]
    log.write_text(f"{log.read_text()}{line}\n")
