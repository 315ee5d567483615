"""Claims that cannot be speedups are named and left out; the kernels that they come with are judged all the same."""

import json

import pytest
from kernelbench_builders import released, right, write_lines, wrong

from flows.cli import main


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Calls the command with a file of one kernel, judging nothing unless told so; returns what it says."""
    write_lines(tmp_path / "problems.json", released(2, code=None))
    monkeypatch.chdir(tmp_path)

    def call(row, *more):
        write_lines(tmp_path / "mine.jsonl", row)
        given = ["kernelbench", "problems.json", "--candidates", "mine.jsonl", "--baselines", "--out", "out"]
        assert main([*given, *more]) == 0
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        pytest.param(-5, "is -5, which cannot be a speedup", id="negative"),
        pytest.param(0, "is 0, which", id="zero"),
        pytest.param(1e300, "is 1e+300, which", id="beyond all machines"),
        pytest.param(10**400, "is 1000", id="beyond all floats"),
        pytest.param(float("nan"), "is nan, which", id="not a number"),
        pytest.param(float("inf"), "is inf, which", id="infinite"),
        pytest.param("fast", "is 'fast', which", id="text"),
        pytest.param("NaN", "is 'NaN', which", id="a number as text"),
        pytest.param(True, "is True, which", id="a truth"),
        pytest.param([2.0], "is [2.0], which", id="a list"),
    ],
)
def test_a_claim_that_cannot_be_a_speedup_is_named(said, claim, words):
    row = {"problem_id": "level1/2", "source": right(2), "claimed_speedup": claim}
    found = said(row, "--stop-after-s", "0.001")
    assert "mine.jsonl: 1 candidates (1 of imported); 0 line(s) give none" in found
    assert f"mine.jsonl, line 1: claimed_speedup {words}" in found


@pytest.mark.parametrize("claim", [None, "None", 1e6, 1], ids=str)
def test_a_claim_that_is_missing_or_large_is_no_mistake(said, claim):
    row = {"problem_id": "level1/2", "source": right(2), "claimed_speedup": claim}
    assert "cannot be a speedup" not in said(row, "--stop-after-s", "0.001")


def test_a_kernel_is_judged_without_the_claim_that_is_left_out(said, tmp_path):
    row = released(2, code=wrong(2), eager=1e300, compile=3.0)
    found = said(row)
    assert "mine.jsonl, line 1: score_default is 1e+300" in found
    (verdict,) = map(json.loads, (tmp_path / "out/verdicts.jsonl").read_text().splitlines())
    assert verdict["status"] == "wrong_output"
    assert "00000000" not in (tmp_path / "out/report.md").read_text()


def test_a_claim_over_another_baseline_alone_is_told_of_where_code_is_missing(said):
    row = released(2, code=None, eager="None", compile=3.0)
    assert "there is no code for level1/2, though a speedup of 3 is claimed" in said(row, "--stop-after-s", "0.001")
