"""The worked questions of docs/history.md about what was found: baselines and kernels of others are no finds."""

import re
from pathlib import Path

import pytest
from history_builders import candidate, problem, run, verdict

from tasks.history.store import History

PAGE = Path(__file__).parents[1] / "docs" / "history.md"
QUESTIONS = dict(re.findall(r"\*\*([^*]+\?)\*\*.*?```sql\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
FIRST = re.search(r'cuda-l1 sql "(SELECT .+? FROM best_kernels .+?)"', PAGE.read_text())

NAMES = ("level1/relu", "level1/gelu", "level2/norm", "level3/net", "level3/loss")
REWRITTEN = candidate("rewritten\n")
COMPILED = candidate("compiled\n", origin="baseline:compile")
RELEASED = candidate("released\n", problem_id="level1/gelu", origin="cuda-l1-released-h100")
COMPILED_NORM = candidate("compiled norm\n", problem_id="level2/norm", origin="baseline:compile")
SLOWER = candidate("slower\n", problem_id="level3/net", origin="sft")
LEARNT = candidate("learnt\n", problem_id="level3/loss", origin="contrastive_rl")


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Relu is rewritten and compiled, gelu released, norm only compiled; policies slow net down and win loss."""
    history = History(tmp_path_factory.mktemp("data") / "history.duckdb")
    history.append(
        run("all", stage="evaluate"),
        problems=map(problem, NAMES),
        candidates=[REWRITTEN, COMPILED, RELEASED, COMPILED_NORM, SLOWER, LEARNT],
        verdicts=[
            verdict(REWRITTEN, speedup=4.0),
            verdict(COMPILED, speedup=9.0),
            verdict(RELEASED, speedup=5.0),
            verdict(COMPILED_NORM, speedup=3.0),
            verdict(SLOWER, speedup=0.7),
            verdict(LEARNT, speedup=2.0),
        ],
    )
    return history


def test_training_found_neither_baselines_nor_released_kernels_nor_what_is_slower_than_eager(history):
    ((problem_id, _, learnt, rewritten, ratio),) = history.query(
        QUESTIONS["Where did training find what rewriting did not?"]
    ).rows()
    assert (problem_id, learnt, rewritten, ratio) == ("level3/loss", pytest.approx(2.0), None, None)


def test_the_fastest_kernel_is_no_baseline(history):
    rows = history.query(QUESTIONS["How did the fastest kernel come about?"]).rows()
    assert [row[3] for row in rows] == [RELEASED.candidate_id]


def test_a_problem_that_only_a_compiler_makes_faster_is_one_that_nobody_has_made_faster(history):
    rows = history.query(QUESTIONS["Which problems has nobody made faster?"]).rows()
    assert rows == [(2, "level2/norm"), (3, "level3/net")]


def test_the_first_example_of_the_page_lists_no_baselines(history):
    assert FIRST is not None
    origins = [origin for _, _, origin in history.query(FIRST[1]).rows()]
    assert origins == ["cuda-l1-released-h100", "contrastive_rl", "sft"]
