"""A reference that cannot serve as the truth is found before anybody trains on it; one that can is not refused."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tasks.judge import input_pool
from tasks.judge.baselines import baseline_candidate
from tasks.judge.examine import Finding, examine_problem, examine_problems
from tasks.judge.judge import Judge
from tests.judge_builders import PARAMS, problem_of
from tests.odd_references import EASILY_REFUSED, FATAL, GOOD, IDLE, program


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(replace(PARAMS, workers=1)) as judge:
        yield judge


@pytest.fixture(scope="module")
def findings() -> dict[str, list[Finding]]:
    """Of all programs, examined one after the other by one fork server."""
    sources = GOOD | {name: source for name, (source, _) in (FATAL | {f"idle {k}": v for k, v in IDLE.items()}).items()}
    examined = examine_problems([problem_of(source) for source in sources.values()])
    return dict(zip(sources, examined, strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_a_reference_in_any_usual_form_is_accepted(name: str, findings: dict[str, list[Finding]]) -> None:
    assert findings[name] == []


@pytest.mark.parametrize("name", FATAL)
def test_a_reference_that_cannot_be_the_truth_is_refused_in_words(
    name: str, findings: dict[str, list[Finding]]
) -> None:
    (finding,) = findings[name]
    assert finding.is_fatal
    assert FATAL[name][1] in finding.words


@pytest.mark.parametrize("name", IDLE)
def test_what_could_be_left_out_is_told_but_not_refused(name: str, findings: dict[str, list[Finding]]) -> None:
    found = findings[f"idle {name}"]
    assert any(IDLE[name][1] in finding.words for finding in found)
    assert not any(finding.is_fatal for finding in found)


@pytest.mark.parametrize("name", EASILY_REFUSED)
def test_the_reference_itself_passes_as_a_candidate(name: str, judge: Judge) -> None:
    problem = problem_of(GOOD[name])
    verdict = judge.judge(problem, baseline_candidate(problem, "eager"), seed=0)
    assert verdict.status in ("correct", "unstable"), verdict.detail


@pytest.mark.parametrize("mixes", [True, False], ids=["any values", "positive definite"])
def test_inputs_are_mixed_only_where_the_reference_takes_mixtures(
    mixes: bool, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_pool, "MIXED_BYTES", 0)
    mixtures = []
    mixed = input_pool.mixed

    def mixed_and_noted(*given: Any) -> Any:
        if (mixture := mixed(*given)) is not None:
            mixtures.append(mixture)
        return mixture

    monkeypatch.setattr(input_pool, "mixed", mixed_and_noted)
    definite = "return torch.linalg.cholesky(x @ x.mT + 4.0 * torch.eye(32)) + self.linear.bias[:1]"
    forward = definite if mixes else definite.replace("x @ x.mT + 4.0 * torch.eye(32)", "x")
    inputs = "x = torch.randn(32, 32)\n    return [x if MIXES else x @ x.mT + 4.0 * torch.eye(32)]"
    problem = problem_of(program(forward, inputs=inputs.replace("MIXES", str(mixes))))
    verdict = judge.judge(problem, baseline_candidate(problem, "eager"), seed=0)
    assert verdict.status in ("correct", "unstable"), verdict.detail
    assert (len(mixtures) > 1) == mixes


def test_one_problem_alone_can_be_examined() -> None:
    assert examine_problem(problem_of(program())) == []
