"""What the opinions of a reward-checking model do: asked on jumps only, they withhold rewards and change no verdict."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from checker_builders import FIXED, PROBLEM, candidate, params, serving
from training_builders import SCALED_BY_CLAMP, SCALED_IN_PLACE, exemplar, verdict

from flows.engine import Stage
from flows.parts import checking
from flows.parts.checking import inquiry
from flows.parts.judging import Court
from tasks.errors import ParamsError
from tasks.history.exemplars import ExemplarPool
from tasks.history.hacks import HackCases, case_of
from tasks.history.store import History
from tasks.judge.jumps import jump
from tasks.judge.timing import PROTOCOLS
from tasks.judge.verdict import Speedup
from tasks.params import load_params
from tasks.training import checker
from tasks.training.rewards import RewardScale
from tasks.training.rollouts import Completion, RolloutScorer
from tasks.variants.candidate import Candidate


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    monkeypatch.setattr(checker, "RETRY_DELAY_S", 0.01)
    running.forget()
    return running


@pytest.mark.parametrize(
    ("speedup", "best", "is_jump"),
    [
        (3.01, None, True),
        (3.0, None, False),
        (2.9, None, False),
        (2.9, 1.44, True),
        (2.0, 1.0, False),
        (0.9, 0.4, True),
        (100.0, 90.0, True),
    ],
)
def test_a_jump_is_above_3x_or_above_twice_the_best_so_far(speedup, best, is_jump):
    assert bool(jump(speedup, best=best, times_reference=3.0, times_best=2.0)) is is_jump


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """A stage in a project folder of its own."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    return Stage(name="contrastive_rl", params=FIXED, key="k", folder=folder, run_id="run-1", started_at=1.7e9)


def opinions_of(stage, server, candidates, speedups, *, pool=None, **changes):
    """Ask about candidates in an inquiry of its own; which of them are withheld."""
    verdicts = [verdict(each, speedup=speedup) for each, speedup in zip(candidates, speedups, strict=True)]
    with inquiry(stage, {PROBLEM.problem_id: PROBLEM}, params(server.base_url, **changes)) as doubts:
        doubts.ask_about_jumps(candidates, verdicts, pool or ExemplarPool())
        return [doubts.withholds(each) for each in verdicts]


def distinct(count: int) -> list[Candidate]:
    return [candidate(f"{SCALED_IN_PLACE}# {number}\n") for number in range(count)]


def test_only_jumps_are_asked_about(stage, server):
    pool = ExemplarPool()
    pool.add(PROBLEM.problem_id, exemplar(SCALED_BY_CLAMP, speedup=1.2))
    withheld = opinions_of(stage, server, distinct(4), [4.0, 2.5, 2.3, None], pool=pool)
    assert withheld == [True, True, False, False]
    assert len(server.requests) == 2


def test_what_the_pool_holds_already_is_no_jump(stage, server):
    pool = ExemplarPool()
    pool.add(PROBLEM.problem_id, exemplar(speedup=9.0))
    assert opinions_of(stage, server, [candidate()], [9.0], pool=pool) == [False]
    assert server.requests == []


def test_an_opinion_that_it_is_honest_withholds_nothing(stage, server):
    assert opinions_of(stage, server, distinct(1), [9.0], model="honest") == [False]


def test_withholding_can_be_switched_off_and_the_opinion_is_kept_all_the_same(stage, server):
    assert opinions_of(stage, server, distinct(1), [9.0], withholds_reward=False) == [False]
    assert History(checking.HISTORY).query("SELECT is_hack FROM opinions").item() is True


def test_a_verdict_of_the_long_tier_ends_the_doubt(stage, server):
    (one,) = distinct(1)
    screened = verdict(one, speedup=9.0)
    settled = Speedup(median=8.8, low=8.7, high=8.9)
    with inquiry(stage, {PROBLEM.problem_id: PROBLEM}, params(server.base_url)) as doubts:
        doubts.ask_about_jumps([one], [screened], ExemplarPool())
        assert doubts.withholds(screened)
        assert not doubts.withholds(replace(screened, timing=replace(screened.timing, settled=settled)))


def test_the_limit_of_questions_holds_for_the_run_and_is_said_once(stage, server, capsys):
    candidates = distinct(5)
    for _ in range(2):
        opinions_of(stage, server, candidates, [9.0] * 5, max_questions=3)
    assert len(server.requests) == 3
    said = capsys.readouterr().err
    assert said.count("no more questions") == 2  # once in each of the two sittings


def test_a_resumed_run_asks_nothing_twice_and_still_withholds(stage, server):
    candidates = distinct(2)
    first = opinions_of(stage, server, candidates, [9.0, 9.0])
    again = opinions_of(stage, server, candidates, [9.0, 9.0])
    assert first == again == [True, True]
    assert len(server.requests) == 2
    assert History(checking.HISTORY).query("SELECT count(*) FROM opinions").item() == 2


