"""The report's numbers as tables for people and as rows and mappings for machines."""

import io
import json

import pytest
from report_builders import sample, summarised, three_kernels

from tasks.report import kernel_tables, metrics, tables
from tasks.report.summary import gains, summarise

QUOTED = {"device": "d", "protocol": "p", "resamples": 200, "seed": 0}


def quoted_rows(kernels, *, baselines, missing="as 1.00x"):
    """The rows of the table by baseline and group, as they count problems without a kernel."""
    table = kernel_tables.quoted_table(kernels, baselines=baselines, unfit=(), **QUOTED)
    rows = {cells[:3]: dict(zip(table.header, cells, strict=True)) for cells in table.rows}
    return {key[:2]: row for key, row in rows.items() if key[2] == missing}


def test_the_kernel_table_counts_a_missing_kernel_as_the_reference_and_says_so():
    table = kernel_tables.kernel_table(three_kernels(), device="Made-up processor", protocol="test-1")
    assert table.rows[-1][0] == "geomean of 3 problems"
    assert table.rows[-1][4] == "1.59x"  # the cube root of 4 * 1 * 1
    assert "1 of 3 problems have no correct kernel" in table.note
    assert "1.00x" in table.note
    assert "Made-up processor" in table.note
    assert "test-1" in table.note


def test_the_numbers_of_the_field_are_given_by_baseline_level_split_and_track():
    baselines = {"compile": {"level1/p": 2.0, "level2/p": 2.0, "level3/p": 2.0}}
    rows = quoted_rows(three_kernels(), baselines=baselines)
    assert set(rows) == {
        (baseline, group)
        for baseline in ("eager", "compile", "best")
        for group in ("all", "level 1", "level 2", "level 3", "track framework")
    }
    assert [rows["eager", "all"][name].split()[0] for name in ("mean", "median", "max", "fast_0", "fast_1")] == [
        "2.00x",
        "1.00x",
        "4.00x",
        "67%",
        "33%",
    ]
    # 4 / 2, 1 / 2, and 1 where the reference is used
    assert rows["compile", "all"]["geomean"].startswith("1.00x (0.50-")
    assert rows["eager", "track framework"]["problems"] == "2"


def test_a_problem_on_which_another_baseline_failed_counts_over_the_best_one():
    rows = quoted_rows(three_kernels(), baselines={"compile": {}})
    assert rows["compile", "all"]["problems"] == "0"
    assert rows["compile", "all"]["fast_0"] == "-"
    assert rows["best", "all"]["problems"] == "3"
    assert rows["best", "all"]["geomean"] == rows["eager", "all"]["geomean"]


def test_numbers_without_the_missing_kernels_stand_below_those_with_them():
    rows = quoted_rows(three_kernels(), baselines={}, missing="left out")
    assert {group for _, group in rows} == {"all", "level 3"}  # where none is missing there is no such row
    assert rows["eager", "all"]["problems"] == "2"
    assert rows["eager", "all"]["fast_0"] == "100%"
    assert rows["eager", "all"]["geomean"].startswith("2.00x")
    assert rows["eager", "level 3"]["geomean"] == "-"


def test_an_unfit_problem_counts_nowhere_in_the_numbers_of_the_field():
    kernels = three_kernels()
    table = kernel_tables.quoted_table(kernels, baselines={}, unfit={"level1/p"}, **QUOTED)
    rows = {cells[:3]: cells for cells in table.rows}
    assert rows["eager", "all", "as 1.00x"][3] == "2"
    assert "level 1" not in {group for _, group, _ in rows}
    assert "1 problems whose reference cannot serve as the truth are left out" in table.note


def test_a_table_says_the_same_in_the_terminal_and_in_markdown():
    from rich.console import Console

    table = tables.stage_table(
        summarised([sample("self_supervised", speedup=2.0), sample("self_supervised", "level1/b")]),
        device="Made-up [processor]",
        protocol="test-1",
    )
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(tables.to_rich(table))
    terminal, markdown = " ".join(console.export_text().split()), tables.to_markdown(table)
    for cell in (*table.rows[0], "Made-up [processor]"):
        assert cell in terminal
        assert cell in markdown


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_narrow_terminal_hides_no_digit(width):
    from rich.console import Console

    table = tables.TextTable(
        title="t", header=("name", "n"), rows=(("a" * 70, "1.25x (1.10-1.40)"),), labels=1, note=""
    )
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables.to_rich(table))
    text = console.export_text()
    assert "1.25x" in text
    assert "(1.10-1.40)" in text
    assert text.count("a") >= 70


