"""The worked questions of docs/history.md, asked of a small history whose answers are known."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from history_builders import candidate, problem, run, sample, verdict

from tasks.history.macros import MACROS, TABLE_MACROS
from tasks.history.records import Cost
from tasks.history.schema import VIEWS
from tasks.history.store import History
from tasks.judge.verdict import Check, Status

PAGE = Path(__file__).parents[1] / "docs" / "history.md"
QUESTIONS = dict(re.findall(r"\*\*([^*]+\?)\*\*.*?```sql\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))

RELU, GELU, NORM = problem("level1/relu"), problem("level1/gelu"), problem("level2/norm")
INPLACE = candidate("inplace\n", recipe=("inplace",))
FUSED = candidate("fused\n", recipe=("inplace", "fuse"))
OTHER = candidate("other\n", problem_id="level1/gelu", recipe=("fuse",))
SHAKY = candidate("shaky\n", problem_id="level2/norm", recipe=("fuse",))
LEARNT = candidate("learnt\n", origin="sft")
WRONG = candidate("wrong\n", problem_id="level1/gelu", origin="sft")
CHEAT = candidate("cheat\n", problem_id="level2/norm", origin="sft")
UNTOUCHED = problem("level3/net")
NEWER = {"torch": "2.14.0"}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Rewriting wins relu (4x) and gelu (2x) but not norm; a policy beats relu, fails at gelu and cheats at norm."""
    problems = [RELU, GELU, NORM, UNTOUCHED]
    history = History(tmp_path_factory.mktemp("data") / "history.duckdb")
    history.append(
        run("variants", stage="filter_variants"),
        problems=problems,
        candidates=[INPLACE, FUSED, OTHER, SHAKY],
        verdicts=[
            verdict(INPLACE, speedup=1.0),
            verdict(FUSED, speedup=4.0),
            verdict(OTHER, speedup=2.0),
            verdict(SHAKY, speedup=0.5),
            replace(verdict(SHAKY, speedup=0.8, judged_at=1.7e9 + 1), environment=NEWER),
        ],
        costs=[Cost(purpose="generation", seconds=3.0, answer_tokens=600, price_usd=0.5, spent_at=1.7e9)],
    )
    caught = replace(
        verdict(CHEAT, status=Status.CHEATED, judged_at=1.7e9 + 60),
        checks=(Check(name="fresh_inputs", passed=True), Check(name="called_twice", passed=False)),
    )
    shown = (INPLACE.candidate_id, FUSED.candidate_id)
    history.append(
        run("policy", stage="evaluate", started_at=1.7e9 + 10),
        problems=problems,
        candidates=[LEARNT, WRONG, CHEAT],
        samples=[
            sample(LEARNT, number=0, exemplar_ids=shown),
            sample(WRONG, number=1),
            sample(LEARNT, step=2, number=0, exemplar_ids=shown),
            sample(FUSED, step=2, number=1, exemplar_ids=shown),
        ],
        verdicts=[
            verdict(LEARNT, speedup=8.0, judged_at=1.7e9 + 20),
            verdict(WRONG, status=Status.WRONG_OUTPUT, judged_at=1.7e9 + 30),
            caught,
            verdict(FUSED, speedup=4.0),  # reused: it cost the first run its seconds
        ],
    )
    return history


def about(number):
    return pytest.approx(number)


ANSWERS = {
    # fuse: 4x on relu, where the other rewritten one reaches 1x, and 2x on gelu, where there is no other.
    "Which rewrite pays on which level?": [
        (1, "fuse", 2, 2, about(8**0.5), about(4.0)),
        (1, "inplace", 1, 2, about(2.0), None),
        (2, "fuse", 1, 1, about(0.4**0.5), None),
    ],
    "Where did training find what rewriting did not?": [
        ("level1/relu", "a processor", about(8.0), about(4.0), about(2.0))
    ],
    # 5 verdicts of 0.25 s and 3 s of generation for two wins; then 3 new verdicts for one.
    "What did a win cost?": [
        ("filter_variants", 2, about(4.25), about(2.125), about(300.0), about(0.25)),
        ("evaluate", 1, about(0.75), about(0.75), about(0.0), about(0.0)),
    ],
    "Does a policy learn to be right, step by step?": [
        ("evaluate", "policy", "sft", 1, "train", 2, about(0.5), about(8.0), about(1.0)),
        ("evaluate", "policy", "sft", 2, "train", 2, about(1.0), about(32**0.5), about(1.0)),
    ],
    # 8x, 8x and 4x were written after seeing 1x, and after seeing 4x, which one of them copies.
    "What comes of showing a fast kernel in a prompt?": [
        (0, 3, about(0.0), about(256 ** (1 / 3)), about(1.0)),
        (2, 3, about(1 / 3), about(4 ** (1 / 3)), about(2 / 3)),
    ],
    "How did the fastest kernel come about?": [
        (0, None, "sft", LEARNT.candidate_id, []),
        *sorted(
            [
                (1, "exemplar", "rewrites", INPLACE.candidate_id, ["inplace"]),
                (1, "exemplar", "rewrites", FUSED.candidate_id, ["inplace", "fuse"]),
            ],
            key=lambda row: row[3],
        ),
    ],
    "On how many problems is each stage faster than 1.2x?": [
        ("filter_variants", "train", "a processor", 4, 2, about(0.5)),
        ("evaluate", "train", "a processor", 4, 1, about(0.25)),
    ],
    "Where do candidates fail?": [
        ("rewrites", 1, "correct", 4, about(1.0)),
        ("rewrites", 2, "correct", 2, about(1.0)),
        ("sft", 1, "correct", 1, about(0.5)),
        ("sft", 1, "wrong_output", 1, about(0.5)),
        ("sft", 2, "cheated", 1, about(1.0)),
    ],
    "Which problems has nobody made faster?": [(2, "level2/norm"), (3, "level3/net")],
    "Which timings should be taken again?": [
        ("level2/norm", SHAKY.candidate_id, "a processor", "verdicts disagree", about(1.6), about(0.4**0.5))
    ],
    "Does another version of PyTorch change the winners?": [
        ("level2/norm", SHAKY.candidate_id, "a processor", "2.13.0", about(0.5), "2.14.0", about(0.8))
    ],
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_worked_question_has_its_answer(history, question):
    assert history.query(QUESTIONS[question]).rows() == ANSWERS[question]


def test_who_tries_to_cheat(history):
    ((*found, at),) = history.query(QUESTIONS["Who tries to cheat, and what catches it?"]).rows()
    assert found == ["sft", "called_twice", 1, 1]
    assert at.isoformat() == "2023-11-14T22:14:20"


def test_the_page_works_twelve_questions_and_all_are_asked_here():
    assert len(QUESTIONS) == 12
    assert set(QUESTIONS) == {*ANSWERS, "Who tries to cheat, and what catches it?"}


def test_the_page_names_every_table_view_column_and_macro(history):
    text = PAGE.read_text()
    described = history.query(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'main'"
    ).rows()
    ours = [(table, column) for table, column in described if table != "schema_version" and table not in VIEWS]
    assert ("costs", "price_usd") in ours
    for table, column in ours:
        (row,) = re.findall(rf"^\| `{table}` \| .*$", text, flags=re.MULTILINE)
        assert f"`{column}`" in row, f"docs/history.md does not describe {table}.{column}"
    for view in VIEWS:
        assert f"| `{view}` | " in text
    for macro in [*MACROS, *TABLE_MACROS]:
        assert f"| `{macro.partition('(')[0]}(" in text
