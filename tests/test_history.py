"""What the history keeps, what it refuses, and what its views say."""

import json
import os
import signal
import threading
from dataclasses import replace

import pytest
from history_builders import REFERENCE, candidate, distinct, problem, run, sample, verdict

from tasks.errors import RecordError
from tasks.history.connection import reading
from tasks.history.records import verdict_id
from tasks.history.schema import VIEWS
from tasks.history.store import History
from tasks.judge.verdict import Status, Verdict
from tasks.problems.problem import Split


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "data" / "history.duckdb")


def count(history, table):
    return history.query(f"SELECT count(*) FROM {table}").item()


def test_appending_the_same_again_changes_nothing(history):
    one = candidate()
    for _ in range(3):
        history.append(
            run(), problems=[problem()], candidates=[one], samples=[sample(one)], verdicts=[verdict(one), verdict(one)]
        )
    tables = ("runs", "problems", "run_problems", "candidates", "prompts", "samples", "verdicts", "run_verdicts")
    assert [count(history, table) for table in tables] == [1] * len(tables)
    assert count(history, "timing_rounds") == 9


def test_a_verdict_read_back_from_json_is_the_same_verdict(history):
    one = candidate()
    judged = replace(verdict(one), judged_at=1763683200.1234567, environment={"b": "2", "a": "1"})
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[judged])
    again = Verdict.from_json(json.loads(json.dumps(judged.to_json())))
    history.append(run(), verdicts=[again])
    assert count(history, "verdicts") == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"judged_at": 1.8e9}, id="judged again"),
        pytest.param({"device": "another processor"}, id="another device"),
        pytest.param({"protocol": "protocol-2"}, id="another protocol"),
        pytest.param({"environment": {"torch": "2.14.0"}}, id="another version"),
    ],
)
def test_another_judgement_of_the_same_candidate_is_another_row(history, change):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one])
    history.append(run(), verdicts=[verdict(one), replace(verdict(one), **change)])
    assert count(history, "verdicts") == 2


def test_a_verdict_that_two_runs_used_is_one_row_and_counts_for_both(history):
    one = candidate()
    for name in ("first", "second"):
        history.append(run(name), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    assert count(history, "verdicts") == 1
    assert set(history.query("SELECT run_id FROM stage_verdicts")["run_id"]) == {"first", "second"}


def test_rounds_and_checks_come_back_as_they_were_measured(history):
    one = candidate()
    judged = verdict(one, speedup=3.0)
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[judged])
    rounds = history.query("FROM timing_rounds ORDER BY round")
    assert rounds["round"].to_list() == list(range(1, 10))
    assert rounds["reference_ms"].to_list() == list(judged.timing.reference_ms)
    assert rounds["candidate_ms"].to_list() == list(judged.timing.candidate_ms)
    assert history.query("FROM checks").rows() == [(verdict_id(judged), "fresh_inputs", True, "max error 1e-7")]


def test_a_resumed_run_keeps_the_time_it_first_started(history):
    history.append(run(started_at=1.7e9))
    history.append(run(started_at=1.8e9))
    assert history.query("SELECT year(started_at) FROM runs").item() == 2023


def test_parameters_are_values_never_sql(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one])
    found = history.query("SELECT origin FROM candidates WHERE candidate_id = ?", [one.candidate_id])
    assert found.item() == "rewrites"
    assert history.query("SELECT 1 FROM candidates WHERE origin = ?", ["' OR true --"]).is_empty()


def test_a_candidate_may_say_anything_in_its_error(history):
    one = candidate()
    crashed = verdict(one, status=Status.CRASHED, detail="a lone surrogate \ud800, a zero \0 and '); DROP TABLE runs")
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[crashed])
    assert "zero \0 and" in history.query("SELECT detail FROM verdicts").item()


def relu(**changes):
    return {"problems": [problem()], **changes}


@pytest.mark.parametrize(
    ("second_run", "rows", "message"),
    [
        pytest.param(run(stage="sft"), {}, "another stage, seed or params", id="run of another stage"),
        pytest.param(run(params={"rounds": 11}), {}, "another stage, seed or params", id="run with other params"),
        pytest.param(run(), relu(problems=[problem(split=Split.HELD_OUT)]), "another text or split", id="split"),
        pytest.param(
            run(), {"candidates": [candidate(problem_id="level2/gelu")]}, "level2/gelu is not a problem", id="problem"
        ),
        pytest.param(
            run(), {"verdicts": [verdict(candidate("x = 1\n"))]}, "not a known candidate", id="verdict on unknown text"
        ),
        pytest.param(
            run(), {"samples": [sample(candidate("x = 1\n"))]}, "not a known candidate", id="sample of unknown text"
        ),
        pytest.param(
            run(),
            {"candidates": distinct(1), "samples": [sample(distinct(1)[0], policy="contrastive_rl")]},
            "sample 0 of step 1 is recorded for another policy",
            id="one number for two policies",
        ),
        pytest.param(
            run(),
            {"candidates": distinct(2), "samples": [sample(one, step=2) for one in distinct(2)]},
            "sample 0 of step 2 comes twice",
            id="one number twice",
        ),
    ],
)
def test_a_contradiction_is_refused_and_leaves_no_trace(history, second_run, rows, message):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one], samples=[sample(one)])
    before = [count(history, table) for table in ("runs", "candidates", "samples", "verdicts")]
    with pytest.raises(RecordError, match=message):
        history.append(second_run, **rows)
    assert [count(history, table) for table in ("runs", "candidates", "samples", "verdicts")] == before


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT nothing FROM runs", id="unknown column"),
        pytest.param("SELEC 1", id="no SQL"),
        pytest.param("", id="nothing"),
        pytest.param("DELETE FROM runs", id="a change"),
        pytest.param("CREATE TABLE mine AS FROM runs", id="a new table"),
    ],
)
def test_a_query_that_cannot_be_answered_names_the_file_and_changes_nothing(history, sql):
    history.append(run())
    with pytest.raises(RecordError, match=r"history\.duckdb"):
        history.query(sql)
    assert count(history, "runs") == 1


