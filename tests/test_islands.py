"""Islands of candidates: who lives where, what resets do, and that a journal makes them again."""

from collections import Counter

import pytest

from flows.parts.drawn import Drawn
from tasks.history.exemplars import ExemplarPool
from tasks.history.islands import Islands
from tasks.judge.verdict import Verdict
from tasks.training.rollouts import Rollout
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar
from tests.test_grpo import judge_by_length, train

PROBLEM = "level1/one"


def exemplar(name: str, speedup: float) -> Exemplar:
    return Exemplar(candidate_id=name, source=f"{name}\n", speedup=speedup)


def pool(*exemplars: Exemplar) -> ExemplarPool:
    made = ExemplarPool()
    for each in exemplars:
        made.add(PROBLEM, each)
    return made


def islands(before: ExemplarPool, *, count: int = 4, reset_steps: int = 100, seed: int = 0) -> Islands:
    return Islands(before, count=count, reset_steps=reset_steps, seed=seed)


def living(made: Islands, *, step: int, count: int = 4) -> list[set[str]]:
    return [{each.candidate_id for each in made.of(PROBLEM, step=step, island=island)} for island in range(count)]


def step_of(made: Islands, island: int, *, first: int = 1) -> int:
    """The next step whose first group is asked about that island."""
    return next(step for step in range(first, 1000) if made.asked(step, 0) == island)


def test_what_was_known_before_lives_everywhere():
    assert living(islands(pool(exemplar("a", 1.0), exemplar("b", 2.0))), step=1) == [{"a", "b"}] * 4


def test_what_was_found_lives_where_it_was_found_from_the_next_step_on():
    known = pool(exemplar("a", 1.0))
    made = islands(known)
    step = step_of(made, 2)
    known.add(PROBLEM, exemplar("b", 2.0))
    made.note(step, [(PROBLEM, "b"), (PROBLEM, "wrong")], known, group_size=2)
    assert living(made, step=step) == [{"a"}] * 4
    assert living(made, step=step + 1) == [{"a"}, {"a"}, {"a", "b"}, {"a"}]


def test_a_step_asks_about_islands_evenly_and_each_group_by_itself():
    made = islands(pool())
    asked = Counter(made.asked(step, group) for step in range(1, 500) for group in range(4))
    assert all(count == pytest.approx(500, rel=0.2) for count in asked.values())
    assert any(made.asked(step, 0) != made.asked(step, 1) for step in range(1, 10))


def with_one_on_each(reset_steps: int) -> tuple[Islands, list[int]]:
    """Islands of one candidate each, the faster the higher the island's number, and the steps they were found in."""
    known = pool()
    made = islands(known, reset_steps=reset_steps)
    steps: list[int] = []
    for island in range(4):
        steps.append(step_of(made, island, first=steps[-1] + 1 if steps else 1))
        known.add(PROBLEM, exemplar(f"{island}", 1.0 + island))
        made.note(steps[-1], [(PROBLEM, f"{island}")], known, group_size=1)
    return made, steps


def test_a_reset_empties_the_slower_half_and_begins_it_with_the_best_of_others():
    apart, steps = with_one_on_each(reset_steps=1000)
    assert living(apart, step=steps[-1] + 1) == [{"0"}, {"1"}, {"2"}, {"3"}]
    made, _ = with_one_on_each(reset_steps=steps[-1])
    assert living(made, step=steps[-1]) == [{"0"}, {"1"}, {"2"}, set()]
    *slower, third, fourth = living(made, step=steps[-1] + 1)
    assert (third, fourth) == ({"2"}, {"3"})
    assert all(island in ({"2"}, {"3"}) for island in slower)


def test_who_founds_an_island_anew_is_decided_by_the_seed():
    founded = set()
    for seed in range(20):
        made = islands(pool(exemplar("a", 1.0)), reset_steps=1, seed=seed)
        known = pool(exemplar("a", 1.0), exemplar("b", 2.0), exemplar("c", 3.0))
        made.note(1, [(PROBLEM, "b")], known, group_size=1)
        founded.add(tuple(frozenset(island) for island in living(made, step=2)))
        assert living(made, step=2) == living(made, step=2)
    assert len(founded) > 1


def test_islands_without_anybody_stay_so_and_other_problems_are_not_touched():
    made = islands(pool(), reset_steps=1)
    assert living(made, step=50) == [set()] * 4
    known = pool(exemplar("a", 1.0))
    made.note(1, [("level1/other", "a")], known, group_size=1)
    assert living(made, step=50) == [set()] * 4


def test_a_journal_gives_the_islands_that_training_had(tmp_path):
    known = ExemplarPool()
    live = islands(known, reset_steps=2)
    drawn = Drawn(tmp_path / "journal", done_steps=0)

    def judge(candidates: list[Candidate]) -> list[Verdict]:
        drawn.note_texts(candidates)
        return judge_by_length(candidates)

    def on_rollouts(step: int, rollouts: list[Rollout], cost: object) -> None:
        drawn.note_step(step, rollouts)

    _, steps = train(
        tmp_path / "checkpoints",
        pool=known,
        judge=judge,
        exemplars="islands",
        steps=6,
        islands=live,
        on_rollouts=on_rollouts,
    )
    drawn.close()
    again = Drawn(tmp_path / "journal", done_steps=6)
    verdicts = judge_by_length(list(again.candidates.values()))
    rebuilt = islands(ExemplarPool(), reset_steps=2)
    again.settle(rebuilt, ExemplarPool.from_verdicts(again.kept, verdicts), group_size=4)
    again.close()
    problems = {rollout.candidate.problem_id for rollouts in steps for rollout in rollouts}
    populations = [
        (problem, step, island, live.of(problem, step=step, island=island))
        for problem in problems
        for step in range(1, 9)
        for island in range(4)
    ]
    assert any(population for *_, population in populations)
    assert populations == [
        (problem, step, island, rebuilt.of(problem, step=step, island=island))
        for problem, step, island, _ in populations
    ]


def test_a_prompt_shows_candidates_of_one_island_only(tmp_path):
    known = ExemplarPool()
    live = islands(known, reset_steps=1000, seed=5)
    _, steps = train(tmp_path, pool=known, exemplars="islands", steps=8, islands=live)
    shown = 0
    for number, rollouts in enumerate(steps, start=1):
        for group in range(2):
            first = rollouts[group * 4]
            home = live.of(first.candidate.problem_id, step=number, island=live.asked(number, group))
            shown += len(first.completion.exemplar_ids)
            assert set(first.completion.exemplar_ids) <= {each.candidate_id for each in home}
    assert shown > 0
