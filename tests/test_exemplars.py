"""Which exemplars a prompt shows: the paper's draw over buckets of speed, and the pool behind it."""

import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from history_builders import candidate, distinct, verdict

from tasks.history.exemplars import ExemplarPool, choose_exemplars
from tasks.judge.verdict import Status
from tasks.variants.prompts import Exemplar

DRAWS = 4000


def exemplar(speedup, *, text=None):
    source = text or f"class ModelNew: ...  # {speedup}\n"
    return Exemplar(candidate_id=candidate(source).candidate_id, source=source, speedup=speedup)


def choose(pool, *, mode="buckets", count=2, width=1.0, temperature=1.0, rng=None):
    return choose_exemplars(
        pool, mode=mode, count=count, bucket_width=width, bucket_temperature=temperature, rng=rng or random.Random(0)
    )


def frequencies(pool, **settings):
    """How often each tuple of speedups is chosen."""
    rng = random.Random(0)
    drawn = Counter(tuple(chosen.speedup for chosen in choose(pool, rng=rng, **settings)) for _ in range(DRAWS))
    return {speedups: number / DRAWS for speedups, number in drawn.items()}


# One candidate in each of the buckets [0.5, 1), [1, 2), [2, 4), [4, 8), and their scores in log2.
POOL = [exemplar(speedup) for speedup in (0.5, 1.0, 2.0, 4.0)]
SCORES = {0.5: -1.0, 1.0: 0.0, 2.0: 1.0, 4.0: 2.0}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_one_bucket_is_drawn_by_the_softmax_of_the_mean_scores(temperature):
    mean = sum(SCORES.values()) / len(SCORES)
    weights = {speedup: math.exp((score - mean) / temperature) for speedup, score in SCORES.items()}
    drawn = frequencies(POOL, count=1, temperature=temperature)
    for speedup, weight in weights.items():
        assert drawn.get((speedup,), 0) == pytest.approx(weight / sum(weights.values()), abs=0.03)


def test_the_second_bucket_is_drawn_from_those_that_are_left():
    weights = {speedup: 2.0**score for speedup, score in SCORES.items()}
    total = sum(weights.values())
    temperature = 1 / math.log(2)  # makes exp(score / temperature) the power of two above
    drawn = frequencies(POOL, count=2, temperature=temperature)
    for slow, fast in [(0.5, 1.0), (1.0, 4.0), (2.0, 4.0)]:
        either_order = sum(
            weights[first] / total * weights[second] / (total - weights[first])
            for first, second in ((slow, fast), (fast, slow))
        )
        assert drawn[(slow, fast)] == pytest.approx(either_order, abs=0.03)


def test_within_a_bucket_all_are_alike_and_their_mean_speaks_for_them():
    crowd = [exemplar(speedup) for speedup in (2.0, 2.5, 3.0, 3.5)]
    drawn = frequencies([exemplar(1.0), *crowd], count=1, temperature=1e6)
    assert drawn[(1.0,)] == pytest.approx(0.5, abs=0.03)  # one of two buckets, though one of five candidates
    for one in crowd:
        assert drawn[(one.speedup,)] == pytest.approx(0.125, abs=0.03)


def test_random_draws_candidates_not_buckets():
    drawn = frequencies([exemplar(1.0), *(exemplar(2.0 + n / 10) for n in range(3))], mode="random", count=1)
    assert drawn[(1.0,)] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(
    ("speedups", "width", "expected"),
    [
        pytest.param([1.0, 1.5, 2.0, 3.0], 1.0, 2, id="two factors of two"),
        pytest.param([1.0, 1.5, 2.0, 3.0], 0.5, 4, id="narrower buckets"),
        pytest.param([1.1, 1.2, 1.3], 1.0, 1, id="all in one bucket"),
        pytest.param([0.99, 1.0], 1.0, 2, id="slower than the reference is a bucket of its own"),
        pytest.param([], 1.0, 0, id="nothing known"),
    ],
)
def test_there_are_as_many_exemplars_as_buckets(speedups, width, expected):
    pool = [exemplar(speedup) for speedup in speedups]
    assert len(choose(pool, count=9, width=width)) == expected


@pytest.mark.parametrize("mode", ["buckets", "random"])
def test_what_is_shown_climbs_and_never_repeats_a_text(mode):
    pool = [exemplar(0.9 * 1.3**n) for n in range(12)] + [exemplar(64.0, text="same\n"), exemplar(2.0, text="same\n")]
    rng = random.Random(1)
    for _ in range(200):
        chosen = choose(pool, mode=mode, count=4, rng=rng)
        assert len({one.source for one in chosen}) == 4
        assert chosen == sorted(chosen, key=lambda one: one.speedup)


def test_none_shows_nothing():
    assert choose(POOL, mode="none") == []


@pytest.mark.parametrize("mode", ["buckets", "random"])
def test_equal_seeds_choose_equally(mode):
    pool = [exemplar(1.1**n) for n in range(20)]
    first, second = ([choose(pool, mode=mode, rng=random.Random(seed)) for seed in range(20)] for _ in range(2))
    assert first == second
    assert len({tuple(chosen) for chosen in first}) > 5


@pytest.mark.parametrize("temperature", [1e-9, 1e9], ids=["icy", "boiling"])
def test_extreme_temperatures_and_speedups_stay_in_range(temperature):
    pool = [exemplar(speedup) for speedup in (1e-6, 1.0, 1e6)]
    chosen = choose(pool, count=2, temperature=temperature)
    assert len(chosen) == 2
    if temperature < 1:
        assert [one.speedup for one in chosen] == [1.0, 1e6]


def test_a_pool_takes_correct_candidates_timed_against_eager():
    fast, slow, wrong, compiled = candidates = distinct(4)
    against_compile = verdict(compiled)
    verdicts = [
        verdict(fast, speedup=3.0),
        verdict(slow, speedup=0.5),
        verdict(wrong, status=Status.WRONG_OUTPUT),
        replace(against_compile, timing=replace(against_compile.timing, baseline="compile")),
        verdict(candidate("a text nobody has\n")),
    ]
    pool = ExemplarPool.from_verdicts(candidates, verdicts)
    assert [one.speedup for one in pool.of("level1/relu")] == [3.0, 0.5]
    assert pool.best("level1/relu").source == fast.source
    assert len(pool) == 2


def test_the_first_verdict_on_a_candidate_stays():
    pool = ExemplarPool()
    pool.add("level1/relu", exemplar(2.0, text="same\n"))
    pool.add("level1/relu", exemplar(9.0, text="same\n"))
    assert [one.speedup for one in pool.of("level1/relu")] == [2.0]


def test_problems_are_kept_apart_and_an_unknown_one_is_empty():
    pool = ExemplarPool()
    pool.add("level1/relu", exemplar(2.0))
    assert pool.of("level1/gelu") == ()
    assert pool.best("level1/gelu") is None