def test_ctrl_c_while_duckdb_is_at_work_is_ctrl_c(history):
    history.append(run())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may have been started to ignore it
    pressed = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    sql = "SELECT count(*) FROM range(10000000) a, range(1000000) b WHERE a.range % 7 = b.range"

    def ask_for_minutes() -> None:
        with reading(history.path) as connection:
            pressed.start()
            for _ in range(1000):  # some queries hear nothing of it until they are over
                connection.execute(sql)

    try:
        with pytest.raises(KeyboardInterrupt):
            ask_for_minutes()
    finally:
        pressed.cancel()
        signal.signal(signal.SIGINT, before)


def test_every_view_answers_on_an_empty_history(history):
    history.append(run())
    for view in VIEWS:
        assert history.query(f"FROM {view}").is_empty()


def test_best_kernels_averages_lucky_timings_and_drops_what_was_ever_wrong(history):
    steady, lucky, liar = distinct(3)
    history.append(run(), problems=[problem()], candidates=[steady, lucky, liar])
    history.append(
        run(),
        verdicts=[
            verdict(steady, speedup=3.0),
            verdict(lucky, speedup=8.0),
            verdict(lucky, speedup=0.5, judged_at=1.8e9),
            verdict(liar, speedup=50.0),
            verdict(liar, status=Status.WRONG_OUTPUT),
        ],
    )
    best = history.query("FROM best_kernels")
    assert best["candidate_id"].to_list() == [steady.candidate_id]
    assert best["source"].item() == steady.source
    assert history.query("SELECT speedup FROM candidate_speedups WHERE num_verdicts = 2").item() == pytest.approx(2.0)


def test_speedups_of_devices_are_never_mixed(history):
    one = candidate()
    history.append(run(), problems=[problem()], candidates=[one])
    history.append(run(), verdicts=[verdict(one, speedup=2.0), verdict(one, speedup=4.0, device="a GPU")])
    rows = history.query("SELECT device, geomean_speedup FROM speedups_by_stage ORDER BY ALL").rows()
    assert rows == [("a GPU", pytest.approx(4.0)), ("a processor", pytest.approx(2.0))]


def test_the_leaderboard_counts_the_best_of_each_problem(history):
    relu_, gelu = problem(), problem("level1/gelu")
    by_rewrite = distinct(2)
    by_policy = distinct(1, problem_id="level1/gelu", origin="sft")
    history.append(run(), problems=[relu_, gelu], candidates=[*by_rewrite, *by_policy])
    speedups = zip([*by_rewrite, *by_policy], [2.0, 4.0, 0.5], strict=True)
    history.append(run(), verdicts=[verdict(one, speedup=speedup) for one, speedup in speedups])
    board = history.query("SELECT origin, num_solved, num_faster, geomean_best_speedup FROM leaderboard ORDER BY ALL")
    assert board.rows() == [("rewrites", 1, 1, pytest.approx(4.0)), ("sft", 1, 0, pytest.approx(0.5))]


def test_a_sample_leads_to_its_prompt_its_exemplars_and_its_verdict(history):
    earlier, written, unjudged = distinct(3)
    samples = [
        sample(written, number=0, exemplar_ids=(earlier.candidate_id,)),
        sample(unjudged, number=1, exemplar_ids=(earlier.candidate_id,)),
    ]
    history.append(
        run(),
        problems=[problem()],
        candidates=[earlier, written, unjudged],
        samples=samples,
        verdicts=[verdict(written, speedup=2.0)],
    )
    assert count(history, "prompts") == 1
    found = history.query("SELECT number, exemplar_ids, status, speedup FROM stage_samples ORDER BY number").rows()
    exemplars = [earlier.candidate_id]
    assert found == [(0, exemplars, "correct", pytest.approx(2.0)), (1, exemplars, None, None)]


def test_runs_on_the_same_problems_share_a_problem_set(history):
    relu_, gelu, other_text = problem(), problem("level1/gelu"), problem(source=f"{REFERENCE}# other\n")
    history.append(run("first"), problems=[relu_, gelu])
    history.append(run("second"), problems=[gelu, relu_])
    history.append(run("third"), problems=[other_text, gelu])
    sets = history.query("SELECT run_ids, num_problems, problem_sets FROM problem_sets ORDER BY num_runs").rows()
    assert sets == [(["third"], 2, "local"), (["first", "second"], 2, "local")]
