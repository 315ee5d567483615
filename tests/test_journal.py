from types import SimpleNamespace

import pytest

from flows.parts.accounting import Expenses
from flows.parts.checking import Inquiry
from flows.parts.drawn import Drawn
from flows.parts.journal import Journal, read_rows
from flows.parts.sampling import draw
from flows.retraining.arrivals import noted_arrivals
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


@pytest.mark.parametrize("line", ["nonsense", "[]", "5", '"words"', ""])
@pytest.mark.parametrize(
    ("read", "remedy"), [(read_rows, "delete the file"), (Journal, "remove that line: what it held is done again")]
)
def test_a_line_in_the_middle_that_is_no_object_is_named_by_its_number(tmp_path, read, remedy, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"a": 1}}\n{line}\n{{"a": 3}}\n')
    with pytest.raises(RecordError, match=rf"rows\.jsonl, line 2 is no JSON object: b.*; {remedy}"):
        read(path)
    assert path.read_text() == f'{{"a": 1}}\n{line}\n{{"a": 3}}\n'


def draw_again(path):
    stage = SimpleNamespace(folder=path.parent)
    draw(stage, None, [], name="sft", origin="sft", temperature=None, seed=0, expenses=None)


def ask_again(path):
    Inquiry(SimpleNamespace(folder=path.parent, params=SimpleNamespace(judge=None)), {}, None, None)


@pytest.mark.parametrize(
    ("name", "opened", "remedy"),
    [
        pytest.param("costs.jsonl", Expenses, "remove that line: .* not counted", id="costs"),
        pytest.param("arrivals.jsonl", noted_arrivals, "remove that line: .* not announced", id="arrivals"),
        pytest.param(
            "rollouts.jsonl", lambda path: Drawn(path.parent, done_steps=1), "delete .*begins anew", id="steps"
        ),
        pytest.param("draws-sft.jsonl", draw_again, 'remove all from .* "cost" .* sampled again', id="completions"),
        pytest.param("opinions.jsonl", ask_again, "remove that line: .* missing", id="opinions"),
        pytest.param("candidates.jsonl", lambda path: Drawn(path.parent, done_steps=1), "delete .*anew", id="texts"),
    ],
)
def test_what_is_not_done_again_has_a_remedy_of_its_own(tmp_path, name, opened, remedy):
    (tmp_path / name).write_text("nonsense\n{}\n")
    with pytest.raises(RecordError, match=rf"{name}, line 1 is no JSON object.*; {remedy}"):
        opened(tmp_path / name)


def test_a_step_whose_text_is_not_there_is_named_with_both_files_and_the_remedy(tmp_path):
    (tmp_path / "candidates.jsonl").write_text("")  # as after a disk's fault
    (tmp_path / "rollouts.jsonl").write_text('{"step": 1, "candidate_id": "abc"}\n')
    said = r"rollouts\.jsonl names the candidate abc, whose text is not in .*candidates\.jsonl; delete .*begins anew"
    with pytest.raises(RecordError, match=said):
        Drawn(tmp_path, done_steps=5)


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
