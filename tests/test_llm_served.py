"""The whole stage against a real server: `transformers serve` with a small random model, whose answers are garbage."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from flows.workspace import make_workspace
from tasks.params import load_params
from tasks.problems.catalogue import load_problems
from tests.training_builders import policy_params

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
TRIALS, ANSWER_TOKENS = 2, 48
START_S = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a model of random weights and the project's own tokenizer."""
    from tasks.training.policy import new_policy, save_policy

    references = [problem.source for problem in load_problems(load_params().problems).values()]
    params = policy_params(prompt_style="instruct", context_tokens=8192)
    folder = tmp_path_factory.mktemp("served") / "model"
    save_policy(new_policy(references, params, seed=0), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def url(model):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = model.parent / "server.log"
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(model), "--device", "cpu"]
    with log.open("wb") as said:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            stdout=said,
            stderr=said,
        )
    try:
        wait_for(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def wait_for(server: subprocess.Popen, url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"transformers serve does not start: {log.read_text()[-500:]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"no {url} within {START_S} s: {log.read_text()[-500:]}")


def test_answers_of_a_real_server_are_bought_read_and_judged(url, model, tmp_path):
    generator = {
        "base_url": url,
        "model": str(model),
        "key_variable": None,
        "prompt_usd_per_million": 0.0,
        "answer_usd_per_million": 0.0,
        "answer_tokens": ANSWER_TOKENS,
        "concurrency": 1,
    }
    changes = {"providers": ["tiny"], "generators": {"tiny": generator}, "trials": TRIALS}
    workspace = make_workspace(
        tmp_path / "project",
        changes={f"generate_variants.{name}": value for name, value in changes.items()} | {"problems.limit": 3},
    )
    stage = subprocess.run(
        [sys.executable, "-m", "flows.generate_variants"],
        cwd=workspace,
        env={name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert stage.returncode == 0, stage.stderr
    output = workspace / "data" / "generate_variants"
    answers = [json.loads(line) for line in (output / "answers.jsonl").read_text().splitlines()]
    assert {row["outcome"] for row in answers} == {"answered"}
    assert {row["trial"] for row in answers} == set(range(TRIALS))
    for row in answers:
        assert row["prompt_tokens"] > 100
        assert 0 < row["answer_tokens"] <= ANSWER_TOKENS
        assert row["form"] != "program"  # random weights write none
        assert row["status"] not in (None, "correct")
    tokens = sum(row["prompt_tokens"] + row["answer_tokens"] for row in answers)
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["project_tokens"] == metrics["tiny/tokens"] == tokens
    assert metrics["project_usd"] == 0.0
