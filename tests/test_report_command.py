"""`cuda-l1 report`: a page of any history, without a project around it."""

import pytest
from report_builders import made_up_history

from flows.cli import main


def test_a_history_becomes_a_page(tmp_path, monkeypatch, capsys):
    history = made_up_history(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--history", str(history.path), "--out", "page.html"]) == 0
    assert capsys.readouterr().out.strip() == "page.html"
    assert "36 verdicts" in (tmp_path / "page.html").read_text()
    assert sorted(path.name for path in tmp_path.glob("*.html*")) == ["page.html"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--history", "none.duckdb"], "none.duckdb", id="no such history"),
        pytest.param(["--history", "text.duckdb"], "text.duckdb", id="not a history"),
        pytest.param(["--history", "history.duckdb", "--out", "none/page.html"], "--out", id="nowhere to write"),
    ],
)
def test_what_cannot_become_a_page_is_refused(tmp_path, monkeypatch, capsys, arguments, complaint):
    made_up_history(tmp_path)
    (tmp_path / "text.duckdb").write_text("a text")
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) in (1, 3)
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html*"))


def test_a_place_for_the_page_needs_a_history(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--out", "page.html"])
    assert ended.value.code == 2
    assert "--history" in capsys.readouterr().err
