"""Inputs are drawn several at a time where they are brought to a device, and nobody sees any of them twice."""

import itertools
import os
import random
from collections.abc import Iterator

import numpy as np
import pytest

from tasks.judge.fork_server import ForkServer
from tasks.judge.input_pool import MIXED_BYTES, PLACED_AT_ONCE
from tasks.judge.reference import LAYOUT
from tasks.judge.study import Study
from tests.judge_builders import problem


@pytest.fixture
def study(fork_server: ForkServer) -> Iterator[Study]:
    core = min(os.sched_getaffinity(0))
    worker = fork_server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=2 << 30, cpu_s=60)
    yield Study(problem("bfloat16_linear"), worker)
    worker.end()


@pytest.mark.parametrize("at_once", [1, PLACED_AT_ONCE])
def test_no_candidate_sees_inputs_twice(study: Study, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_num_drawn_at_once", at_once)
    num_before = len(study.pool.blocks)
    seen = [block.tobytes() for block in itertools.islice(study.fresh_inputs(random.Random(0)), 2 * num_before + 20)]
    assert len(set(seen)) == len(seen)
    num_drawn = len(seen) - num_before
    assert len(study.pool.blocks) == num_before + -(-num_drawn // at_once) * at_once


def test_no_more_is_kept_than_there_is_room_for(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = study.pool
    kept = list(pool.blocks)
    monkeypatch.setattr(pool, "_max_bytes", (len(kept) + 3) * kept[0].size)
    drawn = [*pool.draw(2), *pool.draw(5), *pool.draw(2)]
    assert len(drawn) == 9
    assert [id(block) for block in pool.blocks] == [id(block) for block in (*kept, *drawn[:3])]


def test_large_inputs_are_drawn_one_by_one(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = np.zeros(64, dtype=np.uint8), np.zeros(MIXED_BYTES + 1, dtype=np.uint8)
    monkeypatch.setattr(study.pool, "blocks", [small])
    assert study.pool.num_placed_at_once == PLACED_AT_ONCE
    monkeypatch.setattr(study.pool, "blocks", [large[: MIXED_BYTES // 3], small])
    assert study.pool.num_placed_at_once == 3
    monkeypatch.setattr(study.pool, "blocks", [large, small])
    assert study.pool.num_placed_at_once == 1
