"""The report in a real browser: what a reader sees and does, against the data that the page was made of."""

import math
import sys
import time
from dataclasses import replace

import polars
import pytest
from browser import CHROMIUM, browser
from report_builders import made_up_exploration, made_up_history, made_up_report
from test_report_page import CONTRAST_OF_TEXT, HOSTILE

from tasks.report.exploration import explore
from tasks.report.page import render_history, render_report, render_tables
from tasks.report.tables import TextTable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]

ROWS = "[...document.querySelectorAll('{}')].map((row) => [...row.children].map((cell) => cell.textContent))"
DRAWN = "document.querySelectorAll('.plot .main-svg').length"
FIRST_KERNEL = "document.querySelector('#leaderboard-body a')"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return made_up_history(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def address(history, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_report(made_up_report(), explore(history)))
    return path.as_uri()


@pytest.fixture
def opened(tab, address):
    """The report, afresh and at a desk."""
    tab.prefer("light")
    tab.size(1280, 900)
    tab.console.clear()
    tab.open(address)
    return tab


def table(tab, selector):
    return tab.value(ROWS.format(selector))


def scroll_through(tab):
    """Every chart draws itself once it comes near; then none is left to draw."""
    tab.value(
        """(async () => {
            for (let y = 0; y < document.body.scrollHeight; y += 500) {
                scrollTo(0, y);
                await new Promise((done) => setTimeout(done, 60));
            }
        })()"""
    )
    tab.wait(
        "[...document.querySelectorAll('.plot:not([hidden])')].filter((plot) => plot.clientWidth)"
        ".every((plot) => plot.querySelector('.main-svg'))"
    )


def test_the_page_opens_without_an_error_or_a_request(opened, address):
    scroll_through(opened)
    assert opened.console == []
    assert opened.requests == [address]
    assert opened.value(DRAWN) >= 10


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        pytest.param("<img src='https://example.org/x.png'>", "Content Security Policy", id="a request"),
        pytest.param("<script>undefinedName()</script>", "undefinedName", id="a script's error"),
    ],
)
def test_a_request_or_an_error_would_be_noticed(tab, history, tmp_path, added, complaint):
    path = tmp_path / "report.html"
    path.write_text(render_history(explore(history), name="h").replace("</main>", f"{added}</main>"))
    tab.console.clear()
    tab.open(path.as_uri())
    assert any(complaint in line for line in tab.console)


def test_a_page_of_tables_has_title_links_and_sections_in_one_column(tab, tmp_path):
    made_up = TextTable(title="t", header=("name", "number"), rows=(("a", "1"),), labels=1, note="n")
    path = tmp_path / "tables.html"
    path.write_text(render_tables("Kernels rejudged", {"A device": [made_up], "Another": [made_up]}))
    tab.size(1600, 900)
    tab.visit(path.as_uri(), until="document.querySelector('section')")
    lefts = tab.value(
        "['h1', 'nav a', 'section'].map((name) => document.querySelector(name).getBoundingClientRect().x)"
    )
    assert lefts[0] > 20
    assert lefts == [lefts[0]] * 3


FILTERED = """
    SELECT count(*), count(*) FILTER (status = 'correct'), count(*) FILTER (status = 'cheated')
    FROM stage_verdicts WHERE {}
"""


@pytest.mark.parametrize(
    ("choices", "condition"),
    [
        pytest.param({}, "true", id="nothing"),
        pytest.param({"stage": "contrastive_rl"}, "stage = 'contrastive_rl'", id="stage"),
        pytest.param({"split": "held_out"}, "split = 'held_out'", id="split"),
        pytest.param({"level": "2"}, "level = 2", id="level"),
        pytest.param({"track": "kernel"}, "track = 'kernel'", id="track"),
        pytest.param({"origin": "rewrites", "level": "1"}, "origin = 'rewrites' AND level = 1", id="two at once"),
    ],
)
def test_filters_show_what_sql_counts(opened, history, choices, condition):
    for column, name in choices.items():
        opened.choose(f"filter-{column}", name)
    verdicts, correct, cheated = history.query(FILTERED.format(condition)).row(0)
    assert opened.value("document.getElementById('shown').textContent") == f"{verdicts} of 36 verdicts shown"
    rows = table(opened, "#verdict-table tbody tr")
    assert sum(int(row[1]) for row in rows) == verdicts
    assert sum(int(row[2]) for row in rows) == correct
    assert opened.value("document.querySelector('[data-tile=hacks] .value').textContent") == str(cheated)
    assert opened.value("[...document.querySelectorAll('#hacks-body tr')].length") == cheated
    solved = f"SELECT count(DISTINCT problem_id) FROM stage_verdicts WHERE status = 'correct' AND {condition}"
    assert len(table(opened, "#leaderboard-body tr")) == history.query(solved).item()


