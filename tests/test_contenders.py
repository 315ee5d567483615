"""A best kernel is one that was correct twice: where the fastest fails the second time, the next one is tried."""

from collections.abc import Sequence

from flows.parts.contenders import ROUNDS, fastest_first, time_again
from tasks.judge.verdict import Status, Verdict
from tasks.variants.candidate import Candidate
from tests.history_builders import candidate, distinct, verdict

FAST, MIDDLE, SLOW = distinct(3)
OTHER = candidate("class ModelNew: ...  # of another problem\n", problem_id="level1/tanh")


class NotedJudge:
    """Finds the candidates correct that it was made with, and notes what it was asked."""

    def __init__(self, *sound: Candidate) -> None:
        self.asked: list[list[Candidate]] = []
        self._sound = sound

    def __call__(self, batch: Sequence[Candidate]) -> list[Verdict]:
        self.asked.append(list(batch))
        return [verdict(each, status=Status.CORRECT if each in self._sound else Status.WRONG_OUTPUT) for each in batch]


def test_the_fastest_by_their_last_verdict_come_first_and_what_it_does_not_find_correct_does_not_come() -> None:
    failed = candidate("class ModelNew: ...  # correct at first\n")
    texts = {each.candidate_id: each for each in (SLOW, MIDDLE, FAST, OTHER, failed)}
    judged = [
        verdict(SLOW, speedup=9.0),
        verdict(failed, speedup=8.0),
        *(verdict(each, speedup=speedup) for each, speedup in ((MIDDLE, 1.2), (OTHER, 1.0), (FAST, 1.5))),
        verdict(SLOW, speedup=1.1),
        verdict(failed, status=Status.WRONG_OUTPUT),
    ]
    assert fastest_first(texts, judged) == {"level1/relu": [FAST, MIDDLE, SLOW], "level1/tanh": [OTHER]}


def test_a_candidate_whose_text_is_not_known_cannot_be_timed_again() -> None:
    assert fastest_first({SLOW.candidate_id: SLOW}, [verdict(FAST), verdict(SLOW)]) == {"level1/relu": [SLOW]}


def test_only_problems_whose_fastest_failed_get_their_next_ones_judged() -> None:
    judge = NotedJudge(MIDDLE, OTHER)
    waiting = {FAST.problem_id: [FAST, MIDDLE, SLOW], OTHER.problem_id: [OTHER]}
    candidates, verdicts = time_again(waiting, judge, at_once=1)
    assert judge.asked == [[FAST, OTHER], [MIDDLE]]
    assert candidates == [FAST, OTHER, MIDDLE]
    assert [found.is_correct for found in verdicts] == [False, True, True]


def test_so_many_as_are_to_be_compared_are_judged_together() -> None:
    judge = NotedJudge(SLOW)
    time_again({FAST.problem_id: [FAST, MIDDLE, SLOW]}, judge, at_once=2)
    assert judge.asked == [[FAST, MIDDLE], [SLOW]]


def test_a_problem_of_which_everything_fails_comes_to_an_end() -> None:
    judge = NotedJudge()
    time_again({FAST.problem_id: distinct(ROUNDS + 3)}, judge, at_once=1)
    assert [len(batch) for batch in judge.asked] == [1] * ROUNDS
