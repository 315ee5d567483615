"""The benchmark of optimizations: which problem is next, what becomes of one, and what the page says about all."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.benches import optimize
from flows.benches.optimize_page import render
from flows.benches.optimize_runs import FIRST, HOPEFUL, HOPELESS, Run, Shared
from tasks.judge.verdict import Status
from tasks.params import JudgeParams, load_params
from tasks.problems.catalogue import load_problems
from tasks.search.search import SCREEN
from tests.optimize_builders import GivenJudges, Speeds, by_recipe


def shared(folder: Path, speeds: Speeds, *, minutes: float = 10.0) -> Shared:
    judges = GivenJudges(speeds)
    params = JudgeParams(workers=1)
    return Shared(judges, params, folder=folder, minutes=minutes, num_problems=1)  # type: ignore[arg-type]


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    """Made by the test; closed afterwards."""
    made: list[Run] = []
    yield made
    for run in made:
        run.close()


def begun(name: str, what: Shared, runs: list[Run]) -> Run:
    runs.append(Run(load_problems(load_params().problems)[name], what))
    runs[-1].begin()
    return runs[-1]


def finished(run: Run) -> dict:
    run.make_drop_ins()
    run.decide()
    return run.row()


def test_a_problem_is_screened_in_parts_and_decided_at_the_end(tmp_path: Path, runs: list[Run]) -> None:
    run = begun("level1/matrix_chain", shared(tmp_path, by_recipe(reassociate=4.0, compile=2.0)), runs)
    run.go_on()
    row = finished(run)
    assert row["tried"] > FIRST
    assert row["best_drop_in"] == 4.0
    assert row["compile"] == 2.0
    assert row["recipe"][-1] == "reassociate"
    assert row["baselines_not_judged"] == {}


def test_a_run_that_was_ended_continues_with_its_verdicts(tmp_path: Path, runs: list[Run]) -> None:
    speeds = by_recipe(reassociate=4.0)
    first, second = shared(tmp_path, speeds), shared(tmp_path, speeds)
    rows = [finished(begun("level1/matrix_chain", each, runs)) for each in (first, second)]
    assert second.judges.asked == []  # type: ignore[attr-defined]
    assert rows[0]["candidate_id"] == rows[1]["candidate_id"]


def test_where_the_time_is_over_nothing_more_is_judged(tmp_path: Path, runs: list[Run]) -> None:
    run = begun("level1/matrix_chain", shared(tmp_path, by_recipe(reassociate=4.0), minutes=1e-3), runs)
    row = finished(run)
    assert (row["tried"], row["best_drop_in"], row["faster"]) == (0, None, False)


def test_a_problem_that_cannot_be_judged_says_why(tmp_path: Path, runs: list[Run]) -> None:
    run = begun("level1/matrix_chain", shared(tmp_path, lambda rung, candidate: Status.BAD_PROBLEM), runs)
    assert run.promise == (0.0, 0)
    assert "cannot be judged" in finished(run)["error"]


def test_the_next_turn_is_for_hopes_then_for_the_least_tried_and_none_without_hope(
    tmp_path: Path, runs: list[Run]
) -> None:
    untried = Run(load_problems(load_params().problems)["level1/mish"], shared(tmp_path, by_recipe()))
    kernel_left = begun("level1/softmax_rows", shared(tmp_path / "a", by_recipe(call_amax=1.01)), runs)
    exhausted = begun("level1/interleave_complex", shared(tmp_path / "b", by_recipe(interleave_by_slices=9.0)), runs)
    exhausted.go_on()
    assert untried.promise[0] == 0.0
    assert kernel_left.promise[0] > HOPELESS
    assert kernel_left.promise[0] == 1.0 or kernel_left.promise[0] > HOPEFUL
    assert exhausted.promise[0] < HOPELESS
    tried = len(kernel_left._optimization.outcome.progress.at(SCREEN))  # type: ignore[union-attr]
    assert kernel_left.promise[1] == -tried


def test_the_page_tells_what_is_written_from_what_was_found_and_counts_what_is_unchecked() -> None:
    common = {"level": 1, "split": "train", "device": "cpu", "environment": {"torch": "2"}, "seconds": 1.0}
    interval = {"median": 4.0, "low": 3.9, "high": 4.1}
    rows = [
        {**common, "problem_id": "level1/a", "best_drop_in": 4.0, "faster": True, "speedup_over_eager": interval,
         "best_baseline": "eager", "baselines_not_judged": {"compile": "the time was over"}},
        {**common, "problem_id": "level1/b", "best_drop_in": 4.0, "faster": False, "compile": 5.0, "tried": 3},
        {**common, "problem_id": "level1/c", "error": "cannot be judged"},
    ]  # fmt: skip
    page = render(rows, took_s=600.0, minutes=10.0, device="cpu")
    assert "| all | 3 | 2.52x | 5.00x of 1 | 1.59x | 1.00x | 1 | 1 | 2 |" in page
    assert "| level1/a | train | 4.00x | 4.00x (3.90 to 4.10) | - | eager, `compile` unchecked |" in page
    assert "cannot be judged" in page


def test_the_page_is_written_below_work_unless_a_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(problems: list[str], *, folder: Path, **_: object) -> tuple[list[dict[str, Any]], float]:
        folder.mkdir(parents=True)
        return [], 0.0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(optimize, "load_params", lambda: SimpleNamespace(problems=None))
    monkeypatch.setattr(optimize, "load_problems", lambda params: {})
    monkeypatch.setattr(optimize, "_measured", measured)
    monkeypatch.setattr(optimize, "render", lambda rows, **_: "# A page\n")
    assert optimize.main([]) == 0
    assert [str(path) for path in Path().rglob("*.md")] == ["work/bench/optimize-cpu.md"]
    assert capsys.readouterr().out.endswith("work/bench/optimize-cpu.md\n")
