import pytest

from flows.parts.journal import Journal, read_rows
from tasks.errors import RecordError


def test_rows_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append([{"a": 1}, {"a": 2}])
    journal.append([{"a": 3}])
    journal.close()
    assert [row["a"] for row in read_rows(tmp_path / "rows.jsonl")] == [1, 2, 3]


def test_a_line_cut_off_by_a_kill_is_dropped_and_overwritten(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2, "long": "xxxxxx')
    journal = Journal(path)
    assert journal.rows == [{"a": 1}]
    journal.append([{"a": 3}])
    journal.close()
    assert [row["a"] for row in read_rows(path)] == [1, 3]


def test_rows_are_on_disk_before_append_returns(tmp_path):
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append([{"a": 1}])
    assert read_rows(tmp_path / "rows.jsonl") == [{"a": 1}]


def test_a_damaged_line_is_refused_with_the_file_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(RecordError, match=r"rows\.jsonl.*nonsense"):
        read_rows(path)


def test_a_missing_output_says_what_makes_it(tmp_path):
    with pytest.raises(RecordError, match="dvc repro"):
        read_rows(tmp_path / "missing.jsonl")


def test_rows_that_are_not_kept_are_gone_from_the_file_and_appending_goes_on(tmp_path):
    journal = Journal(tmp_path / "rows.jsonl")
    journal.append([{"step": 1}, {"step": 2}, {"step": 3}])
    journal.close()
    journal = Journal(tmp_path / "rows.jsonl")
    journal.keep(lambda row: row["step"] <= 1)
    journal.append([{"step": 2}])
    journal.close()
    assert [row["step"] for row in read_rows(tmp_path / "rows.jsonl")] == [1, 2]