def test_all_filters_are_undone_at_once(opened):
    opened.choose("filter-level", "2")
    opened.choose("filter-split", "train")
    opened.value("document.getElementById('reset').click()")
    assert opened.value("document.getElementById('shown').textContent") == "36 of 36 verdicts shown"
    assert opened.value("document.getElementById('reset').disabled")


def test_a_split_also_hides_the_rows_of_the_evaluation(opened):
    opened.choose("filter-split", "held_out")
    visible = "[...document.querySelectorAll('#stages tbody tr:not([hidden])')].map((row) => row.dataset.split)"
    assert set(opened.value(visible)) == {"held_out"}


def test_the_leaderboard_sorts_both_ways_and_says_so(opened):
    speeds = [float(row[5].rstrip("x")) for row in table(opened, "#leaderboard-body tr")]
    assert speeds == sorted(speeds, reverse=True)
    opened.value("document.querySelectorAll('#leaderboard-head button')[5].click()")
    assert [float(row[5].rstrip("x")) for row in table(opened, "#leaderboard-body tr")] == sorted(speeds)
    assert opened.value("document.querySelectorAll('#leaderboard-head th')[5].getAttribute('aria-sort')") == "ascending"
    assert opened.value("document.activeElement.textContent").startswith("speedup")
    opened.value("document.querySelectorAll('#leaderboard-head button')[0].click()")
    names = [row[0] for row in table(opened, "#leaderboard-body tr")]
    assert names == sorted(names)


def test_a_kernel_opens_by_click_and_closes_by_going_back(opened):
    opened.value(f"{FIRST_KERNEL}.click()")
    opened.wait("document.querySelector('#kernel h1')")
    assert opened.value("document.getElementById('overview').hidden")
    assert opened.value("document.activeElement.tagName") == "H1"
    opened.wait("document.querySelector('#rounds .main-svg')")
    opened.value("history.back()")
    opened.wait("!document.getElementById('overview').hidden && document.getElementById('kernel').hidden")
    assert opened.console == []


def test_a_kernel_opens_by_its_address(opened, history, address):
    best = history.query("SELECT * FROM best_kernels WHERE origin = 'rewrites' ORDER BY speedup DESC LIMIT 1").row(
        0, named=True
    )
    opened.open(f"{address}#kernel-{best['candidate_id']}")
    opened.wait("document.querySelector('#kernel h1')")
    text = opened.value("document.getElementById('kernel').innerText")
    assert best["problem_id"] in text
    assert f"{best['speedup']:.2f}x over eager" in text
    reference, source = opened.value(
        "[...document.querySelectorAll('#kernel pre.source')].map((pre) => pre.textContent)"
    )
    assert source.strip() == best["source"].strip()
    assert "class Model(" in reference
    assert opened.value("document.querySelectorAll('#kernel .source .tok-k').length") >= 2
    assert "in_place" in text  # its recipe
    assert "fresh inputs" in text  # its checks
    parent = opened.value("document.querySelector('#kernel .relatives a').hash")
    opened.value("document.querySelector('#kernel .relatives a').click()")
    opened.wait(f"location.hash === '{parent}' && document.querySelectorAll('.recipe li').length === 1")


def test_an_unknown_kernel_says_how_to_find_it(opened, address):
    opened.open(f"{address}#kernel-0123456789abcdef")
    opened.wait("document.querySelector('#kernel h1')")
    assert "cuda-l1 sql" in opened.value("document.getElementById('kernel').textContent")


def test_numbers_behind_a_chart_can_be_read_as_a_table(opened):
    scroll_through(opened)
    opened.value("document.querySelector('#verdict-charts details').open = true")
    opened.wait("document.querySelector('#verdict-charts details table')")
    counts = table(opened, "#verdict-charts details tbody tr")
    assert sum(int(number) for row in counts for number in row[1:]) == 36


