"""The history again from what stages left under data/."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from history_builders import distinct, run, verdict

from flows.cli import main
from flows.commands.history_rebuild import rebuild_history
from tasks.errors import RecordError
from tasks.history.records import verdict_id
from tasks.history.store import History
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Status
from tasks.params import load_params
from tasks.problems.catalogue import load_problems
from tasks.variants.candidate import Candidate

ROOT = Path(__file__).parent.parent
PROBLEM = "level1/mish"


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


WRITTEN = distinct(6, problem_id=PROBLEM)
# A policy wrote one of them again.
SAMPLED = [*distinct(3, problem_id=PROBLEM, origin="sft", start=5)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose stages filter_variants and evaluate have run; the texts are made up, the problems are ours."""
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "data" / "problems", tmp_path / "data" / "problems")
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    write(data / "generate_variants" / "candidates.jsonl", (one.to_json() for one in WRITTEN))
    write(data / "generate_variants" / "verdicts.jsonl", ())  # as where no language model was asked
    judged = [verdict(one, judged_at=1000.0 + n, status=Status.CORRECT) for n, one in enumerate(WRITTEN)]
    write(data / "filter_variants" / "verdicts.jsonl", (one.to_json() for one in judged))
    problems = load_problems(load_params().problems)
    judged = [verdict(one, judged_at=2000.0, status=Status.CRASHED) for one in SAMPLED]
    judged.append(verdict(baseline_candidate(problems[PROBLEM], "compile"), judged_at=2001.0))
    write(data / "evaluate" / "candidates.jsonl", (one.to_json() for one in SAMPLED))
    write(data / "evaluate" / "verdicts.jsonl", (one.to_json() for one in judged))
    write(data / "evaluate" / "contenders.jsonl", [verdict(WRITTEN[0], judged_at=3000.0).to_json()])
    write(
        data / "evaluate" / "samples.jsonl",
        (
            {"policy": policy, "mode": mode, "problem_id": PROBLEM, "candidate_id": one.candidate_id}
            for policy, mode in (("sft", "greedy"), ("sft", "sampled"))
            for one in SAMPLED
        ),
    )
    return tmp_path


def ask(project, sql):
    return History(project / "data" / "history.duckdb").query(sql).rows()


def test_every_verdict_comes_back_with_its_text_and_problem(project, capsys):
    assert main(["history", "rebuild"]) == 0
    assert ask(project, "SELECT stage, count(*) FROM stage_verdicts GROUP BY ALL ORDER BY ALL") == [
        ("evaluate", 5),
        ("filter_variants", 6),
    ]
    expected = {verdict_id(verdict(one, judged_at=1000.0 + n)) for n, one in enumerate(WRITTEN)}
    found = ask(project, "SELECT verdict_id FROM stage_verdicts WHERE stage = 'filter_variants'")
    assert {name for (name,) in found} == expected
    said = capsys.readouterr().out
    assert "evaluate: 5 verdicts, 6 samples and 0 costs" in said
    assert "not rebuilt" in said
    assert "prompts" in said


def test_who_wrote_a_text_first_is_kept_and_baselines_have_their_text(project):
    rebuild_history(project / "data" / "history.duckdb")
    origins = dict(ask(project, "SELECT candidate_id, origin FROM candidates"))
    assert origins[SAMPLED[0].candidate_id] == "rewrites"
    assert origins[SAMPLED[1].candidate_id] == "sft"
    assert "baseline:compile" in origins.values()


def test_samples_come_back_without_their_prompts(project):
    rebuild_history(project / "data" / "history.duckdb")
    found = ask(project, "SELECT step, number, temperature, completion, status FROM stage_samples ORDER BY ALL")
    temperature = load_params().evaluate.temperature
    assert [(step, number, heat) for step, number, heat, _, _ in found] == [
        (step, number, heat) for step, heat in ((1, 0.0), (2, temperature)) for number in range(3)
    ]
    assert {(completion, status) for *_, completion, status in found} == {("", "crashed")}


def test_doing_it_again_adds_nothing(project, capsys):
    main(["history", "rebuild"])
    before = ask(project, "FROM run_verdicts ORDER BY ALL")
    capsys.readouterr()
    assert main(["history", "rebuild"]) == 0
    assert capsys.readouterr().out.count("is there already") == 2
    assert ask(project, "FROM run_verdicts ORDER BY ALL") == before


def test_a_run_that_the_history_still_has_is_not_rebuilt_under_another_name(project):
    path = project / "data" / "history.duckdb"
    judged = [verdict(one, judged_at=1000.0 + n) for n, one in enumerate(WRITTEN)]
    problems = load_problems(load_params().problems)
    History(path).append(run("original"), problems=problems.values(), candidates=WRITTEN, verdicts=judged)
    filtered, evaluated = rebuild_history(path)
    assert (filtered.was_there, filtered.run_id) == (True, "original")
    assert not evaluated.was_there


def test_params_are_those_that_dvc_noted_with_the_outputs(project):
    noted = {"seed": 7, "evaluate": {"temperature": 0.25}}
    (project / "dvc.lock").write_text(
        yaml.safe_dump({"schema": "2.0", "stages": {"evaluate": {"params": {"params.yaml": noted}}}})
    )
    rebuild_history(project / "data" / "history.duckdb")
    found = ask(project, "SELECT stage, seed, params FROM runs ORDER BY stage")
    assert [(stage, seed) for stage, seed, _ in found] == [("evaluate", 7), ("filter_variants", 0)]
    assert json.loads(found[0][2]) == noted
    assert "judge" in json.loads(found[1][2])
    assert ask(project, "SELECT max(temperature) FROM samples") == [(0.25,)]


def test_another_file_is_made_on_request_and_the_history_stays(project):
    assert main(["history", "rebuild", "--out", "again.duckdb"]) == 0
    assert not (project / "data" / "history.duckdb").exists()
    assert History(project / "again.duckdb").query("SELECT count(*) FROM runs").item() == 2


def test_verdicts_on_what_is_gone_are_left_out_and_counted(project):
    gone = Candidate(problem_id="level1/gone", source="class ModelNew: ...\n", origin="rewrites")
    with (project / "data" / "filter_variants" / "verdicts.jsonl").open("a") as file:
        file.write(json.dumps(verdict(gone).to_json()) + "\n")
    filtered, _ = rebuild_history(project / "data" / "history.duckdb")
    assert (filtered.num_verdicts, filtered.num_left_out) == (6, 1)


def test_missing_texts_are_named(project):
    for stage in ("generate_variants", "evaluate"):
        (project / "data" / stage / "candidates.jsonl").unlink()
    with pytest.raises(RecordError, match=r"filter_variants: the texts of its 6 verdicts are missing; `dvc checkout`"):
        rebuild_history(project / "data" / "history.duckdb")


def test_without_any_output_it_says_so(project, capsys):
    for stage in ("filter_variants", "evaluate"):
        (project / "data" / stage / "verdicts.jsonl").unlink()
    (project / "data" / "evaluate" / "contenders.jsonl").unlink()
    assert main(["history", "rebuild"]) == 1
    assert "no stage has left anything" in capsys.readouterr().err
    assert not (project / "data" / "history.duckdb").exists()


def test_an_output_that_is_cut_off_is_named(project, capsys):
    path = project / "data" / "evaluate" / "verdicts.jsonl"
    path.write_text(path.read_text()[:-40])
    assert main(["history", "rebuild"]) == 1
    assert "verdicts.jsonl, line 4 is no JSON object" in capsys.readouterr().err
