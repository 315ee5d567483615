"""What statistics read instead of every verdict says what the verdicts say, however they came in."""

import random

import duckdb
import pytest
from history_builders import candidate, distinct, problem, run, verdict

from tasks.errors import RecordError
from tasks.history.connection import writing
from tasks.history.records import Cost, RunLink
from tasks.history.store import History
from tasks.history.summaries import SUMMARIES
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Status


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "history.duckdb")


def differences(history):
    """Rows that a summary has and its definition over all verdicts has not, and the other way round."""
    found = []
    for name, select in SUMMARIES.items():
        whole = select.replace("$touched", "true")
        # Lists and sums come in any order, so they are compared rounded and sorted.
        columns = history.query(f"FROM ({whole}) LIMIT 0").columns
        ordered = ", ".join(
            {"speedups": "list_sort(speedups)", "sum_ln_speedup": "round(sum_ln_speedup, 9)"}.get(column, column)
            if column != "speedup"
            else "round(speedup, 9)"
            for column in columns
        )
        for one, other in ((f"summaries.{name}", f"({whole})"), (f"({whole})", f"summaries.{name}")):
            found += history.query(f"SELECT {ordered} FROM {one} EXCEPT ALL SELECT {ordered} FROM {other}").rows()
    return found


def appended(history, rng, run_id, count):
    batch = [rng.choice(KERNELS) for _ in range(count)]
    verdicts = []
    for one in batch:
        status = rng.choice([Status.CORRECT] * 8 + [Status.WRONG_OUTPUT, Status.CRASHED])
        speedup, device = rng.uniform(0.5, 4), rng.choice(["a processor", "a GPU"])
        verdicts.append(
            verdict(one, speedup=speedup, status=status, judged_at=1.7e9 + rng.randrange(1000), device=device)
        )
    history.append(run(run_id), problems=PROBLEMS, candidates=batch, verdicts=verdicts)


PROBLEMS = [problem("level1/relu"), problem("level2/gelu")]
KERNELS = [
    *distinct(12),
    *distinct(12, problem_id="level2/gelu", start=50),
    *(baseline_candidate(one, "compile") for one in PROBLEMS),
]


def test_summaries_follow_every_append(history):
    rng = random.Random(0)
    for number in range(12):
        appended(history, rng, f"run-{number % 3}", rng.randint(1, 8))
    assert history.query("SELECT count(*) FROM candidate_speedups").item() > 5
    assert differences(history) == []


def test_a_baseline_is_no_result_of_a_run_but_takes_its_time(history):
    relu, gelu = PROBLEMS
    kernel, failed = candidate(), candidate("failed\n")
    fast_relu, fast_gelu = (baseline_candidate(one, "compile") for one in PROBLEMS)
    history.append(
        run(),
        problems=PROBLEMS,
        candidates=[kernel, failed, fast_relu, fast_gelu],
        verdicts=[
            verdict(kernel, speedup=2.0),
            verdict(failed, status=Status.CRASHED),
            verdict(fast_relu, speedup=8.0),
            verdict(fast_gelu, speedup=8.0),
        ],
    )
    results = "SELECT problem_id, baseline, num_verdicts, num_candidates, num_faster, best_speedup, judging_seconds"
    expected = [
        (relu.problem_id, None, 1, 1, 0, None, 0.25),
        (relu.problem_id, "eager", 1, 1, 1, pytest.approx(2.0), 0.5),
        (gelu.problem_id, "eager", 0, 0, 0, None, 0.25),
    ]
    assert history.query(f"{results} FROM run_results ORDER BY problem_id, baseline NULLS FIRST").rows() == expected
    by_stage = "SELECT num_problems, num_candidates, geomean_speedup, median_speedup, best_speedup, faster_share"
    assert history.query(f"{by_stage} FROM speedups_by_stage").rows() == [
        (1, 1, pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0), 1.0)
    ]
    assert history.query("SELECT num_problems, num_faster, fast_p FROM fast_p_by_stage(1.0)").rows() == [(2, 1, 0.5)]
    assert history.query("SELECT num_wins, judging_seconds FROM cost_per_win").rows() == [(1, 1.0)]
    assert differences(history) == []


def test_a_run_that_judged_nothing_but_baselines_has_no_results(history):
    compiled = baseline_candidate(PROBLEMS[0], "compile")
    history.append(run(), problems=PROBLEMS, candidates=[compiled], verdicts=[verdict(compiled, speedup=8.0)])
    assert history.query("FROM speedups_by_stage").is_empty()
    assert history.query("FROM fast_p_by_stage(1.0)").is_empty()
    assert history.query("SELECT num_wins, seconds_per_win, judging_seconds FROM cost_per_win").rows() == [
        (0, None, 0.25)
    ]


