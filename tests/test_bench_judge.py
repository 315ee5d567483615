"""Throughput is compared on all candidates, also where one ends the evaluator that believes it."""

import json
from pathlib import Path

import pytest

from flows.benches import plain_evaluator
from flows.benches.judge import plain, rewritten
from tasks.errors import MachineError
from tasks.params import JudgeParams, load_params
from tasks.variants.candidate import Candidate
from tests.training_builders import SCALED, SCALED_IN_PLACE, problem

CRASHES = """import os
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        os.kill(os.getpid(), 11)
"""
WRONG = SCALED_IN_PLACE.replace("mul_(2.0)", "mul_(3.0)")


def pairs(*sources: str):
    of = problem(source=SCALED)
    return [(of, Candidate(problem_id=of.problem_id, source=source, origin="test")) for source in sources]


def test_a_candidate_that_crashes_the_plain_loop_leaves_the_others_to_it():
    measured = plain(pairs(SCALED_IN_PLACE, CRASHES, WRONG, SCALED_IN_PLACE), JudgeParams(workers=1))
    assert measured.words == "2 right, 1 crashed the evaluator, whose new start is not counted"
    assert measured.num_candidates == 4
    assert 0 < measured.seconds < 60


def test_an_evaluator_that_does_not_start_is_an_error_and_no_crash(tmp_path: Path):
    with pytest.raises(MachineError, match="the evaluator ended with 1"):
        plain(pairs(SCALED_IN_PLACE), JudgeParams(workers=1), kernelbench=tmp_path)


def test_candidates_for_a_device_are_written_for_that_device():
    params = load_params(Path("params.yaml"))
    on_host, on_device = (rewritten(params, 118, device) for device in ("cpu", "cuda:0"))
    assert any("ctypes" in candidate.source for _, candidate in on_host)
    assert not any("ctypes" in candidate.source for _, candidate in on_device)
    assert len(on_device) == len(on_host) == 118


def test_a_line_tells_of_each_case(tmp_path: Path, monkeypatch, capsys):
    cases = tmp_path / "cases.jsonl"
    rows = [{"reference": SCALED, "candidate": source} for source in (SCALED_IN_PLACE, WRONG, "import nothing_here")]
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr("sys.argv", ["plain_evaluator", str(cases), "--first", "1"])
    plain_evaluator.main()
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["is_right"] for answer in answers] == [False, False]
    assert all(answer["seconds"] >= 0 for answer in answers)