def test_an_endpoint_that_fails_costs_opinions_and_nothing_else(stage, server, capsys):
    candidates = distinct(12)
    verdicts = [verdict(each, speedup=9.0) for each in candidates]
    with inquiry(stage, {PROBLEM.problem_id: PROBLEM}, params(server.base_url, "status-500", retries=0)) as doubts:
        for each, found in zip(candidates, verdicts, strict=True):
            doubts.ask_about_jumps([each], [found], ExemplarPool())
        assert not any(map(doubts.withholds, verdicts))
    assert len(server.requests) == checking.FAILURES_IN_A_ROW
    said = capsys.readouterr().err
    assert said.count("opinions are missing, verdicts stand as they are") == 1
    assert "0 opinion(s), 0 of them that it is a hack, 3 missing" in said


def test_a_history_that_cannot_be_written_costs_no_opinion(stage, server, capsys):
    Path("data").write_text("a file where the folder should be")
    assert opinions_of(stage, server, distinct(2), [9.0, 9.0]) == [True, True]
    assert capsys.readouterr().err.count("opinions are kept in the journal only") == 1


def test_the_most_similar_cases_of_the_collection_are_shown(stage, server):
    cases = HackCases(checking.HISTORY)
    for number in range(5):
        source = SCALED_IN_PLACE if number == 3 else f"class Other{number}:\n    def f{number}(self): ...\n"
        cases.add(case_of(name=f"case-{number}", group="S1", source=source, words="", origin="user"))
    opinions_of(stage, server, [candidate(SCALED_BY_CLAMP)], [9.0])
    prompt = server.requests[0]["messages"][0]["content"]
    assert "case-3 (S1)" in prompt
    assert prompt.count(" (S1), similarity") == 3


def test_without_an_endpoint_nobody_is_asked_and_nothing_is_written(stage):
    (one,) = distinct(1)
    with inquiry(stage, {PROBLEM.problem_id: PROBLEM}, params(None)) as doubts:
        doubts.ask_about_jumps([one], [verdict(one, speedup=99.0)], ExemplarPool())
        assert not doubts.withholds(verdict(one, speedup=99.0))
    assert not checking.HISTORY.exists()


def scorer(is_withheld, speedups: dict[str, float | None]) -> RolloutScorer:
    return RolloutScorer(
        judge=lambda candidates: [verdict(each, speedup=speedups[each.source]) for each in candidates],
        pool=ExemplarPool(),
        scale=RewardScale(clip=1.5),
        style="compact",
        group_size=3,
        novelty_bonus=0.0,
        is_withheld=is_withheld,
    )


def completions(*texts: str) -> list[Completion]:
    return [Completion(problem_id=PROBLEM.problem_id, prompt="p", exemplar_ids=(), text=text) for text in texts]


def test_a_withheld_reward_has_no_advantage_and_teaches_nothing():
    speedups = {"a = 1\n": 2.0, "b = 1\n": 64.0, "c = 1\n": None}
    doubted = scorer(lambda found: found.speedup == 64.0, speedups)
    fast, withheld, failed = doubted.score(completions(*speedups))
    assert (fast.reward, failed.reward) == (pytest.approx(1.0), -1.5)
    assert withheld.reward == pytest.approx((fast.reward + failed.reward) / 2)
    assert withheld.verdict.is_correct
    assert [each.speedup for each in doubted.pool.of(PROBLEM.problem_id)] == [2.0]
    assert doubted.scale.state_dict()[PROBLEM.problem_id][0] == 1


def test_a_failure_is_a_failure_whatever_is_thought_of_it():
    speedups = {"a = 1\n": 2.0, "b = 1\n": None, "c = 1\n": None}
    rollouts = scorer(lambda found: True, speedups).score(completions(*speedups))
    assert [rollout.reward for rollout in rollouts] == [pytest.approx(-1.5), -1.5, -1.5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_url": "http://127.0.0.1:1/v1", "model": None}, "needs a model"),
        ({"base_url": "http://me:secret@host/v1"}, "pattern"),
        ({"base_url": "host/v1"}, "pattern"),
        ({"retries": -1}, "greater than or equal to 0"),
    ],
)
def test_params_that_cannot_work_are_refused(tmp_path, changes, said):
    document = yaml.safe_load(Path("params.yaml").read_text())
    document["checker"] |= changes
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ParamsError, match=said):
        load_params(path)


class RememberingJudge:
    """Says that every text is correct and 6x as fast, and remembers what it was told was the best."""

    def __init__(self) -> None:
        self.device = "test"
        self.protocol = PROTOCOLS["cpu"]
        self.environment = {"torch": "2.13.0"}
        self.told: list[float | None] = []

    def judge(self, problem, candidate, *, seed, best_speedup):
        self.told.append(best_speedup)
        return verdict(candidate, speedup=6.0)


def test_the_judge_is_told_the_best_known_speedup_so_that_it_looks_twice_at_a_jump(stage):
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": {stage.name: {"params": ["seed"]}}}))
    judge = RememberingJudge()
    earlier = [
        replace(verdict(each, speedup=speedup), protocol=protocol, environment=judge.environment)
        for each, speedup, protocol in zip(
            distinct(3), (1.5, 2.5, 70.0), (PROTOCOLS["cpu"], PROTOCOLS["cpu"], "older"), strict=True
        )
    ]
    court = Court(stage, judge, {PROBLEM.problem_id: PROBLEM}, known=earlier, journal="verdicts.jsonl", workers=1)
    court.judge([candidate("a = 1\n")])
    court.judge([candidate("b = 1\n")])
    court.close()
    assert judge.told == [2.5, 6.0]
