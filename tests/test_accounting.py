"""What a run of a stage spent and what others call it: once in the history, however often it was killed and resumed."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import duckdb
import pytest
import yaml
from stage_runs import CLOSED, PROBLEM_ID, one_stage, run, workspace, write_generated, write_taught

from flows.engine import Stage, run_stage
from flows.parts.accounting import Expenses, accounted, read_account
from flows.parts.sampling import build_requests, draw
from tasks.errors import RecordError
from tasks.history import connection
from tasks.history.records import GENERATION, TRAINING, Cost
from tasks.history.store import History
from tasks.params import load_params
from tests.training_builders import policy, problem

PROBLEMS = {each.problem_id: each for each in [problem()]}
COSTS = "SELECT purpose, count(*), sum(seconds), sum(answer_tokens)::BIGINT FROM costs GROUP BY ALL ORDER BY ALL"


@pytest.fixture
def project(tmp_path, monkeypatch):
    one_stage(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    return tmp_path


def cost(seconds: float = 1.0, **changes) -> Cost:
    values = {"purpose": TRAINING, "seconds": seconds, "spent_at": 1.7e9}
    return Cost(**values | changes)


def spending(*costs: Cost, then: type[BaseException] | None = None):
    """A stage that spends, writes an output and perhaps comes to a bad end."""

    def work(stage: Stage) -> None:
        with accounted(stage, PROBLEMS) as (_, expenses):
            expenses.note(*costs)
            (stage.outputs / "policy").mkdir(exist_ok=True)
            (stage.outputs / "policy" / "weights").write_text("1 2 3")
            if then:
                raise then

    return work


def ask(sql: str) -> list[tuple]:
    return History(Path("data/history.duckdb")).query(sql).rows()


def test_an_expense_is_there_after_a_kill_and_counts_once(tmp_path):
    expenses = Expenses(tmp_path / "costs.jsonl")
    expenses.note(cost(1.0), cost(2.0), cost(1.0))
    with (tmp_path / "costs.jsonl").open("a") as journal:
        journal.write('{"purpose": "trai')  # cut off by the kill
    again = Expenses(tmp_path / "costs.jsonl")
    again.note(cost(2.0), cost(4.0))
    assert again.costs == [cost(1.0), cost(2.0), cost(4.0)]
    assert len((tmp_path / "costs.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(("fails", "noted"), [(False, 3), (True, 2)], ids=["whole", "failed"])
def test_laps_are_noted_and_what_follows_the_last_where_nothing_fails(tmp_path, fails, noted):
    expenses = Expenses(tmp_path / "costs.jsonl")
    with suppress(ZeroDivisionError), expenses.metered(TRAINING) as meter:
        meter.lap()
        meter.skip()
        meter.lap()
        _ = 1 / (not fails)
    assert [each.purpose for each in expenses.costs] == [TRAINING] * noted


def test_a_finished_run_is_told_with_its_costs_and_the_names_of_its_outputs(project):
    run_stage("sft", spending(cost(1.5), cost(2.0, answer_tokens=7)))
    assert ask(COSTS) == [(TRAINING, 2, 3.5, 7)]
    account = read_account("sft")
    assert account is not None
    assert (account.costs, account.run.stage) == ([cost(1.5), cost(2.0, answer_tokens=7)], "sft")
    assert ask("SELECT run_id FROM runs") == [(account.run.run_id,)]


def test_outputs_are_called_what_dvc_calls_them(project):
    def write(stage: Stage) -> None:
        with accounted(stage, PROBLEMS):
            for name in ("policy/weights", "policy/a/b.txt", "policy/a.txt", "policy/ü", "curve.csv"):
                path = stage.outputs / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"what {name} holds\n")

    run_stage("sft", write)
    for command in (["init", "--no-scm"], ["add", "data/sft/policy", "data/sft/curve.csv"]):
        subprocess.run([sys.executable, "-m", "dvc", *command], check=True, capture_output=True)
    tracked = {path.stem: yaml.safe_load(path.read_text())["outs"][0] for path in Path("data/sft").glob("*.dvc")}
    assert ask("SELECT system, identifier FROM run_links ORDER BY ALL") == [
        ("dvc", f"data/sft/{name}@{tracked[name]['md5']}") for name in ("curve.csv", "policy")
    ]


def test_an_interrupted_run_has_told_what_it_spent_and_its_resumption_adds_only_what_is_new(project):
    with pytest.raises(SystemExit):
        run_stage("sft", spending(cost(1.0), then=KeyboardInterrupt))
    assert ask(COSTS) == [(TRAINING, 1, 1.0, 0)]
    assert ask("FROM run_links") == []
    assert not Path("data/sft/run.json").exists()
    run_stage("sft", spending(cost(2.0)))
    assert ask(COSTS) == [(TRAINING, 2, 3.0, 0)]
    assert len(ask("FROM runs")) == 1


def test_a_history_that_cannot_be_written_stops_nothing(project, capsys):
    Path("data").mkdir()
    Path("data/history.duckdb").write_text("no database\n" * 1000)
    run_stage("sft", spending(cost(1.0)))
    assert "the history is not being written" in capsys.readouterr().err
    account = read_account("sft")
    assert account is not None
    assert account.costs == [cost(1.0)]


def test_a_busy_history_holds_up_the_end_of_a_stage_once(project, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run_stage("sft", spending(cost(1.0), then=KeyboardInterrupt))
    monkeypatch.setattr(connection, "WAIT_S", 0.1)
    with duckdb.connect("data/history.duckdb", read_only=True):
        run_stage("sft", spending(cost(2.0)))
    said = capsys.readouterr().err
    assert said.count("the history is busy") == 1
    assert "the history lacks 2 batch(es)" in said


def test_a_stage_without_an_account_has_none(project):
    assert read_account("sft") is None


@pytest.mark.parametrize("content", ["{", "{}", '{"run": {}, "costs": [], "links": []}', "[]"])
def test_a_file_that_is_no_account_is_named(project, content):
    Path("data/sft").mkdir(parents=True)
    Path("data/sft/run.json").write_text(content)
    with pytest.raises(RecordError, match=r"data/sft/run\.json holds no account of a run"):
        read_account("sft")


def test_a_batch_of_completions_is_paid_for_once_however_often_its_stage_resumes(tmp_path):
    stage = Stage(name="evaluate", params=load_params(), key="k", folder=tmp_path, run_id="r", started_at=0.0)
    made = policy()
    choice = stage.params.exemplars
    requests = build_requests(made, PROBLEMS.values(), {}, choice, each=3, exemplar_share=0.0, seed=0)

    def drawn_at_a_cost():
        expenses = Expenses(tmp_path / "costs.jsonl")
        draws = draw(stage, made, requests, name="a", origin="sft", temperature=1.0, seed=0, expenses=expenses)
        return [drawing.completion for drawing in draws], expenses.costs

    completions, costs = drawn_at_a_cost()
    (paid,) = costs
    assert paid.purpose == GENERATION
    assert paid.seconds > 0
    assert paid.prompt_tokens > 0
    assert 3 <= paid.answer_tokens <= 3 * made.completion_tokens
    (tmp_path / "costs.jsonl").unlink()  # killed between the completions and the note
    assert drawn_at_a_cost() == (completions, costs)
    assert drawn_at_a_cost() == (completions, costs)


@pytest.mark.slow
def test_stages_that_ran_tell_the_history_what_they_spent_and_rebuild_brings_it_back(tmp_path):
    root = workspace(tmp_path)
    write_generated(root, [])
    for stage in ("generate_variants", "sft"):
        if stage == "sft":
            write_taught(root)
        ran = run(root, f"flows.{stage}")
        assert ran.returncode == 0, ran.stderr
    history = History(root / "data" / "history.duckdb")
    spent = dict(history.query("SELECT stage, other_seconds FROM cost_per_win").rows())
    assert spent.keys() == {"generate_variants", "sft"}
    assert min(spent.values()) > 0
    steps = yaml.safe_load((root / "params.yaml").read_text())["sft"]["steps"]
    (num_laps,) = history.query("SELECT count(*) FROM costs WHERE purpose = 'training'").row(0)
    assert num_laps == steps + 1  # and the last checkpoint
    ran = run(root, "flows.cli", "history", "rebuild", "--out", "again.duckdb")
    assert ran.returncode == 0, ran.stderr
    again = History(root / "again.duckdb")
    for table in ("runs", "run_links", "costs", "run_problems"):
        assert again.query(f"FROM {table} ORDER BY ALL").rows() == history.query(f"FROM {table} ORDER BY ALL").rows()
    assert PROBLEM_ID in {row[1] for row in again.query("FROM run_problems").rows()}
    assert json.loads((root / "data/sft/run.json").read_text())["costs"][0].keys() == asdict(cost()).keys()
