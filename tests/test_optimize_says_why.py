"""Where nothing is written, everything says why: also where no candidate was right, or only a drop-in was slow."""

import contextlib
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from flows.optimizing.document import verdict_document
from flows.optimizing.judging import EFFECTS, FINAL, GRADIENTS, Record
from tasks.judge.verdict import Speedup, Status, Timing, Verdict
from tasks.params.generation import COMPILER
from tasks.search.found import Scored, surely_beaten
from tasks.search.proposers import Proposer
from tasks.search.report import DETAIL_CHARS, REASON_CHARS, one_line
from tasks.search.user_file import UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.rewriting import ORIGIN as REWRITES
from tests.optimize_builders import SOURCE, GivenJudges, Speeds, by_recipe, optimized, report_on, softmax_file

DETAIL = "its fast form keeps another kind of module as attention, " * 3


@pytest.fixture
def file(tmp_path: Path) -> UserFile:
    return softmax_file(tmp_path)


def other_effects(rung: str, candidate: Candidate) -> float | Status:
    return Status.WRONG_OUTPUT if rung == EFFECTS else by_recipe(call_softmax=3.0)(rung, candidate)


def unsettled_at_last(answers: int) -> Speeds:
    """Every candidate crashes but those after so many, which do not settle."""
    asked = set[str]()

    def speeds(rung: str, candidate: Candidate) -> Status:
        asked.add(candidate.candidate_id)
        return Status.CRASHED if len(asked) <= answers else Status.UNSTABLE

    return speeds


@pytest.mark.parametrize(
    ("speeds", "candidates", "words"),
    [
        pytest.param(
            lambda rung, candidate: Status.CRASHED,
            4,
            "all 4 candidates were refused, the first: crashed: given",
            id="all refused",
        ),
        pytest.param(
            lambda rung, candidate: Status.CRASHED, 1, "the only candidate was refused: crashed: given", id="the only"
        ),
        pytest.param(
            unsettled_at_last(2),
            4,
            "all 4 candidates were refused or did not settle, the first: crashed: given",
            id="some did not settle",
        ),
        pytest.param(by_recipe(), 0, "no candidate was judged", id="none"),
        pytest.param(
            by_recipe(call_softmax=1.23, call_softmax_drop_in=0.54),
            12,
            "a candidate was judged 1.23x (1.21 to 1.25) over eager, but its drop-in 0.54x (0.52 to 0.56)",
            id="a slow drop-in",
        ),
        pytest.param(
            by_recipe(call_softmax=2.0, call_softmax_drop_in=1.3, compile=1.5),
            12,
            "a candidate was judged 2.00x (1.98 to 2.02) over eager, but its drop-in 1.30x (1.28 to 1.32), and the "
            "best baseline, compile, 1.50x (1.48 to 1.52)",
            id="a drop-in slower than a baseline",
        ),
        pytest.param(
            other_effects,
            12,
            "a candidate was judged 3.00x (2.98 to 3.02) over eager, but its drop-in returns other containers, or "
            "leaves other buffers or attributes than the original: given",
            id="other effects",
        ),
    ],
)
def test_what_came_in_between_is_said_in_the_report_and_in_the_verdict(
    file: UserFile, speeds: Speeds, candidates: int, words: str
) -> None:
    outcome = optimized(file, GivenJudges(speeds), candidates=candidates)
    assert outcome.winner is None
    assert report_on(file, outcome).splitlines()[2] == f"**Nothing is written: {words}.**"
    assert verdict_document(file, outcome)["not_written_because"] == words


@pytest.mark.parametrize(
    "speeds",
    [
        pytest.param(by_recipe(), id="than eager"),
        pytest.param(by_recipe(call_softmax=1.3, compile=1.4), id="than the compiler"),
        pytest.param(by_recipe(call_softmax=0.9, call_amax=Status.WRONG_OUTPUT), id="and some were refused"),
    ],
)
def test_where_nothing_was_faster_that_is_all_that_is_said(file: UserFile, speeds: Speeds) -> None:
    outcome = optimized(file, GivenJudges(speeds))
    assert outcome.unwritten == ""
    assert report_on(file, outcome).splitlines()[2].startswith("**Nothing was found that is faster for sure")


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        pytest.param(
            by_recipe(call_softmax=1.3, compile=1.5),
            "A drop-in was judged 1.30x (1.28 to 1.32) over eager, and is faster than eager for sure. With "
            "`--baselines eager` the same command goes on from here and compares it with no others.",
            id="than the compiler's",
        ),
        pytest.param(by_recipe(call_softmax=1.01), None, id="than eager"),
    ],
)
def test_a_drop_in_that_a_baseline_beats_is_told_of_with_what_would_have_it_written(
    file: UserFile, speeds: Speeds, said: str | None
) -> None:
    report = report_on(file, optimized(file, GivenJudges(speeds)))
    assert said in report.splitlines() if said else "--baselines" not in report


