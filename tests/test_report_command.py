"""`cuda-l1 report`: a page of any history, without a project around it; and the pictures of a page."""

import pytest
from browser import CHROMIUM
from report_builders import made_up_history

from flows.cli import main
from flows.screenshots import main as screenshots
from flows.screenshots import shots_of, take
from tasks.errors import MachineError
from tasks.report.exploration import explore
from tasks.report.page import render_history


def test_a_history_becomes_a_page(tmp_path, monkeypatch, capsys):
    history = made_up_history(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--history", str(history.path), "--out", "page.html"]) == 0
    assert capsys.readouterr().out.strip() == "page.html"
    assert "36 verdicts" in (tmp_path / "page.html").read_text()
    assert sorted(path.name for path in tmp_path.glob("*.html*")) == ["page.html"]


@pytest.mark.parametrize(
    ("arguments", "expected", "complaint"),
    [
        pytest.param(["--history", "none.duckdb"], 2, "there is no none.duckdb", id="no such history"),
        pytest.param(["--history", "text.duckdb"], 1, "text.duckdb", id="not a history"),
        pytest.param(["--history", "history.duckdb", "--out", "none/page.html"], 2, "--out", id="nowhere to write"),
    ],
)
def test_what_cannot_become_a_page_is_refused(tmp_path, monkeypatch, capsys, arguments, expected, complaint):
    made_up_history(tmp_path)
    (tmp_path / "text.duckdb").write_text("a text")
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["report", *arguments])
    except SystemExit as ended:
        status = ended.code
    assert status == expected
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html*"))


def test_a_place_for_the_page_needs_a_history(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--out", "page.html"])
    assert ended.value.code == 2
    assert "--history" in capsys.readouterr().err


def test_pictures_need_a_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="install chromium"):
        take(tmp_path / "report.html", [], tmp_path)


def test_pictures_of_a_page_that_is_none_are_refused(tmp_path, capsys):
    (tmp_path / "report.html").write_text("<p>something else</p>")
    assert screenshots([str(tmp_path / "report.html"), "--out", str(tmp_path)]) == 1
    assert "was it made by this version?" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome")
def test_a_picture_is_taken(tmp_path):
    page = tmp_path / "report.html"
    page.write_text(render_history(explore(made_up_history(tmp_path)), name="h"))
    wanted = next(shot for shot in shots_of(page) if shot.name == "report-kernel")
    (picture,) = take(page, [wanted], tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000  # an empty page is a few thousand
