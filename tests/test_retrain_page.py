"""What is shown of a comparison: rows, numbers, the page and the plot."""

import pytest

from flows.retraining.inbox import Arrival, Fate
from flows.retraining.page import arrivals_page
from tasks.problems.problem import Split
from tasks.report.comparison import Bout, Decision, Judgement, Skill, decide
from tasks.report.comparison_page import bout_rows, comparison_metrics, decision_page, speedup_plot

FAST = Skill(num_samples=4, num_correct=4, speedup=4.0)
FAILED = Skill(num_samples=4, num_correct=0, speedup=None)


def bouts(*, champion: Skill | None = FAILED) -> list[Bout]:
    return [
        Bout(problem_id="level1/a", split=Split.TRAIN, challenger=FAILED, champion=champion),
        Bout(problem_id="level1/b", split=Split.HELD_OUT, challenger=FAST, champion=champion),
        Bout(problem_id="level1/c", split=Split.HELD_OUT, challenger=FAILED, champion=champion),
    ]


def judged(pairs: list[Bout]) -> Judgement:
    return decide(pairs, deciding_splits=("held_out",), alpha=0.05, min_share_correct=0.1, seed=0)


def test_held_out_problems_come_first_and_failures_have_no_speedup():
    rows = bout_rows(bouts())
    assert [row["problem"] for row in rows] == ["level1/b", "level1/c", "level1/a"]
    assert (rows[0]["challenger"], rows[0]["champion"]) == ("4.000x, 4 of 4 correct", "0 of 4 correct")


def test_the_splits_are_summed_up_apart_with_failures_as_the_reference():
    metrics = comparison_metrics(bouts(), judged(bouts()))
    assert metrics["held_out/challenger/geomean"] == 2.0
    assert metrics["held_out/challenger/share_correct"] == 0.5
    assert metrics["train/challenger/geomean"] == 1.0
    assert metrics["speedup/p_better"] == 0.5


def test_the_page_says_why_and_links_what_has_an_address():
    pairs = bouts()
    judgement = judged(pairs)
    page = decision_page(
        judgement, comparison_metrics(pairs, judgement), {"champion": "http://host/1", "git tag": "v1"}
    )
    assert page.startswith("# Champion kept\n\nNo difference that chance")
    assert "| held_out | challenger | 50.0% | 2.000x |" in page
    assert "- [champion](http://host/1)" in page
    assert "- git tag: `v1`" in page


def test_a_first_policy_is_shown_alone():
    pairs = bouts(champion=None)
    assert judged(pairs).decision is Decision.FIRST
    assert not [name for row in bout_rows(pairs) for name in row if "champion" in name]
    assert "champion |" not in decision_page(judged(pairs), comparison_metrics(pairs, judged(pairs)), {})
    assert speedup_plot(pairs).startswith(b"\x89PNG")


def test_the_plot_is_a_picture():
    assert speedup_plot(bouts()).startswith(b"\x89PNG")


def test_arrivals_are_counted_and_refusals_quoted_as_code():
    arrivals = [
        Arrival(name="level1/a.py", fate=Fate.ADMITTED),
        Arrival(name="level1/b.py", fate=Fate.QUARANTINED, reason="raises `x`<img src=y>\nTraceback"),
    ]
    page = arrivals_page(arrivals)
    assert page.startswith("New problems: 1 admitted, 1 quarantined.\n")
    assert "- `level1/b.py` quarantined: `raises 'x'<img src=y>`\n" in page
    assert "Traceback" not in page
    assert arrivals_page([]).strip() == "New problems: none."


@pytest.mark.parametrize("speedup", [1.0, 1.1, 3.0, 64.0, 900.0])
def test_the_axis_of_the_plot_has_a_few_ticks_whatever_its_range(speedup, monkeypatch):
    from matplotlib.backends import backend_agg

    drawn = []

    class Canvas(backend_agg.FigureCanvasAgg):
        def print_figure(self, *arguments, **options):
            drawn.append(self.figure)
            return super().print_figure(*arguments, **options)

    monkeypatch.setattr(backend_agg, "FigureCanvasAgg", Canvas)
    skill = Skill(num_samples=4, num_correct=4, speedup=speedup)
    speedup_plot([Bout(problem_id="level1/a", split=Split.TRAIN, challenger=skill, champion=FAILED)])
    axes = drawn[0].axes[0]
    low, high = axes.get_xlim()
    assert 3 <= len([tick for tick in axes.get_xticks() if low <= tick <= high]) <= 12
