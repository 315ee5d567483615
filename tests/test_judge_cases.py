"""A file of cases is read whole or refused with the line, and a digest tells whether a verdict answers a case."""

import json
from pathlib import Path

import pytest

from tasks.errors import RecordError
from tasks.judge.cases import read_cases
from tests.case_builders import REFERENCE, RIGHT, WRONG, case


def cases_file(folder: Path, *lines: object) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_cases_are_read_as_paths_or_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "ref.py").write_text(REFERENCE)
    path = cases_file(
        tmp_path,
        {"id": "a", "ref": "below/ref.py", "candidate": RIGHT},
        "",
        {"id": 7, "ref": str(tmp_path / "below/ref.py"), "candidate": "below/ref.py", "precision": "bf16", "more": 1},
    )
    monkeypatch.chdir("/")  # paths are relative to the file of cases, not to where the user stands
    first, second = read_cases(path, precision="tf32")
    assert (first.precision, second.precision) == ("tf32", "bf16")
    assert second.problem().precision == "bf16"
    assert (first.case_id, second.case_id) == ("a", 7)
    assert first.reference.source == second.reference.source == second.candidate.source == REFERENCE
    assert first.candidate.source == RIGHT


def test_cases_survive_a_byte_order_mark_and_odd_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    row = {"id": "a\u2028b", "ref": "x\n", "candidate": "y\n"}
    path.write_text("\ufeff" + json.dumps(row, ensure_ascii=False) + "\r\n\r\n", encoding="utf-8")
    assert [case.case_id for case in read_cases(path)] == ["a\u2028b"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("{", id="no JSON"),
        pytest.param([1], id="no object"),
        pytest.param({"id": "a", "ref": "r"}, id="no candidate"),
        pytest.param({"id": "a", "ref": "r", "candidate": None}, id="candidate is null"),
        pytest.param({"id": None, "ref": "r", "candidate": "c"}, id="id is null"),
        pytest.param({"id": "a", "ref": "r", "candidate": "c", "precision": "fp8"}, id="unknown precision"),
        pytest.param({"id": 1.5, "ref": "r", "candidate": "c"}, id="id is a fraction"),
        pytest.param(
            {"id": "a", "ref": "r", "candidate": "c", "precison": "bf16"}, id="a field with a slip of the pen"
        ),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, line: object) -> None:
    with pytest.raises(RecordError, match="line 2"):
        read_cases(cases_file(tmp_path, {"id": "a", "ref": "r", "candidate": "c"}, line))


def test_a_line_that_lacks_fields_says_which(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"line 1 is no case .* lacks ref, candidate$"):
        read_cases(cases_file(tmp_path, {"id": "a", "reference": "r"}))


def test_fields_that_mean_nothing_are_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = {"id": "a", "ref": "r", "candidate": "c"}
    path = cases_file(tmp_path, row, row | {"dtype": "bf16"}, row | {"dtype": "bf16", "note": 1, "precision": "bf16"})
    assert [case.precision for case in read_cases(path)] == ["fp32", "fp32", "bf16"]
    (said,) = caplog.messages
    assert said.endswith("fields that mean nothing here: dtype, note; a case has id, ref, candidate, precision")
    caplog.clear()
    read_cases(cases_file(tmp_path, row))
    assert not caplog.messages


def test_a_digest_changes_with_everything_that_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "candidate.py"
    before = case(file).digest
    file.write_text(RIGHT)
    digests = [before, case(file).digest, case(WRONG).digest, case(RIGHT, case_id="y").digest]
    digests.append(case(RIGHT, reference=RIGHT).digest)
    digests.append(case(RIGHT, precision="fp16").digest)
    assert len(set(digests)) == len(digests)
    assert case(file).digest == case(RIGHT).digest
