"""The judge survives anything: whatever the text, a verdict and never an exception, and then business as usual."""

import random
import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flows.benches.specimens import read_collection
from flows.soaks.fuzz import COLLECTION, RIGHT, Fuzzer, fuzz_case, is_failure
from flows.soaks.fuzz_programs import GENERATORS
from tasks.judge.baselines import baseline_candidate
from tasks.judge.judge import Judge
from tasks.judge.screen import screen
from tasks.judge.verdict import Status, Verdict
from tasks.variants.candidate import Candidate
from tests.judge_builders import PARAMS, problem

PROBLEM = problem("row_softmax")
SOURCES = [specimen.candidate.source for specimen in read_collection(COLLECTION)]
# No shrinking and no deadline: a case that fails is printed whole, and the machine's speed is nobody's fault.
QUICK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(replace(PARAMS, workers=1, trials=2, timeout_s=3.0)) as judge:
        yield judge


def judged(judge: Judge, source: str) -> Verdict:
    return judge.judge(PROBLEM, Candidate(problem_id=PROBLEM.problem_id, source=source, origin="fuzz"), seed=0)


@settings(max_examples=200, **QUICK)
@given(st.text() | st.binary().map(lambda text: text.decode(errors="surrogateescape")))
def test_any_text_has_a_verdict(judge: Judge, text: str) -> None:
    assert judged(judge, text).status in (Status.COMPILE_ERROR, Status.REJECTED)
    assert judged(judge, f"ModelNew = 1\n{text}").status is not Status.CORRECT


@pytest.mark.parametrize(("kind", "max_examples"), [("program", 40), ("answers", 25), ("mutant", 25)])
def test_any_program_has_a_verdict(judge: Judge, kind: str, max_examples: int) -> None:
    @settings(max_examples=max_examples, **QUICK)
    @given(st.randoms(use_true_random=False))
    def has_a_verdict(rng: random.Random) -> None:
        source = GENERATORS[kind](rng, [rng.choice(SOURCES), *SOURCES])
        assert Verdict.from_json(judged(judge, source).to_json()).status in Status

    has_a_verdict()
    assert judged(judge, baseline_candidate(PROBLEM, "eager").source).status in RIGHT


@pytest.mark.parametrize("kind", GENERATORS)
def test_any_program_passes_the_screen_or_is_told_why_not(kind: str) -> None:
    for seed in range(300):
        rng = random.Random(seed)
        screened = screen(GENERATORS[kind](rng, [rng.choice(SOURCES), *SOURCES]))
        assert (screened.status is None) == (not screened.detail)


@pytest.mark.parametrize("kind", ["program", "mutant"])
def test_many_programs_get_past_the_parser(kind: str) -> None:
    """Otherwise all the others would prove little."""
    passed = 0
    for seed in range(1000):
        rng = random.Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            passed += screen(GENERATORS[kind](rng, [SOURCES[seed % len(SOURCES)], *SOURCES])).status is None
    assert passed >= 450  # of programs nearly all do, of mutants about half


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    specimens = read_collection(COLLECTION)
    first, again = (fuzz_case(7, seed=1, specimens=specimens) for _ in range(2))
    assert first == again
    assert fuzz_case(8, seed=1, specimens=specimens) != first


def test_an_exception_of_the_judge_is_kept_with_its_case(tmp_path) -> None:
    case = fuzz_case(3, seed=0, specimens=read_collection(COLLECTION))
    row = Fuzzer(Judge(PARAMS), tmp_path).try_case(replace(case, candidate=baseline_candidate(PROBLEM, "eager")))
    assert is_failure(row)  # a judge that is not open raises
    assert "not open" in (tmp_path / "failures" / "3.txt").read_text()
    assert "ModelNew" in (tmp_path / "failures" / "3.py").read_text()
