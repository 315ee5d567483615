"""A search that asks: what is shown, how much is asked for, and what ends it. With writers whose answers are given."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

import pytest

from tasks.errors import ProviderError
from tasks.history.exemplars import ExemplarPool
from tasks.history.islands import Islands
from tasks.judge.verdict import Status, Timing, Verdict
from tasks.params import ExemplarsParams
from tasks.search.contrastive import MOST_FUTILE, Contrastive, IslandsChoice
from tasks.search.search import SCREEN, Budget, Progress, Search
from tasks.search.writers import REFUSED, Asked, Written
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar
from tests.training_builders import problem

CHOICE = ExemplarsParams(count=2, bucket_width=0.5, bucket_temperature=1.0)
Answer = str | Exception | None
"""A program, what goes wrong, or nothing for as long as the test lasts."""


class GivenWriter:
    """Answers at once, as the test says."""

    name = "given"

    def __init__(self, answer: Callable[[Asked], Answer], *, at_once: int = 1, batch: int = 1) -> None:
        self.answer = answer
        self.at_once, self.batch = at_once, batch
        self.asked: list[Asked] = []
        self.is_closed = False

    def can_show(self, exemplar: Exemplar) -> bool:
        return "unshowable" not in exemplar.source

    def prompt(self, exemplars: Sequence[Exemplar]) -> tuple[str, Sequence[Exemplar]]:
        return " ".join(f"{exemplar.speedup}" for exemplar in exemplars), exemplars

    def begin(self, batch: Sequence[Asked]) -> Future[list[Written]]:
        self.asked += batch
        future: Future[list[Written]] = Future()
        answers = [self.answer(asked) for asked in batch]
        for answer in answers:
            if isinstance(answer, Exception):
                future.set_exception(answer)
                return future
        if None not in answers:
            future.set_result([written(str(answer)) for answer in answers])
        return future

    def close(self) -> None:
        self.is_closed = True


def written(source: str) -> Written:
    return Written(completion=source, source=source or None, form="program" if source else "no_program")


def speedup_in_text(candidate: Candidate, rung: str, best: float | None) -> Verdict:
    """The number at the end of a text is its speedup; 0 is wrong."""
    speedup = float(candidate.source.split()[-1])
    return Verdict(
        candidate_id=candidate.candidate_id,
        problem_id=candidate.problem_id,
        status=Status.CORRECT if speedup else Status.WRONG_OUTPUT,
        device="cpu",
        protocol="given",
        detail="given",
        timing=Timing(baseline="eager", reference_ms=(speedup,), candidate_ms=(1.0,)) if speedup else None,
        seconds=0.0,
        judged_at=0.0,
    )


def searched(
    *writers: GivenWriter,
    candidates: int | None = 8,
    known: Sequence[Asked] = (),
    seconds: float = 60.0,
    islands: IslandsChoice | None = None,
) -> Progress:
    proposers = [
        Contrastive(problem(), writer, choice=CHOICE, seed=0, islands=islands, known=known, candidates=candidates)
        for writer in writers
    ]
    search = Search(speedup_in_text, proposers, budget=Budget(seconds=seconds, candidates=candidates), workers=1)
    search.screen()
    search.look_again(keep=0)
    return search.progress


def test_prompts_show_what_was_found_and_only_what_is_right() -> None:
    writer = GivenWriter(lambda asked: f"text {asked.number} {[1, 0, 4, 2][asked.number % 4]}")
    searched(writer, candidates=6)
    shown = [set(map(float, asked.prompt.split())) for asked in writer.asked]
    assert shown[0] == set()
    assert shown[1] == shown[2] == {1.0}
    assert shown[3] == {1.0, 4.0}
    assert all(len(speeds) == 2 for speeds in shown[3:])
    assert all(asked.prompt.split() == sorted(asked.prompt.split()) for asked in writer.asked)


def test_what_a_writer_cannot_show_is_not_drawn() -> None:
    writer = GivenWriter(lambda asked: f"unshowable {asked.number} 2")
    searched(writer)
    assert {asked.exemplar_ids for asked in writer.asked} == {()}


def test_what_others_found_is_shown_too() -> None:
    good, poor = (
        GivenWriter(lambda asked: f"good {asked.number} 8"),
        GivenWriter(lambda asked: f"poor {asked.number} 0"),
    )
    good.name, poor.name = "good", "poor"
    searched(good, poor)
    assert any("8.0" in asked.prompt for asked in poor.asked)


def ids_of(writer: GivenWriter, progress: Progress) -> dict[int, str]:
    texts = {each.candidate.source.split()[1]: each.candidate.candidate_id for each in progress.at(SCREEN)}
    return {asked.number: texts[str(asked.number)] for asked in writer.asked}


def test_with_islands_a_prompt_shows_only_what_was_answered_to_prompts_from_its_own() -> None:
    writer = GivenWriter(lambda asked: f"text {asked.number} {2 ** (asked.number % 5)}")
    progress = searched(writer, candidates=24, islands=IslandsChoice(count=3, reset_rounds=100))
    ids, islands = ids_of(writer, progress), Islands(ExemplarPool(), count=3, reset_steps=100, seed=0)
    asked_about = {number: islands.asked(number // 3 + 1, number % 3) for number in ids}
    shown = {asked.number: set(asked.exemplar_ids) for asked in writer.asked}
    for number, exemplars in shown.items():
        assert exemplars <= {ids[other] for other in range(number) if asked_about[other] == asked_about[number]}
    assert sum(map(len, shown.values())) > 12


def test_what_others_propose_lives_on_every_island() -> None:
    good, poor = (
        GivenWriter(lambda asked: f"good {asked.number} 8"),
        GivenWriter(lambda asked: f"poor {asked.number} 0"),
    )
    good.name, poor.name = "good", "poor"
    searched(good, poor, candidates=40, islands=IslandsChoice(count=4, reset_rounds=1))
    assert all("8.0" in asked.prompt for asked in poor.asked[1:])


def test_a_search_that_was_killed_asks_on_from_the_islands_as_they_were() -> None:
    def answer(asked: Asked) -> str:
        return f"text {asked.number} {1.0 + 7 * asked.number % 11}"

    islands = IslandsChoice(count=3, reset_rounds=2)
    whole, first, second = GivenWriter(answer), GivenWriter(answer), GivenWriter(answer)
    searched(whole, candidates=30, islands=islands)
    searched(first, candidates=17, islands=islands)
    known = [replace(asked, written=written(answer(asked))) for asked in first.asked]
    searched(second, candidates=30, islands=islands, known=known)
    assert first.asked == whole.asked[:17]
    assert second.asked[1:] == whole.asked[18:]  # the first is asked before anything is judged again


def test_an_island_that_begins_anew_shows_the_best_of_another_and_forgets_its_own() -> None:
    def shown(reset_rounds: int) -> list[set[float]]:
        writer = GivenWriter(lambda asked: f"text {asked.number} {1.0 + asked.number}")
        searched(writer, candidates=40, islands=IslandsChoice(count=2, reset_rounds=reset_rounds))
        return [set(map(float, asked.prompt.split())) for asked in writer.asked]

    kept, renewed = shown(100), shown(5)
    assert kept[:10] == renewed[:10]  # five rounds of two
    assert all(len(speeds) == 2 for speeds in kept[6:])
    assert next(speeds for speeds in renewed[10:] if len(speeds) == 1) == {10.0}


@pytest.mark.parametrize(("at_once", "batch"), [(1, 1), (4, 1), (1, 4)], ids=["one", "side by side", "batches"])
def test_no_more_is_asked_for_than_can_be_judged(at_once: int, batch: int) -> None:
    writer = GivenWriter(lambda asked: f"text {asked.number} 1", at_once=at_once, batch=batch)
    progress = searched(writer, candidates=8)
    assert len(progress.at(SCREEN)) == 8
    assert len(writer.asked) == 8


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            "the same 1", f"{MOST_FUTILE} answers in a row without a new program, the last: a repe", id="same"
        ),
        pytest.param("", f"{MOST_FUTILE} answers in a row without a new program, the last: no_program", id="prose"),
        pytest.param(ProviderError("no money"), "no money", id="refused"),
    ],
)
def test_a_writer_that_brings_nothing_ends_and_says_why(answer: Answer, reason: str) -> None:
    writer = GivenWriter(lambda asked: answer)
    progress = searched(writer, candidates=None)
    assert progress.failed["given"].startswith(reason)
    assert len(writer.asked) <= MOST_FUTILE + 1


def test_answers_of_the_same_moment_are_used_though_one_failed() -> None:
    writer = GivenWriter(lambda asked: ProviderError("gone") if asked.number == 1 else f"{asked.number} 1", at_once=3)
    progress = searched(writer)
    assert len(progress.at(SCREEN)) == 2
    assert progress.failed == {"given": "gone"}


def test_refused_questions_are_asked_again_by_another_run_and_do_not_end_a_writer() -> None:
    refused = Written(completion="", source=None, form=REFUSED, detail="status 400: too long")
    question = Asked(writer="given", number=0, problem_id="level1/scaled", prompt="p", exemplar_ids=(), written=refused)
    known = [replace(question, number=number) for number in range(2 * MOST_FUTILE)]
    writer = GivenWriter(lambda asked: f"{asked.number} 1")
    progress = searched(writer, candidates=3, known=known)
    assert writer.asked == [replace(each, written=None) for each in known[:3]]
    assert len(progress.at(SCREEN)) == 3
    assert progress.failed == {}
    assert writer.is_closed


def test_an_error_of_ours_ends_the_search() -> None:
    with pytest.raises(OSError, match="disk full"):
        searched(GivenWriter(lambda asked: OSError("disk full")))


def test_known_answers_are_not_asked_for_and_open_questions_are_asked_again_word_for_word() -> None:
    second = Asked(writer="given", number=1, problem_id="level1/scaled", prompt="as it was", exemplar_ids=("x",))
    first = replace(second, number=0, written=written("0 2"))
    writer = GivenWriter(lambda asked: f"{asked.number} 1")
    progress = searched(writer, candidates=3, known=[second, first])
    assert writer.asked[0] == second
    assert [asked.number for asked in writer.asked] == [1, 2]
    assert [each.candidate.source for each in progress.at(SCREEN)] == ["0 2", "1 1", "2 1"]
    assert Asked.from_json(first.to_json()) == first
    assert Asked.from_json(second.to_json()) == second


def test_a_search_waits_for_answers_while_others_are_judged() -> None:
    late: Future[list[Written]] = Future()

    class LateWriter(GivenWriter):
        def begin(self, batch: Sequence[Asked]) -> Future[list[Written]]:
            self.asked += batch
            return late

    def answer_once_the_other_has_ended(asked: Asked) -> Answer:
        if asked.number < 3:
            return f"quick {asked.number} 1"
        threading.Timer(0.1, late.set_result, [[written("late 5")]]).start()
        return ProviderError("done")

    slow, quick = LateWriter(lambda asked: None), GivenWriter(answer_once_the_other_has_ended)
    slow.name, quick.name = "slow", "quick"
    progress = searched(slow, quick, candidates=4)
    assert [each.candidate.source for each in progress.at(SCREEN)][-1] == "late 5"
    assert len(progress.at(SCREEN)) == 4


def test_a_search_that_is_stopped_or_out_of_time_waits_for_no_answer() -> None:
    began_at = time.monotonic()
    assert searched(GivenWriter(lambda asked: None), seconds=0.2).scored == []
    proposer = Contrastive(problem(), GivenWriter(lambda asked: None), choice=CHOICE, seed=0)
    search = Search(speedup_in_text, [proposer], budget=Budget(seconds=600.0), workers=1)
    threading.Timer(0.1, search.stop).start()
    search.screen()
    assert time.monotonic() - began_at < 60
