"""What two runs found otherwise, as people and programs read it."""

import json

import pytest
from history_builders import distinct, problem, run, verdict

from flows.cli import main
from tasks.errors import RecordError
from tasks.history.difference import compare_runs
from tasks.history.store import History
from tasks.judge.verdict import Status

STEADY, FASTER, BROKEN, MENDED, OTHER_DEVICE = distinct(5)
(WON,) = distinct(1, problem_id="level1/won")
(LOST,) = distinct(1, problem_id="level1/lost")
PROBLEMS = [problem(), problem("level1/won"), problem("level1/lost")]


def record(path, run_id, *, git_commit, verdicts, started_at):
    texts = [STEADY, FASTER, BROKEN, MENDED, OTHER_DEVICE, WON, LOST]
    one = run(run_id, stage="evaluate", git_commit=git_commit, started_at=started_at)
    History(path).append(one, problems=PROBLEMS, candidates=texts, verdicts=verdicts)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Two runs of evaluate, and one of another stage."""
    path = tmp_path_factory.mktemp("project") / "data" / "history.duckdb"
    before = [
        verdict(STEADY, speedup=2.0),
        verdict(FASTER, speedup=1.5, judged_at=1.0),
        verdict(FASTER, speedup=2.0, judged_at=2.0),
        verdict(BROKEN, speedup=0.5),
        verdict(MENDED, status=Status.CRASHED),
        verdict(OTHER_DEVICE, speedup=1.0),
        verdict(LOST, speedup=1.2),
    ]
    after = [
        verdict(STEADY, speedup=2.0, judged_at=9.0),
        verdict(FASTER, speedup=3.0, judged_at=9.0),
        verdict(BROKEN, status=Status.WRONG_OUTPUT, judged_at=9.0),
        verdict(MENDED, speedup=0.7, judged_at=9.0),
        verdict(OTHER_DEVICE, speedup=5.0, device="another processor", judged_at=9.0),
        verdict(WON, speedup=1.1, judged_at=9.0),
        verdict(LOST, speedup=0.9, judged_at=9.0),
    ]
    record(path, "evaluate-aaa-1", git_commit="1234abcd", verdicts=before, started_at=1.0)
    record(path, "evaluate-bbb-2", git_commit="9876fedc", verdicts=after, started_at=2.0)
    History(path).append(run("sft-ccc-3", stage="sft"))
    return History(path)


@pytest.fixture
def found(history):
    return compare_runs(history, "evaluate-aaa-1", "evaluate-bbb-2")


def names(changes):
    return {change.after.candidate_id for change in changes}


def test_other_statuses_are_found_both_ways(found):
    assert names(found.statuses) == {BROKEN.candidate_id, MENDED.candidate_id}
    (broken,) = [change for change in found.statuses if change.after.candidate_id == BROKEN.candidate_id]
    assert (broken.before.status, broken.after.status) == ("correct", "wrong_output")


def test_speedups_differ_where_their_intervals_do_not_meet_under_the_same_conditions(found):
    assert names(found.speedups) == {FASTER.candidate_id, LOST.candidate_id}
    (faster,) = [change for change in found.speedups if change.after.candidate_id == FASTER.candidate_id]
    # The last word of a run that judged twice.
    assert (faster.before.speedup, faster.after.speedup) == (2.0, 3.0)


def test_a_problem_is_won_or_lost_by_its_fastest_candidate(found):
    assert [change.problem_id for change in found.new_wins] == ["level1/won"]
    assert [change.problem_id for change in found.lost_wins] == ["level1/lost"]
    assert found.new_wins[0].before is None


def test_it_says_how_much_was_compared_and_where(found):
    assert (found.num_a, found.num_b, found.num_shared) == (6, 7, 6)
    assert found.conditions_a == ("a processor, protocol-1",)
    assert found.conditions_b == ("a processor, protocol-1", "another processor, protocol-1")


def test_a_run_differs_in_nothing_from_itself(history):
    same = compare_runs(history, "evaluate-aaa", "evaluate@12")
    assert same.run_a == same.run_b == "evaluate-aaa-1"
    assert (same.statuses, same.speedups, same.new_wins, same.lost_wins) == ((), (), (), ())


@pytest.mark.parametrize("name", ["evaluate-bbb-2", "evaluate-b", "evaluate@9876", "evaluate@9876fedc"])
def test_a_run_is_named_by_its_id_or_its_commit(history, name):
    assert compare_runs(history, name, "sft").run_a == "evaluate-bbb-2"


def test_an_ambiguous_name_lists_the_runs_it_fits(history):
    with pytest.raises(RecordError, match="say which: evaluate-aaa-1, evaluate-bbb-2"):
        compare_runs(history, "evaluate", "sft")


@pytest.mark.parametrize("name", ["evaluate@ffff", "judge", "evaluate-zzz"])
def test_an_unknown_name_says_how_to_find_runs(history, name):
    with pytest.raises(RecordError, match="no run is called"):
        compare_runs(history, name, "sft")


@pytest.fixture
def project(history, monkeypatch):
    root = history.path.parent.parent
    for name in ("dvc.yaml", "params.yaml"):
        (root / name).write_text("")
    monkeypatch.chdir(root)


def test_the_command_shows_a_table(project, capsys):
    assert main(["history", "diff", "evaluate-aaa", "evaluate-bbb"]) == 0
    said = capsys.readouterr().out
    assert "candidates judged: 6 in A, 7 in B, 6 in both" in said
    assert f"level1/relu  {FASTER.candidate_id}  2.00x (2.00 to 2.00)  ->  3.00x (3.00 to 3.00)" in said
    assert f"level1/won  {WON.candidate_id}  nothing correct  ->  1.10x" in said


def test_the_command_gives_everything_as_json(project, capsys):
    assert main(["history", "diff", "evaluate-aaa", "evaluate-bbb", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {change["problem_id"] for change in found["new_wins"]} == {"level1/won"}
    assert found["speedups"][0]["after"]["speedup_low"] > 0


def test_check_tells_people_and_programs_what_the_file_is(project, capsys):
    assert main(["history", "check"]) == 0
    said = capsys.readouterr().out
    assert "a history of schema" in said
    assert "every row can be read" in said
    assert main(["history", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_rows"]["runs"] == 3
