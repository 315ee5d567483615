"""The report page: it works offline, can be read by everyone, and trusts no candidate."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from report_builders import KERNEL, made_up_report, problem, sample, timed_kernel

from tasks.problems.problem import Split
from tasks.report import plots
from tasks.report.page import render_report
from tasks.report.summary import BestKernel

HOSTILE = "</script></pre><img src=x onerror=alert(1)>{{ 7 * 7 }}<script>document.title = 'owned'</script>"


def test_the_speed_curve_starts_at_the_share_correct_and_ends_at_none():
    samples = [sample(speedup=2.0), sample(speedup=4.0), sample(), sample()]
    (trace,) = plots.speed_curve(samples, split=Split.TRAIN).data
    assert trace.y == (0.5, 0.25, 0.0)
    assert trace.x[1:] == (2.0, 4.0)
    assert plots.speed_curve(samples, split=Split.HELD_OUT) is None


def luminance(colour):
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#15181d"])
@pytest.mark.parametrize("colour", [plots.BLUE, plots.AMBER, plots.GREEN, plots.PINK, plots.VIOLET, plots.GREY])
def test_colours_of_marks_stand_out_from_either_background(colour, background):
    lighter, darker = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 3


class Outline(HTMLParser):
    """The elements of a page, their attributes, and the text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self._open = [], [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open not in ("script", "style"):
            self.text += data


def test_a_hostile_source_is_shown_and_not_run():
    harmless = Outline(render_report(made_up_report(source=KERNEL, detail="d")))
    hostile = Outline(render_report(made_up_report(source=f"x = 1  # {HOSTILE}", detail=HOSTILE)))
    assert hostile.tags.count("script") == harmless.tags.count("script")
    assert "img" not in hostile.tags
    assert not [name for _, name, _ in hostile.attributes if name.startswith("on")]
    assert "onerror=alert(1)" in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text


def test_hostile_names_do_not_end_the_script_that_holds_a_figure():
    data = made_up_report()
    named = replace(data, curves={HOSTILE: [{"step": 0, HOSTILE: 1.0}]}, status_counts={HOSTILE: {"correct": 1}})
    outline = Outline(render_report(named))
    assert "img" not in outline.tags
    assert outline.tags.count("script") == Outline(render_report(data)).tags.count("script") - 4


def test_the_page_refers_to_nothing_outside_itself():
    outline = Outline(render_report(made_up_report()))
    targets = [value for _, name, value in outline.attributes if name in ("src", "href", "action", "data", "poster")]
    assert targets
    assert all(target.startswith(("#", "data:")) for target in targets)
    anchors = {value for _, name, value in outline.attributes if name == "id"}
    assert {target[1:] for target in targets if target.startswith("#")} <= anchors


def test_the_page_can_be_read_without_seeing_it():
    page = render_report(made_up_report())
    outline = Outline(page)
    assert [tag for tag in outline.tags if tag == "h1"] == ["h1"]
    assert ("html", "lang", "en") in outline.attributes
    levels = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    labelled = [tag for tag, name, value in outline.attributes if name == "aria-label" and value]
    drawings = [tag for tag, name, value in outline.attributes if (name, value) == ("role", "img")]
    assert set(drawings) == {"div", "svg"}
    assert all(labelled.count(tag) >= drawings.count(tag) for tag in set(drawings))


def test_a_number_is_quoted_with_its_device_protocol_and_number_of_problems():
    text = Outline(render_report(made_up_report())).text
    assert "12 problems on Made-up processor, protocol test-1" in text
    assert "without a correct kernel a problem counts as 1.00x" in text
    assert "seed 0" in text
    assert "2.13.0" in text


def test_the_headline_counts_no_kernel_as_faster_that_may_be_so_by_noise():
    kernels = [timed_kernel(0.98, 0.99, 1.01, 1.02, 1.03), timed_kernel(1.4, 1.5, 1.6), timed_kernel(2.4, 2.5, 2.6)]
    kernels.append(BestKernel(problem=problem()))
    text = " ".join(Outline(render_report(replace(made_up_report(), kernels=kernels))).text.split())
    assert re.search("50% ?of problems made faster", text)
    assert "all of the best kernel's interval is above 1.00x over eager; 25% have a median above 2.00x" in text


def test_a_report_of_nothing_still_reads():
    empty = replace(
        made_up_report(),
        problems=[],
        samples=[],
        summary=[],
        gains=[],
        kernels=[],
        curves={},
        baselines={},
        status_counts={},
    )
    text = Outline(render_report(empty)).text
    assert "No policy has been sampled." in text
    assert "No problem has a correct kernel." in text
    assert "Nothing has been judged." in text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def open_page(page, folder):
    """The page's elements after its scripts ran, and what the browser's console said.

    No name resolves, so the browser's own chatter stays on the machine. A request of the page's own is refused by its
    content security policy before that, which the console tells.
    """
    path = folder / "report.html"
    path.write_text(page)
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
        "--virtual-time-budget=10000",
        "--dump-dom",
    ]
    opened = subprocess.run([CHROMIUM, *flags, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return opened.stdout, [line for line in opened.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_opens_without_an_error_or_a_request(tmp_path):
    elements, console = open_page(render_report(made_up_report(source=f"x = 1  # {HOSTILE}")), tmp_path)
    assert console == []
    assert elements.count('<svg class="main-svg"') >= 10  # plotly drew the figures
    assert "<title>Faster kernels: the report</title>" in elements


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        pytest.param("<img src='https://example.org/x.png'>", "Content Security Policy", id="a request"),
        pytest.param("<script>undefinedName()</script>", "undefinedName", id="a script's error"),
    ],
)
def test_a_request_or_an_error_would_be_noticed(tmp_path, added, complaint):
    page = render_report(made_up_report()).replace("</main>", f"{added}</main>")
    _, console = open_page(page, tmp_path)
    assert any(complaint in line for line in console)
