"""How many answers are bought of one generator for one problem, and when they are judged."""

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from flows.parts.buying import Market
from flows.parts.trials import Bought, Trial, cost_of
from flows.soaks.provider import hostile_server
from tasks.errors import WorkerError
from tasks.judge.verdict import Status, Verdict
from tasks.params import GenerateVariantsParams
from tasks.variants.candidate import Candidate
from tasks.variants.llm.ledger import Ledger, Outcome
from tests import history_builders
from tests.llm_builders import generator, requests_in
from tests.training_builders import problem


class QuickCourt:
    """Stands in for the court: says what a text is worth by looking at it, and counts how often it was asked."""

    def __init__(self, *, right: Status = Status.CORRECT) -> None:
        self.right = right
        self.num_batches = 0

    def judge(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        self.num_batches += 1
        return [history_builders.verdict(each, status=self._status(each.source)) for each in candidates]

    def _status(self, source: str) -> Status:
        is_right = "class ModelNew" in source and "0.5 * " not in source
        return self.right if is_right else Status.WRONG_OUTPUT


class BrokenCourt(QuickCourt):
    def judge(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        raise WorkerError("the judge's fork server has died")


@pytest.fixture
def log(tmp_path):
    log = tmp_path / "server.jsonl"
    log.touch()
    return log


@pytest.fixture
def url(log):
    with hostile_server(log) as url:
        yield url


def run(court: QuickCourt, folder: Path, url: str, *models: str, problems: int = 1, **changes) -> list[list[Trial]]:
    values = {"trials": 6, "successes": 2, "max_tokens": None, "max_usd": 1.0, "max_per_problem": 1, "depth": 1}
    values |= {"draws": 1, "compiled_share": 0.0, "faulty_share": 0.0}
    names = [model.replace(" ", "-") for model in models]
    generators = dict(zip(names, (generator(url, model) for model in models), strict=True))
    params = GenerateVariantsParams(providers=tuple(names), generators=generators, **values | changes)
    asked = [problem(f"scaled{number}") for number in range(problems)]
    with closing(Ledger(folder / "purchases.sqlite")) as ledger:
        told: list[Trial] = []
        market = Market(params, court, ledger, device="cpu", workers=2, on_trial=told.append)
        by_pair = asyncio.run(market.buy_all(asked))
    by_request = [
        {trial.purchase.request_id: trial for trial in trials} for trials in (told, itertools.chain(*by_pair))
    ]
    assert by_request[0] == by_request[1]
    return by_pair


@pytest.mark.parametrize(
    ("model", "bought", "successes"),
    [
        pytest.param("right", 2, 2, id="all right: two are enough"),
        pytest.param("same", 6, 1, id="the same text again is no second success"),
        pytest.param("chatty", 6, 0, id="none right: all trials are used up"),
        pytest.param("cut", 6, 0, id="lost ones count as trials"),
        pytest.param("status-422", 2, 0, id="a prompt that is refused for good is not sent six times"),
    ],
)
def test_as_many_answers_are_bought_as_it_takes(log, url, tmp_path, model, bought, successes):
    (trials,) = run(QuickCourt(), tmp_path, url, model)
    assert len(trials) == len(requests_in(log)) == bought
    assert len({trial.success for trial in trials} - {None}) == successes


def test_none_is_bought_that_could_have_been_spared(log, url, tmp_path):
    by_pair = run(QuickCourt(), tmp_path, url, "wrong half", problems=6)
    for trials in by_pair:
        right = [trial.success is not None for trial in trials]
        assert (sum(right) == 2 and right[-1]) or (sum(right) < 2 and len(trials) == 6)
    again = run(QuickCourt(), tmp_path, url, "wrong half", problems=6)
    assert [[t.purchase for t in trials] for trials in again] == [[t.purchase for t in trials] for trials in by_pair]


def test_a_candidate_whose_timing_does_not_settle_is_a_success(log, url, tmp_path):
    (trials,) = run(QuickCourt(right=Status.UNSTABLE), tmp_path, url, "right")
    assert len(trials) == 2


def test_nothing_more_is_bought_for_a_problem_whose_reference_fails(log, url, tmp_path):
    (trials,) = run(QuickCourt(right=Status.BAD_PROBLEM), tmp_path, url, "right")
    assert len(trials) == 2


def test_answers_are_judged_while_others_are_still_being_written(url, tmp_path):
    court = QuickCourt()
    run(court, tmp_path, url, "right", "slow", trials=1)
    assert court.num_batches == 2  # the court takes both at once where it is asked at the end


def test_a_judge_that_fails_ends_the_stage_with_its_own_error_and_keeps_what_was_bought(log, url, tmp_path):
    with pytest.raises(BaseExceptionGroup) as failed:
        run(BrokenCourt(), tmp_path, url, "right")
    assert failed.group_contains(WorkerError)
    with closing(Ledger(tmp_path / "purchases.sqlite")) as ledger:
        assert ledger.spent().tokens > 0


def test_metrics_say_what_came_of_each_generators_questions(log, url, tmp_path):
    by_pair = run(QuickCourt(), tmp_path, url, "right", "chatty", trials=3, max_tokens=6500)
    trials = [trial for pair in by_pair for trial in pair]
    with closing(Ledger(tmp_path / "purchases.sqlite")) as ledger:
        metrics = Bought(trials=trials, spent=ledger.spent()).metrics()
    assert metrics["right/successes"] == metrics["right/form_program"] == 2
    assert metrics["project_tokens"] == metrics["right/tokens"] + metrics["chatty/tokens"] <= 6500
    outcomes = sum(metrics.get(f"{name}/{outcome}", 0) for name in ("right", "chatty") for outcome in Outcome)
    assert outcomes == len(trials)


def test_a_run_pays_for_what_it_bought_and_not_for_what_it_found_in_the_ledger(log, url, tmp_path):
    first = [trial for pair in run(QuickCourt(), tmp_path, url, "right", "cut", trials=2) for trial in pair]
    between = time.time()
    both = [trial for pair in run(QuickCourt(), tmp_path, url, "right", "chatty", trials=2) for trial in pair]
    with closing(Ledger(tmp_path / "purchases.sqlite")) as ledger:
        costs = [cost for trial in first if (cost := cost_of(trial, ledger, since=0.0))]
        later = [cost for trial in both if (cost := cost_of(trial, ledger, since=between))]
    assert sum(cost.price_usd for cost in costs) == pytest.approx(sum(trial.purchase.cost.usd for trial in first))
    assert {cost.candidate_id is None for cost in costs} == {True, False}  # what was cut off may have been charged
    assert {cost.candidate_id for cost in later} == {
        trial.candidate.candidate_id for trial in both if trial.question.generator == "chatty"
    }


def test_without_language_models_neither_client_nor_judge_is_loaded():
    program = "import sys, flows.generate_variants; print({'openai', 'torch', 'duckdb', 'asyncio'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "set()\n"
