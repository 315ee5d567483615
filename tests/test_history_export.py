"""A history as Parquet files and back: equal bytes for equal contents, replaced whole, read back whole."""

import json
import os
import random
import shutil
from pathlib import Path

import duckdb
import polars
import pytest
from history_builders import distinct, problem, run, sample, verdict

from flows.cli import main
from tasks.errors import RecordError
from tasks.history import connection, export
from tasks.history.export import export_history, load_export
from tasks.history.schema import MIGRATIONS
from tasks.history.store import History

EVERYTHING = (
    "SELECT * FROM verdicts JOIN candidates USING (candidate_id) JOIN samples USING (candidate_id) ORDER BY ALL"
)


def fill(path, order):
    """Forty judged candidates in an order of their own, twenty a time."""
    judged = distinct(40)
    for numbers in (order[:20], order[20:]):
        batch = [judged[number] for number in numbers]
        samples = [sample(judged[number], number=number) for number in numbers]
        verdicts = [verdict(one) for one in batch]
        History(path).append(run(), problems=[problem()], candidates=batch, samples=samples, verdicts=verdicts)
    return path


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("filled") / "history.duckdb", range(40))


@pytest.fixture
def path(filled, tmp_path):
    return Path(shutil.copy(filled, tmp_path / "history.duckdb"))


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_every_table_is_a_sorted_parquet_file_that_anything_reads(path, tmp_path):
    rows = export_history(path, tmp_path / "exported")
    assert rows["verdicts"] == 40
    verdicts = polars.read_parquet(tmp_path / "exported" / "verdicts.parquet")
    assert verdicts["verdict_id"].is_sorted()
    assert verdicts.columns == History(path).query("FROM verdicts LIMIT 0").columns
    assert {file.stem for file in (tmp_path / "exported").glob("*.parquet")} == set(rows)


