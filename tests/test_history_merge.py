"""Taking several machines' histories into one: every row once, contradictions named, a file whole or not at all."""

import shutil

import duckdb
import pytest
from history_builders import candidate, distinct, problem, run, sample, verdict

from flows.cli import main
from tasks.errors import RecordError
from tasks.history import connection
from tasks.history.inspection import inspect_history
from tasks.history.merge import merge_history
from tasks.history.schema import MIGRATIONS
from tasks.history.store import History

COUNTS = "SELECT (SELECT count(*) FROM candidates), (SELECT count(*) FROM verdicts), (SELECT count(*) FROM runs)"


def recorded(path, run_id, candidates, **of_run):
    verdicts = [verdict(one) for one in candidates]
    samples = [sample(one, number=number) for number, one in enumerate(candidates)]
    one_run = run(run_id, **of_run)
    History(path).append(one_run, problems=[problem()], candidates=candidates, samples=samples, verdicts=verdicts)
    return path


def counts(path):
    return History(path).query(COUNTS).row(0)


def by_table(merged):
    return {table.table: table for table in merged}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A project with a history of ten candidates; the files of two other machines beside it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("dvc.yaml", "params.yaml"):
        (folder / name).write_text("")
    recorded(folder / "data" / "history.duckdb", "here", distinct(10))
    recorded(folder / "one.duckdb", "one", distinct(10, start=5))
    recorded(folder / "two.duckdb", "two", distinct(3, start=100))
    return folder


