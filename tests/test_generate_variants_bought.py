"""The stage generate_variants with language models: killed, then with an endpoint that knows no key, then finished."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from flows.soaks.provider import hostile_server
from flows.workspace import make_workspace
from tasks.history.store import History
from tests.llm_builders import KEY, KEY_VARIABLE, requests_in

SUCCESSES, TRIALS = 2, 4
QUICK = {"trials": 2, "rounds": 5, "workers": 2, "settled_error": 0.12}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def params(url: str) -> dict:
    """Changes to params.yaml: few problems, and one generator for each way of answering."""
    models = {"half": "wrong half", "teller": "tells key", "chatty": "chatty", "locked": "locked"}
    generators = {
        name: {
            "base_url": url,
            "model": model,
            "key_variable": KEY_VARIABLE,
            "prompt_usd_per_million": 1.0,
            "answer_usd_per_million": 2.0,
            "answer_tokens": 500,
            "backoff_s": 0.01,
        }
        for name, model in models.items()
    }
    changes = {"providers": ["builtin", *models], "generators": generators, "max_per_problem": 2, "max_usd": 1.0}
    changes |= {"trials": TRIALS, "successes": SUCCESSES}
    judge = {f"judge.{name}": value for name, value in QUICK.items()}
    return judge | {f"generate_variants.{name}": value for name, value in changes.items()} | {"problems.limit": 3}


def start(workspace: Path) -> subprocess.Popen:
    environment = os.environ | {KEY_VARIABLE: KEY, "MLFLOW_TRACKING_URI": f"sqlite:///{workspace}/mlflow.db"}
    environment.pop("PREFECT_API_URL", None)
    return subprocess.Popen(
        [sys.executable, "-m", "flows.generate_variants"],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    log = tmp_path_factory.mktemp("server") / "server.jsonl"
    log.touch()
    return log


@pytest.fixture(scope="module")
def story(log, tmp_path_factory):
    """A workspace after three runs: killed amid buying, failed for a locked endpoint, and finished when that opened."""
    workspace = tmp_path_factory.mktemp("bought") / "project"
    with hostile_server(log) as url:
        make_workspace(workspace, changes=params(url))
        locked = Path(f"{log}.locked")
        locked.touch()
        killed = start(workspace)
        while killed.poll() is None and len(log.read_text().splitlines()) < 18:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        said = [killed.communicate()[0]]
        failed = start(workspace)
        said.append(failed.communicate()[0])
        num_requests = len(requests_in(log))
        locked.unlink()
        finished = start(workspace)
        said.append(finished.communicate()[0])
    assert finished.returncode == 0, said[-1]
    return workspace, said, [killed.returncode, failed.returncode], num_requests


def rows(workspace: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (workspace / "data" / "generate_variants" / name).read_text().splitlines()]


def test_an_endpoint_that_refuses_everything_fails_the_stage_after_the_others_have_finished(story):
    _, said, returncodes, _ = story
    assert returncodes == [-signal.SIGKILL, 1]
    assert "ProviderError: not every question was answered" in said[1]
    assert "locked: status 401" in said[1]


def test_what_was_bought_before_is_not_bought_again(story, log):
    _, _, _, num_requests = story
    requests = requests_in(log)
    assert {request["request"]["model"] for request in requests[num_requests:]} == {"locked"}
    bought = Counter(request["request_id"] for request in requests if request["tokens"])
    assert set(bought.values()) == {1}


def test_trials_end_with_enough_successes(story):
    workspace, *_ = story
    answers = rows(workspace, "answers.jsonl")
    pairs = {(row["generator"], row["problem_id"]) for row in answers}
    problems = {problem_id for _, problem_id in pairs}
    assert pairs == {(name, problem) for name in ("half", "teller", "chatty", "locked") for problem in problems}
    for pair in pairs:
        trials = [row for row in answers if (row["generator"], row["problem_id"]) == pair]
        correct = [row["status"] in ("correct", "unstable") for row in trials]
        assert [row["trial"] for row in trials] == list(range(len(trials)))
        assert sum(correct) <= SUCCESSES
        assert (sum(correct) == SUCCESSES and correct[-1]) or len(trials) == TRIALS
    assert {row["status"] for row in answers} & {"correct", "unstable"}
    assert {row["form"] for row in answers if row["generator"] == "chatty" and row["form"]} == {"no_program"}


def test_candidates_carry_their_generators_name_and_verdicts_their_judgement(story):
    workspace, *_ = story
    candidates, verdicts = rows(workspace, "candidates.jsonl"), rows(workspace, "verdicts.jsonl")
    assert {row["origin"] for row in candidates} >= {"rewrites", "half", "teller", "locked"}
    assert len({row["candidate_id"] for row in candidates}) == len(candidates)
    answered = {row["candidate_id"]: row["status"] for row in rows(workspace, "answers.jsonl") if row["candidate_id"]}
    assert {row["candidate_id"]: row["status"] for row in verdicts} == answered


def test_the_books_agree_with_the_servers(story, log):
    workspace, *_ = story
    charged = {request["request_id"]: request["tokens"] for request in requests_in(log) if request["tokens"]}
    answers = rows(workspace, "answers.jsonl")
    for row in answers:
        if row["outcome"] == "answered":
            assert row["tokens"] == row["prompt_tokens"] + row["answer_tokens"] == charged[row["request_id"]]
        else:
            assert row["tokens"] >= charged.get(row["request_id"], 0)
    with closing(sqlite3.connect(workspace / "data" / "purchases.sqlite")) as ledger:
        ((tokens, usd),) = ledger.execute("SELECT sum(tokens), sum(usd) FROM purchases")
        known = {request_id for (request_id,) in ledger.execute("SELECT request_id FROM purchases")}
    assert charged.keys() <= known
    metrics = json.loads((workspace / "data" / "generate_variants" / "metrics.json").read_text())
    assert metrics["project_tokens"] == tokens >= sum(row["tokens"] for row in answers)
    assert metrics["project_usd"] == pytest.approx(usd, abs=1e-6)
    assert metrics["half/usd"] == pytest.approx(sum(r["usd"] for r in answers if r["generator"] == "half"), abs=1e-6)


def test_the_history_knows_what_every_candidate_cost_and_every_cost_once(story):
    workspace, *_ = story
    history = History(workspace / "data" / "history.duckdb")
    answers = [row for row in rows(workspace, "answers.jsonl") if row["tokens"]]
    paid = history.query(
        "SELECT candidate_id, prompt_tokens + answer_tokens AS tokens, price_usd FROM costs WHERE price_usd > 0"
    ).rows()
    assert sorted(paid, key=str) == sorted(((r["candidate_id"], r["tokens"], r["usd"]) for r in answers), key=str)
    with closing(sqlite3.connect(workspace / "data" / "purchases.sqlite")) as ledger:
        ((tokens, usd),) = ledger.execute("SELECT sum(tokens), sum(usd) FROM purchases")
    ((found_tokens, found_usd),) = history.query("SELECT tokens, price_usd FROM cost_per_win").rows()
    assert (found_tokens, found_usd) == (tokens, pytest.approx(usd))


def test_every_answer_stands_word_for_word_in_the_history(story):
    workspace, *_ = story
    found = History(workspace / "data" / "history.duckdb").query(
        "SELECT DISTINCT policy, problem_id, step, completion, status FROM stage_samples"
    )
    stored = {(r["policy"], r["problem_id"], r["step"]): (r["completion"], r["status"]) for r in found.to_dicts()}
    for row in rows(workspace, "answers.jsonl"):
        if row["outcome"] == "answered":
            key = row["generator"], row["problem_id"], row["trial"]
            assert stored[key] == (row["content"], row["status"])


def test_the_key_is_in_nothing_that_was_written_or_said(story, log):
    workspace, said, _, _ = story
    assert {request["key"] for request in requests_in(log)} == {f"Bearer {KEY}"}
    told = [row for row in rows(workspace, "answers.jsonl") if row["generator"] == "teller" and row["content"]]
    assert all("[key]" in row["content"] for row in told)
    assert told
    assert KEY not in "".join(said)
    written = [path for path in workspace.rglob("*") if path.is_file()]
    assert {"purchases.sqlite", "history.duckdb", "error.log"} <= {path.name for path in written}
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
