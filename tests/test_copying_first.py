"""Stage sft teaches copying first where it is asked to, as one training."""

import csv
import json
from pathlib import Path

from flows.engine import run_stage
from flows.sft import sft
from tests.stage_runs import CLOSED, workspace, write_taught


def test_copying_comes_before_the_candidates_and_both_are_one_training(tmp_path, monkeypatch, capsys):
    root = workspace(tmp_path, sft__copying_steps=3, sft__steps=2, policy__completion_tokens=384)
    write_taught(root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    run_stage("sft", sft)
    with Path("data/sft/curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [1, 2, 3, 4, 5]
    assert "5/5" in capsys.readouterr().err
    assert json.loads(Path("data/sft/metrics.json").read_text())["examples"] == 5 * 4