def test_equal_histories_give_equal_bytes_however_they_came_about(path, tmp_path):
    other = fill(tmp_path / "other.duckdb", random.Random(0).sample(range(40), 40))
    export_history(path, tmp_path / "one")
    export_history(other, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_export_replaces_the_one_before_and_leaves_nothing_else(path, tmp_path):
    folder = tmp_path / "exported"
    export_history(path, folder)
    before = contents(folder)
    History(path).append(run("another"))
    export_history(path, folder)
    assert contents(folder) != before
    assert {file.name for file in tmp_path.iterdir()} == {"history.duckdb", "history.duckdb.turns", "exported"}


def test_an_export_that_fails_leaves_the_one_before(path, tmp_path, monkeypatch):
    folder = tmp_path / "exported"
    export_history(path, folder)
    before = contents(folder)

    def interrupted(name, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_history(path, folder, on_table=interrupted)
    assert contents(folder) == before
    assert {file.name for file in tmp_path.iterdir()} == {"history.duckdb", "exported"}


def test_an_export_killed_between_the_two_steps_of_the_exchange_is_put_back(path, tmp_path):
    folder = tmp_path / "exported"
    export_history(path, folder)
    folder.rename(tmp_path / ".exported.replaced")
    with pytest.raises(RecordError):
        export_history(tmp_path / "missing.duckdb", folder)
    assert (folder / "manifest.json").exists()


def test_a_folder_of_something_else_is_left_as_it_is(path, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(RecordError, match="holds no export"):
        export_history(path, tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_link_to_a_folder_stays_and_what_it_leads_to_is_replaced(path, tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "exported"
    link.symlink_to("disk")
    for run_id in ("one", "two", "three"):
        History(path).append(run(run_id))
        export_history(path, link)
        assert link.is_symlink()
        assert run_id in polars.read_parquet(tmp_path / "disk" / "runs.parquet")["run_id"]
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"history.duckdb", "history.duckdb.turns", "exported", "disk"}


@pytest.mark.parametrize("name", ["notes.txt", "mine.parquet", "drafts"])
def test_a_file_of_the_user_beside_an_export_is_named_and_nothing_changes(path, tmp_path, name):
    folder = tmp_path / "exported"
    export_history(path, folder)
    if name == "drafts":
        (folder / name).mkdir()
    else:
        (folder / name).write_text("years of work")
    before = sorted(file.name for file in folder.iterdir())
    with pytest.raises(RecordError, match=f"exported holds {name} beside an export.*move it away or name another"):
        export_history(path, folder)
    assert sorted(file.name for file in folder.iterdir()) == before
    assert not list(tmp_path.glob(".exported*"))


def test_an_export_of_another_version_is_replaced_with_the_tables_that_it_had(path, tmp_path):
    folder = tmp_path / "exported"
    export_history(path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    shutil.copy(folder / "runs.parquet", folder / "expenses.parquet")
    manifest["tables"]["expenses"] = manifest["tables"]["runs"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    export_history(path, folder)
    assert not (folder / "expenses.parquet").exists()


def test_what_is_read_back_is_the_same_history(path, tmp_path):
    export_history(path, tmp_path / "exported")
    load_export(tmp_path / "exported", tmp_path / "back.duckdb")
    assert History(tmp_path / "back.duckdb").query(EVERYTHING).equals(History(path).query(EVERYTHING))
    export_history(tmp_path / "back.duckdb", tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "exported")


def test_an_export_of_an_older_version_is_read_and_migrated(path, tmp_path, monkeypatch):
    export_history(path, tmp_path / "exported")
    later = (
        *MIGRATIONS,
        "ALTER TABLE verdicts ADD COLUMN rounds INTEGER; UPDATE verdicts SET rounds = len(candidate_ms)",
    )
    monkeypatch.setattr(connection, "MIGRATIONS", later)
    monkeypatch.setattr(export, "MIGRATIONS", later)
    load_export(tmp_path / "exported", tmp_path / "back.duckdb")
    assert History(tmp_path / "back.duckdb").query("SELECT DISTINCT rounds FROM verdicts").item() == 9


def cut_off(folder):
    os.truncate(folder / "verdicts.parquet", 100)


def removed(folder):
    (folder / "candidates.parquet").unlink()


def from_another_export(folder):
    polars.read_parquet(folder / "runs.parquet").head(0).write_parquet(folder / "runs.parquet")


def without_manifest(folder):
    (folder / "manifest.json").unlink()


def with_another_manifest(folder):
    (folder / "manifest.json").write_text("[]")


def of_a_newer_version(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"schema_version": len(MIGRATIONS) + 1}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut_off, "is damaged: verdicts is not what was exported"),
        (removed, "no whole export"),
        (from_another_export, "is damaged: runs is not what was exported"),
        (without_manifest, "no whole export"),
        (with_another_manifest, "no whole export"),
        (of_a_newer_version, "exported by a newer version"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_spoiled_export_is_refused_and_nothing_is_made_of_it(path, tmp_path, spoil, message):
    folder = tmp_path / "exported"
    export_history(path, folder)
    spoil(folder)
    with pytest.raises(RecordError, match=message) as refused:
        load_export(folder, tmp_path / "back.duckdb")
    assert str(folder) in str(refused.value)
    assert not (tmp_path / "back.duckdb").exists()


@pytest.mark.parametrize("spoil", [cut_off, removed, with_another_manifest], ids=lambda spoil: spoil.__name__)
def test_a_spoiled_export_is_replaced_by_exporting_again(path, tmp_path, spoil):
    folder = tmp_path / "exported"
    export_history(path, folder)
    before = contents(folder)
    spoil(folder)
    export_history(path, folder)
    assert contents(folder) == before


def test_the_command_exports_and_reads_back_into_a_history_that_has_some_of_it(filled, tmp_path, monkeypatch, capsys):
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    shutil.copy(filled, tmp_path / "data" / "history.duckdb")
    assert main(["history", "export"]) == 0
    assert "data/history: 40 candidates" in capsys.readouterr().out
    with duckdb.connect(tmp_path / "data" / "history.duckdb") as database:
        database.execute("DELETE FROM verdicts WHERE verdict_id IN (SELECT verdict_id FROM verdicts LIMIT 7)")
    assert main(["history", "rebuild", "--from", "data/history"]) == 0
    assert "added 7 verdicts" in capsys.readouterr().out
    assert main(["history", "rebuild", "--from", "data/history", "--out", "new.duckdb"]) == 0
    assert History(tmp_path / "new.duckdb").query("SELECT count(*) FROM verdicts").item() == 40