def test_a_candidate_found_wrong_leaves_the_statistics_it_was_in(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    assert not history.query("FROM best_kernels").is_empty()
    history.append(run("later"), problems=[problem()], verdicts=[verdict(one, status=Status.CHEATED)])
    assert history.query("FROM best_kernels").is_empty()
    assert history.query("FROM leaderboard").is_empty()
    assert differences(history) == []


def test_a_refused_append_leaves_the_summaries_alone(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    with pytest.raises(RecordError):
        history.append(run(stage="sft"), verdicts=[verdict(one, speedup=9.0)])
    assert history.query("SELECT best_speedup FROM leaderboard").item() == pytest.approx(2.0)
    assert differences(history) == []


def test_verdicts_that_came_in_another_way_are_in_the_summaries_when_writing_ends(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    with writing(history.path) as connection:
        connection.execute(
            "INSERT INTO verdicts SELECT * REPLACE ('another' AS verdict_id, 8.0 AS speedup) FROM verdicts"
        )
        connection.execute("INSERT INTO run_verdicts VALUES ('run-1', 'another')")
    assert history.query("SELECT speedup, num_verdicts FROM candidate_speedups").rows() == [(pytest.approx(4.0), 2)]
    assert differences(history) == []


def test_what_a_shell_added_behind_our_back_is_found_at_the_next_append(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    with duckdb.connect(history.path) as shell:
        shell.execute("INSERT INTO verdicts SELECT * REPLACE ('another' AS verdict_id, 8.0 AS speedup) FROM verdicts")
    history.append(run("another"), problems=[problem()], verdicts=[verdict(one, judged_at=1.8e9)])
    assert history.query("SELECT num_verdicts FROM candidate_speedups").item() == 3
    assert differences(history) == []


def test_a_cost_counts_once_however_often_it_is_appended(history):
    one = candidate()
    spent = Cost(purpose="generation", candidate_id=one.candidate_id, seconds=2.0, price_usd=0.25, spent_at=1.7e9)
    for _ in range(3):
        history.append(run(), problems=[problem()], candidates=[one], costs=[spent])
    history.append(run("another"), problems=[problem()], costs=[spent])
    assert history.query("SELECT run_id, other_seconds, price_usd FROM cost_per_win ORDER BY run_id").rows() == [
        ("another", 2.0, 0.25),
        ("run-1", 2.0, 0.25),
    ]


@pytest.mark.parametrize("amount", [-1.0, float("nan"), float("inf")])
def test_a_cost_is_a_finite_amount(amount):
    with pytest.raises(RecordError, match="generation"):
        Cost(purpose="generation", price_usd=amount, spent_at=1.7e9)


def test_a_cost_of_an_unknown_candidate_is_refused(history):
    history.append(run(), problems=[problem()])
    with pytest.raises(RecordError, match="not a known candidate"):
        history.append(run(), costs=[Cost(purpose="generation", candidate_id="0" * 16, spent_at=1.7e9)])


def test_a_run_is_linked_to_what_other_systems_call_it_once(history):
    for _ in range(2):
        history.append(
            run(), links=[RunLink(system="mlflow", identifier="abc"), RunLink(system="dvc", identifier="d1")]
        )
    assert history.query("FROM run_links ORDER BY system").rows() == [
        ("run-1", "dvc", "d1"),
        ("run-1", "mlflow", "abc"),
    ]


def test_a_parent_is_where_a_kernel_comes_from(history):
    first = candidate("first\n")
    second = candidate("second\n", parent_id=first.candidate_id)
    third = candidate("third\n", parent_id=second.candidate_id)
    judged = [verdict(first, speedup=1.0), verdict(second, speedup=2.0), verdict(third, speedup=8.0)]
    history.append(run(), problems=[problem()], candidates=[first, second, third], verdicts=judged)
    gains = history.query("SELECT candidate_id, parent_id, relation, gain FROM lineage ORDER BY gain").rows()
    assert gains == [
        (second.candidate_id, first.candidate_id, "parent", pytest.approx(2.0)),
        (third.candidate_id, second.candidate_id, "parent", pytest.approx(4.0)),
    ]
    walk = history.query("SELECT generation, source FROM ancestors(?) ORDER BY ALL", [third.candidate_id]).rows()
    assert walk == [(0, "third\n"), (1, "second\n"), (2, "first\n")]


def test_an_ancestry_that_bites_its_tail_ends(history):
    one, other = candidate("one\n"), candidate("other\n")
    one = candidate("one\n", parent_id=other.candidate_id)
    other = candidate("other\n", parent_id=one.candidate_id)
    history.append(run(), problems=[problem()], candidates=[one, other])
    walk = history.query("SELECT generation, source FROM ancestors(?) ORDER BY ALL", [one.candidate_id]).rows()
    assert walk == [(0, "one\n"), (1, "other\n")]
