"""A packed step is shared out so that processes, which wait for each other at every layer, have as much to do."""

import random
import statistics

import pytest
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler, SequentialSampler

from tasks.training.examples import Example
from tasks.training.sft import _rows, even_parts
from tests.training_builders import policy


def lengths_of(count: int, *, seed: int) -> list[int]:
    """As those of released kernels: a prompt and an answer with a long tail."""
    rng = random.Random(seed)
    return [
        round(450 * rng.lognormvariate(0.0, 0.5)) + round(min(1600 * rng.lognormvariate(0.0, 0.5), 2304))
        for _ in range(count)
    ]


def waited(lengths: list[int], parts: list[list[int]], *, processes: int) -> float:
    """What a step takes beside one in which nobody waits, if time is proportional to tokens."""
    sums = [sum(lengths[place] for place in part) for part in parts]
    longest = [max(sums[begin : begin + processes]) for begin in range(0, len(sums), processes)]
    return sum(longest) * processes / sum(sums)


@pytest.mark.parametrize("size", [1, 2, 4, 16])
def test_every_example_is_in_one_part_and_parts_hold_as_many_as_asked(size):
    parts = even_parts(lengths_of(64, seed=0), size=size)
    assert sorted(place for part in parts for place in part) == list(range(64))
    assert {len(part) for part in parts} == {size}


@pytest.mark.parametrize("size", [2, 4, 16])
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_wait_for_each_other_for_less_than_a_hundredth_of_the_time(size, processes):
    as_they_come, shared_out = [], []
    for seed in range(20):
        lengths = lengths_of(16 * processes, seed=seed)
        taken = [list(range(begin, begin + size)) for begin in range(0, len(lengths), size)]
        as_they_come.append(waited(lengths, taken, processes=processes))
        shared_out.append(waited(lengths, even_parts(lengths, size=size), processes=processes))
    assert statistics.fmean(shared_out) < 1.01
    assert statistics.fmean(as_they_come) > 1.03, "otherwise there would be nothing to share out"


def test_the_part_that_takes_the_most_memory_is_the_first():
    lengths = lengths_of(32, seed=0)
    sums = [sum(lengths[place] for place in part) for part in even_parts(lengths, size=4)]
    assert sums == sorted(sums, reverse=True)


def test_equal_lengths_are_shared_out_as_any():
    assert sorted(map(len, even_parts([7] * 8, size=4))) == [4, 4]


@pytest.mark.parametrize("processes", [2, 4])
def test_the_parts_that_processes_get_at_the_same_time_are_alike(processes):
    """As accelerate deals the rows of a training out, batch by batch in turn."""
    micro, steps = 2, 3
    examples = [Example(prompt="a " * (5 * number % 16), completion="b " * (number % 8)) for number in range(16)]
    rows = _rows(policy(), examples, steps=steps, of="candidates", batch_size=16, packed_together=micro, seed=0)
    batches = BatchSampler(SequentialSampler(range(len(rows))), micro, drop_last=False)
    dealt = [list(BatchSamplerShard(batches, processes, process)) for process in range(processes)]
    sums = [
        sum(len(rows[index]["input_ids"]) for index in part) for parts in zip(*dealt, strict=True) for part in parts
    ]
    per_step = 16 // micro
    assert len(sums) == per_step * steps
    longest = max(len(row["input_ids"]) for row in rows)
    for begin in range(0, len(sums), per_step):
        of_step = sums[begin : begin + per_step]
        assert of_step == sorted(of_step, reverse=True), "those next to each other are computed at the same time"
        assert max(of_step) - min(of_step) < longest / 2