@pytest.fixture
def project(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rows_of_several_files_are_there_once(project, capsys):
    assert main(["history", "merge", "one.duckdb", "two.duckdb"]) == 0
    assert counts(project / "data" / "history.duckdb") == (18, 18, 3)
    assert inspect_history(project / "data" / "history.duckdb").mistakes == ()
    assert "added 5 candidates" in capsys.readouterr().out


def test_merging_again_adds_nothing(project, capsys):
    main(["history", "merge", "one.duckdb"])
    before = counts(project / "data" / "history.duckdb")
    capsys.readouterr()
    assert main(["history", "merge", "one.duckdb", "one.duckdb"]) == 0
    assert capsys.readouterr().out.count("nothing that is not here already") == 2
    assert counts(project / "data" / "history.duckdb") == before


def test_merging_into_a_file_that_is_not_there_yet_copies_all(project):
    merge_history(project / "new.duckdb", project / "one.duckdb")
    assert counts(project / "new.duckdb") == counts(project / "one.duckdb")


def test_a_text_that_another_found_first_there_stays_as_it_is_here_and_is_reported(project, capsys):
    target, other = project / "data" / "history.duckdb", project / "other.duckdb"
    (twin,) = distinct(1, origin="sft")
    recorded(other, "other", [twin])
    (table,) = [table for table in merge_history(target, other) if table.num_conflicts]
    assert (table.table, table.num_conflicts, table.keys) == ("candidates", 1, (twin.candidate_id,))
    assert table.columns == {"origin": 1, "run_id": 1}
    assert History(target).query("SELECT DISTINCT origin FROM candidates").item() == "rewrites"
    main(["history", "merge", "other.duckdb"])
    assert f"(origin 1, run_id 1) and stay as they are here: {twin.candidate_id}" in capsys.readouterr().out


def test_another_sample_under_the_same_number_is_reported_and_not_overwritten(tmp_path):
    one, other = distinct(2)
    target, source = tmp_path / "target.duckdb", tmp_path / "source.duckdb"
    for path, shown in ((target, one), (source, other)):
        History(path).append(run(), problems=[problem()], candidates=[one, other], samples=[sample(shown)])
    found = by_table(merge_history(target, source))["samples"]
    assert (found.num_added, found.num_conflicts, found.keys) == (0, 1, ("run-1/1/0",))
    assert History(target).query("SELECT candidate_id FROM samples").item() == one.candidate_id


def test_a_prompt_of_samples_that_stay_as_they_are_here_is_left_out(tmp_path):
    written = distinct(3)
    target = tmp_path / "target.duckdb"

    def record(path, prompt, count):
        samples = [sample(one, number=number, prompt=prompt) for number, one in enumerate(written[:count])]
        History(path).append(run(), problems=[problem()], candidates=written, samples=samples)
        return path

    record(target, "what was asked\n", 2)
    kept = by_table(merge_history(target, record(tmp_path / "rebuilt.duckdb", "", 2)))
    assert (kept["samples"].num_conflicts, kept["prompts"].num_added) == (2, 0)
    gained = by_table(merge_history(target, record(tmp_path / "with one more.duckdb", "", 3)))
    assert (gained["samples"].num_added, gained["prompts"].num_added) == (1, 1)
    assert inspect_history(target).mistakes == ()


def test_a_prompt_that_no_sample_there_uses_comes_along(tmp_path):
    (one,) = distinct(1)
    for prompt in ("of a step that was killed\n", "of the step that was taken again\n"):
        samples = [sample(one, prompt=prompt)]
        History(tmp_path / "source.duckdb").append(run(), problems=[problem()], candidates=[one], samples=samples)
    merge_history(tmp_path / "target.duckdb", tmp_path / "source.duckdb")
    assert History(tmp_path / "target.duckdb").query("SELECT count(*) FROM prompts").item() == 2


def test_of_many_contradictions_three_are_named(project):
    recorded(project / "other.duckdb", "other", distinct(9, origin="sft"))
    found = by_table(merge_history(project / "data" / "history.duckdb", project / "other.duckdb"))["candidates"]
    assert (found.num_conflicts, len(found.keys)) == (9, 3)


def test_a_run_that_is_another_one_here_refuses_its_file_and_no_other(project, capsys):
    recorded(project / "liar.duckdb", "here", distinct(4, start=200), seed=7)
    target = project / "data" / "history.duckdb"
    assert main(["history", "merge", "liar.duckdb", "two.duckdb"]) == 1
    said = capsys.readouterr()
    assert "liar.duckdb holds 1 run(s) that are recorded here with other contents (seed), such as here" in said.err
    assert "two.duckdb: added 3 candidates" in said.out
    assert counts(target) == (13, 13, 2)


def test_a_file_that_is_not_there_is_told_with_its_path_and_the_others_are_merged(project, capsys):
    assert main(["history", "merge", "none.duckdb", "two.duckdb"]) == 1
    said = capsys.readouterr()
    assert said.err == f"RecordError: there is no history at {project}/none.duckdb; check the path\n"
    assert "added 3 candidates" in said.out


def test_an_older_file_is_migrated_on_a_copy(project, monkeypatch):
    before = (project / "one.duckdb").read_bytes()
    later = (*MIGRATIONS, "ALTER TABLE verdicts ADD COLUMN cost_usd DOUBLE")
    monkeypatch.setattr(connection, "MIGRATIONS", later)
    merge_history(project / "data" / "history.duckdb", project / "one.duckdb")
    assert counts(project / "data" / "history.duckdb") == (15, 15, 2)
    assert (project / "one.duckdb").read_bytes() == before


def test_tables_and_columns_of_later_versions_come_along(project, monkeypatch):
    later = (
        *MIGRATIONS,
        "CREATE TABLE expenses (run_id VARCHAR PRIMARY KEY, usd DOUBLE); CREATE TABLE notes (words VARCHAR)",
        "ALTER TABLE runs ADD COLUMN mlflow_id VARCHAR",
    )
    monkeypatch.setattr(connection, "MIGRATIONS", later)
    with connection.writing(project / "one.duckdb") as database:
        database.execute("INSERT INTO expenses VALUES ('one', 0.5)")
        database.execute("INSERT INTO notes VALUES ('twice'), ('once')")
        database.execute("UPDATE runs SET mlflow_id = 'abc'")
    target = project / "data" / "history.duckdb"
    for _ in range(2):
        merge_history(target, project / "one.duckdb")
        assert History(target).query("FROM expenses").rows() == [("one", 0.5)]
        assert History(target).query("FROM notes ORDER BY ALL").rows() == [("once",), ("twice",)]
        assert History(target).query("SELECT mlflow_id FROM runs WHERE run_id = 'one'").item() == "abc"


def test_a_newer_file_is_refused_and_nothing_changes(project, capsys):
    target = project / "data" / "history.duckdb"
    with duckdb.connect(project / "one.duckdb") as database:
        database.execute("UPDATE schema_version SET version = ?", [len(MIGRATIONS) + 1])
    before = target.read_bytes()
    assert main(["history", "merge", "one.duckdb"]) == 1
    assert "one.duckdb was written by a newer version of this project" in capsys.readouterr().err
    assert target.read_bytes() == before


def test_a_merge_that_fails_midway_leaves_nothing_of_its_file(project):
    target = project / "data" / "history.duckdb"
    recorded(project / "liar.duckdb", "here", distinct(4, start=200), seed=7)
    before = counts(target)
    # Candidates and prompts come before runs in the order of tables: they were in when the run was looked at.
    with pytest.raises(RecordError, match="nothing of it was merged"):
        merge_history(target, project / "liar.duckdb")
    assert counts(target) == before


@pytest.mark.parametrize("name", ["data/history.duckdb", "data/../data/history.duckdb"])
def test_a_file_is_not_merged_into_itself(project, name, capsys):
    assert main(["history", "merge", name]) == 1
    assert "is the file to merge into" in capsys.readouterr().err


def test_a_candidate_with_odd_text_arrives_as_it_is(tmp_path):
    odd = candidate("class ModelNew: ...  # 'quoted\" \\ \U0001f600 \0\n")
    recorded(tmp_path / "it's.duckdb", "one", [odd])
    merge_history(tmp_path / "target.duckdb", shutil.copy(tmp_path / "it's.duckdb", tmp_path / "a copy's.duckdb"))
    assert History(tmp_path / "target.duckdb").query("SELECT source FROM candidates").item() == odd.source
