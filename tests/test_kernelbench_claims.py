"""Claims that cannot be speedups are named and left out; the kernels that they come with are judged all the same."""

import json
from pathlib import Path

import pytest
from kernelbench_builders import released, right, write_lines, wrong

from flows.cli import main

IMPOSSIBLE = {
    "negative": (-5, "is -5, which cannot be a speedup"),
    "zero": (0, "is 0, which"),
    "beyond all machines": (1e300, "is 1e+300, which"),
    "beyond all floats": (10**400, "is 1000"),
    "not a number": (float("nan"), "is nan, which"),
    "infinite": (float("inf"), "is inf, which"),
    "text": ("fast", "is 'fast', which"),
    "a number as text": ("NaN", "is 'NaN', which"),
    "a truth": (True, "is True, which"),
    "a list": ([2.0], "is [2.0], which"),
}
MISSING_OR_LARGE = {"missing": None, "none as text": "None", "large": 1e6, "whole": 1}


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Calls the command with files of one kernel each, judging nothing unless told so; returns what it says."""
    write_lines(tmp_path / "problems.json", released(2, code=None))
    monkeypatch.chdir(tmp_path)

    def call(*more, **rows):
        paths = [str(write_lines(Path(f"{name}.jsonl"), row)) for name, row in rows.items()]
        given = ["kernelbench", "problems.json", "--candidates", *paths, "--baselines", "--out", "out"]
        assert main([*given, *more]) == 0
        return capsys.readouterr().err

    return call


def claiming(claims):
    """A line for each of the claims."""
    return {
        name: {"problem_id": "level1/2", "source": right(2), "claimed_speedup": claim} for name, claim in claims.items()
    }


def test_a_claim_that_cannot_be_a_speedup_is_named(said):
    """One call for all, since a judge takes seconds to open."""
    found = said("--stop-after-s", "0.001", **claiming({name: claim for name, (claim, _) in IMPOSSIBLE.items()}))
    for name, (_, words) in IMPOSSIBLE.items():
        assert f"{name}.jsonl: 1 candidates (1 of imported); 0 line(s) give none" in found
        assert f"{name}.jsonl, line 1: claimed_speedup {words}" in found


def test_a_claim_that_is_missing_or_large_is_no_mistake(said):
    found = said("--stop-after-s", "0.001", **claiming(MISSING_OR_LARGE))
    for name in MISSING_OR_LARGE:
        assert f"{name}.jsonl: 1 candidates (1 of imported); 0 line(s) give none" in found
    assert "cannot be a speedup" not in found


def test_a_kernel_is_judged_without_the_claim_that_is_left_out(said, tmp_path):
    row = released(2, code=wrong(2), eager=1e300, compile=3.0)
    found = said(mine=row)
    assert "mine.jsonl, line 1: score_default is 1e+300" in found
    (verdict,) = map(json.loads, (tmp_path / "out/verdicts.jsonl").read_text().splitlines())
    assert verdict["status"] == "wrong_output"
    assert "00000000" not in (tmp_path / "out/report.md").read_text()


def test_a_claim_over_another_baseline_alone_is_told_of_where_code_is_missing(said):
    row = released(2, code=None, eager="None", compile=3.0)
    assert "there is no code for level1/2, though a speedup of 3 is claimed" in said(
        "--stop-after-s", "0.001", mine=row
    )
