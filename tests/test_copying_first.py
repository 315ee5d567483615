"""Stage sft teaches copying first where it is asked to, and self_supervised sees that it is not forgotten."""

import csv
import json
from pathlib import Path

import pytest

from flows.engine import run_stage
from flows.self_supervised import self_supervised
from flows.sft import sft
from tasks.training import sft as training
from tests.stage_runs import CLOSED, workspace, write_rows, write_taught


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """A project to run stages in; of each of their trainings, what it is given first and then."""
    settings = {
        "sft__copying_steps": 3,
        "sft__steps": 2,
        "sft__invented_share": 0.5,
        "policy__completion_tokens": 384,  # enough for made-up programs in the tokens of one problem
        "self_supervised__iterations": 1,
        "self_supervised__samples_per_problem": 1,
        "self_supervised__steps": 2,
    }
    root = workspace(tmp_path, **settings)
    write_taught(root)
    write_rows(root / "data/filter_variants/verdicts.jsonl", [])
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    given = []
    train = training.train_sft

    def watched(policy, examples, **named):
        given.append((list(named.get("first", ())), list(examples)))
        return train(policy, examples, **named)

    monkeypatch.setattr(training, "train_sft", watched)
    return given


def num_copies(examples) -> int:
    """How many ask for nothing but the reference again."""
    return sum(
        "class ModelNew" not in example.prompt
        and example.completion.partition("class ModelNew")[2] in example.prompt.partition("class Model")[2]
        for example in examples
    )


def test_copying_comes_before_the_candidates_and_is_replayed_with_them(lessons, capsys):
    run_stage("sft", sft)
    ((first, then),) = lessons
    assert (len(first), len(then)) == (3 * 4, 2 * 4)
    assert (num_copies(first), num_copies(then)) == (3 * 4, 4)
    assert not {example.completion for example in first} & {example.completion for example in then}
    with Path("data/sft/curve.csv").open() as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [1, 2, 3, 4, 5]
    assert "5/5" in capsys.readouterr().err
    assert json.loads(Path("data/sft/metrics.json").read_text())["examples"] == 5 * 4

    run_stage("self_supervised", self_supervised)
    _, (first, then) = lessons
    assert not first
    assert num_copies(then) == 4  # nothing succeeded, so that all is replayed