def test_a_bar_in_a_cell_does_not_split_a_markdown_cell():
    table = tables.TextTable(title="t", header=("name",), rows=(("a|b\nc",),), labels=1, note="n")
    assert "| a\\|b c |" in tables.to_markdown(table)


def test_metrics_are_rounded_nested_and_leave_out_what_is_not_known():
    rows = summarised([sample(speedup=1.23456789), sample("self_supervised")])
    found = metrics.flat_metrics(rows, three_kernels(), [])
    assert found["sft"]["train"]["sampled"]["speedup"] == 1.2346
    assert "speedup" not in found["self_supervised"]["train"]["sampled"]
    assert found["best_kernels"] == {
        "problems": 3,
        "geomean_speedup": 1.5874,
        "max_speedup": 4.0,
        "fast_0": 0.6667,
        "fast_1": 0.3333,
        "fast_1_2": 0.3333,
        "fast_2": 0.3333,
    }
    assert json.loads(json.dumps(found)) == found


def test_rows_for_plots_leave_out_what_is_not_known():
    (row,) = metrics.summary_rows(summarised([sample()]))
    assert (row["policy"], row["split"], row["mode"], row["correct"]) == ("sft", "train", "sampled", 0.0)
    assert not {"speedup", "speedup_low", "correct_low"} & set(row)


def test_metrics_and_rows_carry_the_intervals_of_the_table():
    (row,) = summary = summarised(
        [
            sample(problem_id=f"level1/{name}", speedup=speedup)
            for name, speedup in (("a", 1.0), ("b", 2.0), ("c", None))
        ]
    )
    expected = {
        "correct_low": row.correct_interval.low,
        "correct_high": row.correct_interval.high,
        "speedup_low": row.speedup_interval.low,
        "speedup_high": row.speedup_interval.high,
    }
    (flat,) = metrics.summary_rows(summary)
    nested = metrics.flat_metrics(summary, [], [])["sft"]["train"]["sampled"]
    for found in (flat, nested):
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)
        assert found["speedup_low"] < found["speedup"] < found["speedup_high"]


def test_metrics_carry_what_each_policy_gained_over_the_one_before():
    samples = [
        sample(policy, problem_id, speedup=speedup)
        for policy, speedup in (("sft", 1.0), ("self_supervised", 1.5), ("contrastive_rl", None))
        for problem_id in ("level1/a", "level1/b")
    ]
    found = metrics.flat_metrics(summarised(samples), [], gains(samples, resamples=100, seed=0))
    assert found["self_supervised"]["train"]["sampled"]["gain"] == {"ratio": 1.5, "low": 1.5, "high": 1.5}
    assert "gain" not in found["sft"]["train"]["sampled"]
    assert "gain" not in found["contrastive_rl"]["train"]["sampled"]


def test_copies_are_shown_to_people_and_machines_alike():
    summary = summarised([sample(copied=True), sample(), sample(), sample()])
    table = tables.problem_table(summary, device="d", protocol="p")
    assert dict(zip(table.header, table.rows[0], strict=True))["copied"] == "25%"
    assert "copied: share of samples whose text is one of the exemplars their prompt showed" in table.note
    assert metrics.summary_rows(summary)[0]["copied"] == 0.25
    assert metrics.flat_metrics(summary, [], [])["sft"]["train"]["sampled"]["copied"] == 0.25


def test_a_problem_without_a_baseline_lifts_the_best_above_it_and_the_note_says_so():
    samples = [sample(problem_id="level1/a", speedup=2.0), sample(problem_id="level1/b", speedup=9.0)]
    summary = summarise(samples, baselines={"compile": {"level1/a": 2.0}}, resamples=9, seed=0)
    table = tables.problem_table(summary, device="d", protocol="p")
    found = dict(zip(table.header, table.rows[0], strict=True))
    assert (found["vs compile"], found["vs best"]) == ("1.00x", "3.00x")
    assert "left out over that one, not over the best, which may thus be higher" in table.note


def test_the_stage_table_says_which_prompts_show_exemplars():
    note = tables.stage_table(summarised([sample()]), device="d", protocol="p").note
    assert "Prompts for train problems show correct exemplars, those for held-out problems show none." in note