def test_that_leaves_out_the_baselines_that_beat_it(file: UserFile, tmp_path: Path) -> None:
    speeds = by_recipe(call_softmax=1.3, compile=1.5)
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        assert optimized(file, GivenJudges(speeds), record=record).winner is None
    with contextlib.closing(Record(tmp_path, ["this"])) as record:
        judges = GivenJudges(speeds)
        outcome = optimized(file, judges, record=record, baselines=("eager",))
    assert outcome.speedup is not None
    assert outcome.speedup.median == pytest.approx(1.3)
    assert [rung for rung, _ in judges.asked] == [GRADIENTS]  # all else is known
    assert "**Not compared with compile: `--baselines` leaves it out. It may be as fast.**" in report_on(file, outcome)


def test_what_it_is_faster_than_is_named_with_eager_before_others() -> None:
    def timed(name: str, speedup: float) -> Scored:
        candidate = Candidate(problem_id="softmax", source=name, origin=f"baseline:{name}")
        status = Status.CORRECT if speedup else Status.CRASHED
        timing = Timing(baseline="eager", reference_ms=(speedup,) * 9, candidate_ms=(1.0,) * 9) if speedup else None
        verdict = Verdict(
            candidate_id=candidate.candidate_id,
            problem_id="softmax",
            status=status,
            device="test",
            protocol="test",
            timing=timing,
            seconds=0.0,
            judged_at=0.0,
        )
        return Scored(candidate=candidate, verdict=verdict, rung=FINAL)

    baselines = [timed("compile", 1.5), timed("compile_reduce_overhead", 0.0), timed("cuda_graph", 3.0)]
    assert surely_beaten(Speedup(median=2.0, low=1.9, high=2.1), baselines) == ["eager", "compile"]
    assert surely_beaten(Speedup(median=1.6, low=1.4, high=1.8), baselines) == ["eager"]
    assert surely_beaten(Speedup(median=1.0, low=0.9, high=1.1), baselines) == []


INHERITING = """import abc

import torch


class Base(torch.nn.Module):
    def forward(self, x):
        return torch.exp(x) / torch.sum(torch.exp(x), dim=1, keepdim=True)


class Softmax(abc.Other, Base):
    pass


def example_inputs():
    return torch.randn(32, 64)
"""


class Silent(Proposer):
    """One that has nothing to propose."""

    def __init__(self, name: str) -> None:
        self.name = name

    def propose(self, found: Sequence[Scored]) -> Candidate | None:
        return None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(SOURCE, "no candidate was judged, since none was proposed", id="a forward of its own"),
        pytest.param(
            INHERITING,
            "no candidate was judged, since none was proposed: rewrites change the forward in the text of Softmax, and "
            "cannot tell from the file that Base's would do the same in Softmax; add one with its steps to Softmax",
            id="an inherited one that cannot be told",
        ),
    ],
)
def test_why_no_candidate_is_proposed_is_said(tmp_path: Path, source: str, words: str) -> None:
    file = softmax_file(tmp_path, source)
    assert optimized(file, GivenJudges(by_recipe()), proposers=[Silent(REWRITES)]).unwritten == words
    of_the_compiler = optimized(file, GivenJudges(by_recipe()), proposers=[Silent("mine"), Silent(COMPILER)])
    assert of_the_compiler.unwritten == words


def test_of_a_hidden_forward_nothing_is_said_where_nobody_reads_it(tmp_path: Path) -> None:
    outcome = optimized(softmax_file(tmp_path, INHERITING), GivenJudges(by_recipe()), proposers=[Silent("mine")])
    assert outcome.unwritten == "no candidate was judged, since none was proposed"


def test_a_long_reason_is_cut_at_a_word_with_an_ellipsis(file: UserFile) -> None:
    outcome = optimized(file, GivenJudges(by_recipe()))
    outcome.progress.failed = {"whole": DETAIL, "cut": DETAIL * 4}
    reasons = dict(
        line[2:].split(": ", 1)
        for line in report_on(file, outcome).splitlines()
        if line.startswith(("- whole", "- cut"))
    )
    assert DETAIL_CHARS < len(DETAIL) <= REASON_CHARS
    assert reasons["whole"] == DETAIL
    for short, whole in ((reasons["cut"], DETAIL * 4), (one_line(DETAIL), DETAIL)):
        begun, ellipsis, rest = short.partition(" ...")
        assert (ellipsis, rest) == (" ...", "")
        assert whole.startswith(f"{begun} ")


def test_a_reason_without_spaces_is_cut_all_the_same() -> None:
    assert one_line("x" * 999) == "x" * DETAIL_CHARS + " ..."


def test_of_a_crash_is_told_what_was_raised_though_its_message_has_several_lines() -> None:
    x = torch.ones(2)
    with pytest.raises(TypeError) as caught:
        torch.lerp(x, 1.0, 0.1)  # type: ignore[call-overload]
    detail = "".join(traceback.format_exception(caught.value))
    assert one_line(detail).startswith("TypeError: lerp() received an invalid combination of arguments")
