"""The worked questions of docs/history.md, asked of a small history whose answers are known."""

import re
from pathlib import Path

import pytest
from history_builders import candidate, problem, run, sample, verdict

from tasks.history.schema import MIGRATIONS, VIEWS
from tasks.history.store import History
from tasks.judge.verdict import Status

PAGE = Path(__file__).parents[1] / "docs" / "history.md"
QUESTIONS = dict(re.findall(r"\*\*([^*]+\?)\*\*.*?```sql\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Rewriting and a policy at two problems; the policy wins the first and never gets the second right."""
    relu, gelu = problem("level1/relu"), problem("level1/gelu")
    inplace = candidate("inplace\n", recipe=("inplace",))
    fused = candidate("fused\n", recipe=("inplace", "fuse"))
    other = candidate("other\n", problem_id="level1/gelu", recipe=("fuse",))
    learnt = candidate("learnt\n", origin="sft")
    wrong = candidate("wrong\n", problem_id="level1/gelu", origin="sft")
    history = History(tmp_path_factory.mktemp("data") / "history.duckdb")
    history.append(
        run("variants", stage="filter_variants"),
        problems=[relu, gelu],
        candidates=[inplace, fused, other],
        verdicts=[verdict(inplace, speedup=1.0), verdict(fused, speedup=4.0), verdict(other, speedup=2.0)],
    )
    history.append(
        run("policy", stage="evaluate"),
        problems=[relu, gelu],
        candidates=[learnt, wrong],
        samples=[sample(learnt, number=0), sample(wrong, number=1), sample(learnt, step=2, number=0)],
        verdicts=[verdict(learnt, speedup=8.0), verdict(wrong, status=Status.WRONG_OUTPUT)],
    )
    return history


def test_the_page_works_three_questions():
    assert len(QUESTIONS) == 3


def test_which_rewrites_pay(history):
    rows = history.query(QUESTIONS["Which rewrites pay?"]).rows()
    assert rows == [("fuse", 2, pytest.approx(8**0.5), 1.0), ("inplace", 2, pytest.approx(2.0), 0.5)]


def test_where_training_found_more(history):
    rows = history.query(QUESTIONS["Where did training find what rewriting did not?"]).rows()
    assert rows == [("level1/relu", "a processor", pytest.approx(8.0), pytest.approx(4.0), pytest.approx(2.0))]


def test_learning_by_step(history):
    rows = history.query(QUESTIONS["Does a policy learn to be right, step by step?"]).rows()
    assert [row[3:] for row in rows] == [
        (1, "train", 2, 0.5, pytest.approx(8.0), 1.0),
        (2, "train", 1, 1.0, pytest.approx(8.0), 1.0),
    ]


def test_the_page_names_every_table_view_and_column(history):
    text = PAGE.read_text()
    described = history.query("SELECT table_name, column_name FROM information_schema.columns").rows()
    ours = [(table, column) for table, column in described if table != "schema_version" and table not in VIEWS]
    assert len({table for table, _ in ours}) == "".join(MIGRATIONS).count("CREATE TABLE")
    for table, column in ours:
        (row,) = re.findall(rf"^\| `{table}` \|.*$", text, flags=re.MULTILINE)
        assert f"`{column}`" in row, f"docs/history.md does not describe {table}.{column}"
    for view in VIEWS:
        assert f"| `{view}` |" in text
