"""The report page: it works offline, can be read by everyone, and trusts no candidate."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from report_builders import made_up_exploration, made_up_report, problem, sample, timed_kernel

from tasks.problems.problem import Split
from tasks.report import kernel_pages, plots
from tasks.report.page import SOURCE_STYLES, render_history, render_report, source_css
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
    assert contrast(colour, background) >= 3


CONTRAST_OF_TEXT = 4.5


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("place", "background"), [(0, "#f4f6f8"), (1, "#1e232a")], ids=["light", "dark"])
def test_highlighted_sources_can_be_read(place, background):
    pairs = re.findall(r"\.tok-(\w+) \{ color: light-dark\((.+?), (.+?)\)", source_css())
    assert len(pairs) > 30
    faint = {
        name: colours[place]
        for name, *colours in pairs
        if colours[place] != "currentcolor" and contrast(colours[place], background) < CONTRAST_OF_TEXT
    }
    # What is inserted or deleted, headings and errors are no parts of a kernel's text.
    assert {name for name in faint if not name.startswith("g") and name != "err"} == set(), SOURCE_STYLES


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


@pytest.fixture(scope="module")
def exploration(tmp_path_factory):
    return made_up_exploration(tmp_path_factory.mktemp("history"))


def test_hostile_texts_reach_the_page_as_data_only(tmp_path, exploration):
    harmless = Outline(render_report(made_up_report(), exploration))
    poisoned = made_up_exploration(tmp_path, source=f"x = 1  # {HOSTILE}", detail=HOSTILE)
    hostile = Outline(render_report(made_up_report(detail=HOSTILE), poisoned))
    assert hostile.tags.count("script") == harmless.tags.count("script")
    assert "img" not in hostile.tags
    assert not [name for _, name, _ in hostile.attributes if name.startswith("on")]
    assert "{{ 7 * 7 }}" in hostile.text


def test_hostile_names_do_not_end_the_script_that_holds_a_figure(exploration):
    data = made_up_report()
    named = replace(data, samples=[sample(HOSTILE, speedup=2.0)], curves={HOSTILE: [{"step": 0, HOSTILE: 1.0}]})
    outline = Outline(render_report(named, exploration))
    assert "img" not in outline.tags
    assert outline.tags.count("script") < Outline(render_report(data, exploration)).tags.count("script")


@pytest.mark.parametrize("path", sorted(Path("tasks/report/templates/scripts").iterdir()), ids=lambda path: path.name)
def test_no_script_makes_markup_of_a_text(path):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(", path.read_text())


def test_the_page_refers_to_nothing_outside_itself(exploration):
    outline = Outline(render_report(made_up_report(), exploration))
    targets = [value for _, name, value in outline.attributes if name in ("src", "href", "action", "data", "poster")]
    assert targets
    assert all(target.startswith(("#", "data:")) for target in targets)
    anchors = {value for _, name, value in outline.attributes if name == "id"}
    assert {target[1:] for target in targets if target.startswith("#")} <= anchors


def test_the_page_can_be_read_without_seeing_it(exploration):
    outline = Outline(render_report(made_up_report(), exploration))
    assert [tag for tag in outline.tags if tag == "h1"] == ["h1"]
    assert ("html", "lang", "en") in outline.attributes
    assert {"header", "nav", "main"} <= set(outline.tags)
    levels = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    labelled = {value for tag, name, value in outline.attributes if (tag, name) == ("label", "for")}
    fields = {value for tag, name, value in outline.attributes if tag in ("select", "input") and name == "id"}
    assert fields - labelled == {"theme"}  # its label is around it


def test_a_number_is_quoted_with_its_device_protocol_and_number_of_problems(exploration):
    text = Outline(render_report(made_up_report(), exploration)).text
    assert "12 problems on Made-up processor, protocol test-1" in text
    assert "without a correct kernel a problem counts as 1.00x" in text
    assert "seed 0" in text
    assert "2.13.0" in text


def test_the_headline_counts_no_kernel_as_faster_that_may_be_so_by_noise(exploration):
    kernels = [timed_kernel(0.98, 0.99, 1.01, 1.02, 1.03), timed_kernel(1.4, 1.5, 1.6), timed_kernel(2.4, 2.5, 2.6)]
    kernels.append(BestKernel(problem=problem()))
    page = render_report(replace(made_up_report(), kernels=kernels), exploration)
    text = " ".join(Outline(page).text.split())
    assert re.search("50% ?of problems made faster", text)
    assert "all of the best kernel's interval is above 1.00x over eager; 25% have a median above 2.00x" in text


def test_a_history_without_policies_has_a_page(exploration):
    text = " ".join(Outline(render_history(exploration, name="some.duckdb")).text.split())
    assert "36 verdicts on 36 candidates for 6 problems on 1 device, all that some.duckdb remembers" in text
    assert "Stage by stage" not in text


def test_equal_records_make_equal_pages(exploration):
    assert render_history(exploration, name="h") == render_history(exploration, name="h")


def test_kernels_beyond_the_limit_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_pages, "MAX_PAGES", 4)
    some = made_up_exploration(tmp_path)
    assert len(some.pages.kernels) == 4
    text = " ".join(Outline(render_history(some, name="h")).text.split())
    assert re.search(r"4 kernels have a page here.* [1-9]\d* more are named without one", text)
