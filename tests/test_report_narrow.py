"""Tables in a terminal of 80 columns and less: no word breaks in its middle, and nothing is hidden."""

import io
import re

import pytest
from rich.console import Console

from tasks.report.tables import TextTable, to_rich

STAGES = TextTable(
    title="Stage by stage",
    header=("stage", "split", "mode", "samples", "parses", "runs", "correct", "geomean", "best"),
    rows=(
        ("sft", "train", "greedy", "46", "98%", "93%", "93% (87-100)", "1.34x (1.13-1.68)", "11.27x"),
        ("self_supervised", "train", "sampled", "184", "98%", "91%", "85% (79-91)", "1.48x (1.25-1.82)", "11.27x"),
        ("contrastive_rl", "held_out", "sampled", "52", "81%", "23%", "0% (0-0)", "-", "-"),
    ),
    labels=3,
    note="Shares of samples.",
)
BASELINES = TextTable(
    title="By problem and by baseline",
    header=(
        *("stage", "split", "mode", "problems", "solved", "fast_1", "fast_2", "distinct", "copied"),
        *("vs compile", "vs compile_reduce_overhead", "vs best"),
    ),
    rows=(
        ("self_supervised", "train", "sampled", "46", "98%", "91%", "30%", "55%", "20%", "1.02x", "1.03x", "1.01x"),
        ("contrastive_rl", "held_out", "sampled", "46", "97%", "90%", "29%", "54%", "19%", "1.12x", "1.13x", "1.11x"),
    ),
    labels=3,
    note="Of problems.",
)
KERNELS = TextTable(
    title="Best kernels",
    header=("problem", "split", "origin", "track", "speedup", "90% interval"),
    rows=(
        ("level2/masked_softmax", "train", "compile_forward_static, work_in_place", "graph", "9.49x", "8.00-9.99"),
        ("geomean of 59 problems", "", "", "", "2.23x", ""),
    ),
    labels=4,
    note="Median speedup.",
)


def drawn(table: TextTable, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(to_rich(table))
    return console.export_text()


def parts_of(table: TextTable) -> list[str]:
    """What must stand in a table as it is: words, and of long ones what stands between underscores and slashes."""
    cells = (cell for row in (table.header, *table.rows) for cell in row)
    return [part for cell in cells for part in re.findall(r"[^ _/]+", cell)]


@pytest.mark.parametrize("width", [80, 120])
def test_the_stages_keep_their_names_and_stand_in_a_line_each_where_there_is_room(width: int) -> None:
    lines = drawn(STAGES, width).splitlines()
    assert max(map(len, lines)) <= width
    for row in STAGES.rows:
        (line,) = [each for each in lines if each.split()[:3] == list(row[:3])]
        assert row[-1] in line


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("table", [STAGES, BASELINES, KERNELS], ids=lambda table: table.title)
def test_no_word_breaks_in_its_middle_and_none_is_hidden(table: TextTable, width: int) -> None:
    text = drawn(table, width)
    assert max(map(len, text.splitlines())) <= width
    found = re.findall(r"[^ _/\n]+", text)
    assert set(parts_of(table)) <= set(found)


def test_numbers_for_which_there_is_no_room_come_below_with_the_labels_again() -> None:
    text = drawn(BASELINES, 80)
    assert text.count("self_supervised") == 2
    above, below = text.index("30%"), text.index("1.02x")
    assert above < text.index("self_supervised", above) < below
    assert text.count(BASELINES.title) == text.count(BASELINES.note) == 1


def test_a_table_that_fits_is_as_wide_as_its_cells() -> None:
    (line,) = [each for each in drawn(STAGES, 200).splitlines() if "1.48x" in each]
    assert line.startswith("self_supervised train    sampled ")
    assert "85% (79-91) 1.48x (1.25-1.82) 11.27x" in line


@pytest.mark.parametrize("width", [12, 20, 30])
def test_where_there_is_hardly_any_room_all_characters_are_there(width: int) -> None:
    table = TextTable(title="t", header=("name", "n"), rows=(("a" * 40, "1.25x (1.10-1.40)"),), labels=1, note="")
    text = drawn(table, width)
    assert text.count("a") >= 40
    assert "1.25x" in text


def test_labels_break_before_numbers_do() -> None:
    header = ("a_label_of_its_own", "another_label_here", "a_third_label_too", "n")
    table = TextTable(title="t", header=header, rows=((*header[:3], "1.234e-05"),), labels=3, note="")
    assert all("1.234e-05" in drawn(table, width) for width in range(20, 60))


def test_a_column_without_a_name_or_values_is_drawn() -> None:
    table = TextTable(title="t", header=("name", ""), rows=(("sft", ""),), labels=1, note="")
    assert "sft" in drawn(table, 80)