FAINT_TEXTS = """
(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const channels = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => {
        const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        const [x, y, z] = [r, g, b].map((c) => linear(c / 255));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const background = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const found = channels(getComputedStyle(at).backgroundColor);
            if (found[3] === 255) return found;
        }
        return channels(getComputedStyle(document.body).backgroundColor);
    };
    const faint = [];
    for (const node of document.querySelectorAll("body *")) {
        const isText = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
        if (!isText || !node.getClientRects().length || node.disabled || node.closest("script")) continue;
        const style = getComputedStyle(node);
        const ink = channels(node.closest("svg") ? style.fill : style.color);
        const [low, high] = [luminance(ink), luminance(background(node))].sort((a, b) => a - b);
        const name = node.className.baseVal ?? node.className;
        if ((high + 0.05) / (low + 0.05) < LIMIT) faint.push([node.tagName, name, node.textContent.slice(0, 40)]);
    }
    return faint;
})()
""".replace("LIMIT", str(CONTRAST_OF_TEXT))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["overview", "kernel"])
def test_every_text_stands_out(opened, scheme, place):
    opened.prefer(scheme)
    if place == "kernel":
        opened.value(f"{FIRST_KERNEL}.click()")
        opened.wait("document.querySelector('#rounds .main-svg')")
    else:
        scroll_through(opened)
    assert opened.value(FAINT_TEXTS) == []


def test_the_switch_beats_the_system_and_is_remembered(opened, address):
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.value(paper) == "rgb(255, 255, 255)"
    opened.choose("theme", "dark")
    assert opened.value(paper) == "rgb(21, 24, 29)"
    opened.open(address)
    assert opened.value(paper) == "rgb(21, 24, 29)"
    opened.choose("theme", "as the system")
    assert opened.value(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("place", ["overview", "kernel"])
def test_a_phone_never_scrolls_sideways(opened, place):
    opened.size(390, 844, is_phone=True)
    if place == "kernel":
        opened.value(f"{FIRST_KERNEL}.click()")
        opened.wait("document.querySelector('#rounds .main-svg')")
    else:
        scroll_through(opened)
    assert opened.value("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]


def test_a_hostile_source_is_shown_and_not_run(tab, tmp_path):
    path = tmp_path / "report.html"
    hostile = made_up_exploration(tmp_path, source=f"x = 1  # {HOSTILE}\n", detail=HOSTILE)
    path.write_text(render_history(hostile, name=HOSTILE))
    tab.console.clear()
    tab.size(1280, 900)
    tab.open(path.as_uri())
    tab.value(f"{FIRST_KERNEL}.click()")
    tab.wait("document.querySelector('#kernel pre.source')")
    assert "onerror=alert(1)" in tab.value("document.getElementById('kernel').textContent")
    assert tab.value("document.querySelectorAll('img').length") == 0
    assert tab.value("document.title").endswith("Faster kernels: the report")
    assert tab.console == []


def test_a_page_of_nothing_opens(tab, tmp_path, history):
    full = explore(history)
    empty = replace(
        full,
        **{name: getattr(full, name).clear() for name in ("verdicts", "champions", "baselines", "curves", "hacks")},
        pages=replace(full.pages, kernels={}, references={}),
    )
    path = tmp_path / "report.html"
    path.write_text(render_history(empty, name="h"))
    tab.console.clear()
    tab.open(path.as_uri())
    assert tab.console == []
    assert "No problem has a correct kernel here." in tab.value("document.body.innerText")
    assert "None was caught." in tab.value("document.body.innerText")


def test_a_hundred_thousand_verdicts_open(tab, tmp_path, history, capsys):
    """How long it takes is said, not asserted: it depends on the machine."""

    def say(line):
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    full = explore(history)
    times = math.ceil(100_000 / len(full.verdicts))
    spread = polars.concat([full.verdicts] * times).with_row_index("place")
    many = spread.with_columns(speedup=polars.col("speedup") * (1 + polars.col("place") % 997 / 997)).drop("place")
    path = tmp_path / "report.html"
    began = time.perf_counter()
    path.write_text(render_history(replace(full, verdicts=many), name="h"))
    written = time.perf_counter()
    tab.size(1280, 900)
    tab.open(path.as_uri())
    opened = time.perf_counter()
    say(
        f"{len(many)} verdicts: {path.stat().st_size:,} bytes, written in {written - began:.2f} s, "
        f"opened in {opened - written:.2f} s"
    )
    assert tab.value("document.getElementById('shown').textContent") == f"{len(many):,} of {len(many):,} verdicts shown"
    began = time.perf_counter()
    tab.choose("filter-stage", "contrastive_rl")
    say(f"filtered in {time.perf_counter() - began:.2f} s")
    scroll_through(tab)
    chosen = len(many.filter(polars.col("stage") == "contrastive_rl"))
    assert tab.value("document.getElementById('shown').textContent").startswith(f"{chosen:,} of")
