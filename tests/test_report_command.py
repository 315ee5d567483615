"""`cuda-l1 report`: a page of any history, without a project around it; and the pictures of a page."""

import os
import threading

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
        pytest.param(["--history", "none.duckdb"], 2, "there is no none.duckdb; check the path", id="no such history"),
        pytest.param(["--history", "text.duckdb"], 1, "text.duckdb", id="not a history"),
        pytest.param(["--history", "history.duckdb", "--out", "none/page.html"], 2, "--out", id="nowhere to write"),
        pytest.param(["--history", "."], 2, ". is a folder; name a file", id="a folder"),
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


def test_the_history_of_a_project_that_has_none_yet_appears_with_the_first_stage(tmp_path, monkeypatch, capsys):
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["report", "--history", "data/history.duckdb"])
    words = "there is no data/history.duckdb yet; it appears with the first stage that runs"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["history.duckdb", "link.html"])
def test_the_page_never_replaces_the_history(tmp_path, monkeypatch, capsys, name):
    history = made_up_history(tmp_path)
    (tmp_path / "link.html").symlink_to(history.path)
    before = history.path.read_bytes()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["report", "--history", "history.duckdb", "--out", name])
    assert "is the history" in capsys.readouterr().err
    assert history.path.read_bytes() == before


def test_a_page_goes_through_a_pipe_and_to_where_a_link_leads(tmp_path):
    history = made_up_history(tmp_path)
    pipe, link, given = tmp_path / "pipe", tmp_path / "link.html", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: given.append(pipe.read_text()), daemon=True)
    reader.start()
    link.symlink_to(tmp_path / "page.html")
    for out in (pipe, link):
        assert main(["report", "--history", str(history.path), "--out", str(out)]) == 0
    reader.join(timeout=10)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert given
    assert "36 verdicts" in given[0]
    assert "36 verdicts" in (tmp_path / "page.html").read_text()


def test_a_place_for_the_page_needs_a_history(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--out", "page.html"])
    assert ended.value.code == 2
    assert "--history" in capsys.readouterr().err


def test_pictures_need_a_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="install chromium"):
        take(tmp_path / "report.html", [], tmp_path)


def test_pictures_of_a_page_that_is_not_there_say_what_writes_one(tmp_path, capsys):
    assert screenshots([str(tmp_path / "none.html"), "--out", str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert f"there is no file {tmp_path}/none.html" in complaint
    assert "`cuda-l1 report" in complaint


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
