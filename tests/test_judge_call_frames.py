"""Calls are answered shortly where addresses say all there is to say, and in full where they do not."""

import os
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tasks.judge import processes
from tasks.judge.call_frames import MARK, CallQuestion, short_answer
from tasks.judge.fork_server import ForkServer
from tasks.judge.pair import Pair, roomy_layout
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import Answers, Layout
from tasks.judge.studies import Studies
from tasks.judge.wire import WireError
from tasks.variants.candidate import Candidate
from tests.judge_builders import problem_of

MIB = 1 << 20
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, *rest):
        return {of_reference}


def get_inputs():
    x = {drawn}
    return {inputs}


def get_init_inputs():
    return []
"""
CANDIDATE = """
import dataclasses
import weakref

import torch
import torch.nn as nn


class Strange(torch.Tensor):
    pass


@dataclasses.dataclass
class Both:
    y: torch.Tensor
    z: torch.Tensor


class ModelNew(nn.Module):
    calls = 0
    kept = [None]
    last = None

    def forward(self, x, *rest):
        self.calls += 1
        return {of_candidate}
"""

Spawn = Callable[[int], WorkerProcess]
NewPair = Callable[..., tuple[Pair, list[np.ndarray]]]


def words(*values: int) -> bytes:
    return struct.pack(f"={len(values)}Q", *values)


@pytest.fixture(scope="module")
def spawn(fork_server: ForkServer) -> Spawn:
    core = min(os.sched_getaffinity(0))
    return lambda size: fork_server.spawn(arena_bytes=size, core=core, uid=None, memory_bytes=2 << 30, cpu_s=60)


@pytest.fixture
def new_pair(spawn: Spawn) -> Iterator[NewPair]:
    """Makes a pair of which the first call, which is described in full, has been made, and inputs for others."""
    studies = Studies(max_kept=0, layouts=[Layout.fitting(state_bytes=MIB, input_bytes=MIB, output_bytes=MIB)])
    taken = []

    def made(
        *, of_reference: str, of_candidate: str, drawn: str = "torch.randn(16, 8)", inputs: str = "x"
    ) -> tuple[Pair, list[np.ndarray]]:
        problem = problem_of(PROBLEM.format(of_reference=of_reference, drawn=drawn, inputs=inputs))
        study = studies.take(problem, lambda layout: spawn(layout.num_bytes))
        pair = Pair(study, lambda: spawn(roomy_layout(study).num_bytes), seed=study.seeds[0], timeout_s=30.0)
        taken.append((study, pair))
        source = CANDIDATE.format(of_candidate=of_candidate)
        pair.load(Candidate(problem_id=problem.problem_id, source=source, origin="tests"))
        for ask in (pair.answer, pair.truth):
            ask(study.pool.blocks[0], hold=True)
        return pair, study.pool.blocks[1:3]

    yield made
    for study, pair in taken:
        pair.close()
        studies.give_back(study)
    studies.drop_all()


@pytest.fixture
def num_short(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many answers were short."""
    seen: list[bytes] = []

    def noted(frame: bytes) -> dict[str, object]:
        seen.append(frame)
        return short_answer(frame)

    monkeypatch.setattr(processes, "short_answer", noted)
    return lambda: len(seen)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(CallQuestion(slot=1), id="a plain call"),
        pytest.param(CallQuestion(slot=0, count=32, again=True), id="once more"),
        pytest.param(CallQuestion(slot=0, same=True, hold=True, filling=0x80), id="a trial"),
    ],
)
def test_a_question_takes_as_many_bytes_whatever_it_is(question: CallQuestion) -> None:
    frame = question.framed(7)
    assert frame[0] == MARK
    assert len(frame) == 16


def test_a_short_answer_bears_its_id_and_addresses() -> None:
    assert short_answer(words(MARK, 7, 64, 128)) == {"id": 7, "addresses": (64, 128)}


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\x01", id="one byte"),
        pytest.param(words(MARK), id="no id"),
        pytest.param(words(MARK, 7) + b"\x00", id="half a word"),
        pytest.param(words(MARK + 256, 7), id="another mark"),
        pytest.param(words(MARK, 7, 1 << 63), id="no address"),
    ],
)
def test_what_is_no_short_answer_is_refused(frame: bytes) -> None:
    with pytest.raises(WireError):
        short_answer(frame)


@pytest.mark.parametrize(
    ("of_reference", "of_candidate"),
    [
        pytest.param("x * 3", "x * 3", id="a tensor"),
        pytest.param("(x * 3, x + 1)", "[x * 3, [x + 1]]", id="several, in other lists"),
        pytest.param("{'y': x * 3, 'n': 2.0}", "{'n': 2.0, 'y': x + x + x}", id="a mapping with a number"),
        pytest.param("x * 3", "(x.t() * 3).t()", id="a view, of the candidate alone"),
        pytest.param("x * 3", "x * 3 if self.calls < 2 else (x.t() * 3).t()", id="a view from the second call on"),
        pytest.param("x[:1].expand(16, 8)", "x[:1].expand(16, 8)", id="fewer values than elements"),
        pytest.param("x * 3", "nn.Parameter(x * 3)", id="a parameter"),
        pytest.param("[x * 3]", "self.kept.__setitem__(0, x * 3) or self.kept", id="a list that is used again"),
        pytest.param("x * 3", "(x.requires_grad_() * 3)", id="with a gradient"),
        pytest.param("{'k' * 300: x * 3, 'a\\n': x}", "{'a\\n': x.clone(), 'k' * 300: x * 3}", id="strange keys"),
    ],
)
def test_outputs_are_answered_by_their_addresses(
    of_reference: str, of_candidate: str, new_pair: NewPair, num_short: Callable[[], int]
) -> None:
    pair, blocks = new_pair(of_reference=of_reference, of_candidate=of_candidate)
    ours, theirs = pair.answers(blocks), pair.truths(blocks)
    assert num_short() == 2
    assert ours.specs == theirs.specs
    assert all(np.allclose(*both) for both in zip(_floats(ours), _floats(theirs), strict=True))
    assert not np.array_equal(*_floats(ours))
    again = _floats(pair.exchange(calls=2))
    assert num_short() == 3
    assert np.array_equal(*again)


@pytest.mark.parametrize(
    "result", ["torch.complex(x, x).conj()", "torch.complex(x, x).conj().imag"], ids=["conjugate", "negative"]
)
def test_values_that_memory_does_not_hold_yet_are_described_in_full_by_both(
    result: str, new_pair: NewPair, num_short: Callable[[], int]
) -> None:
    pair, blocks = new_pair(of_reference=result, of_candidate=result)
    ours, theirs = pair.answers(blocks), pair.truths(blocks)
    pair.exchange(calls=2)
    assert not num_short()
    assert all(np.array_equal(*both) for both in zip(_floats(ours), _floats(theirs), strict=True))


@pytest.mark.parametrize(
    "later",
    [
        pytest.param("(x * 3).as_subclass(Strange)", id="something lazy"),
        pytest.param("(x * 3).double()", id="another dtype"),
        pytest.param("(x * 3).view(torch.int32)", id="the same bytes as another dtype"),
        pytest.param("(x * 3).flatten()", id="another shape"),
        pytest.param("(x * 3, x)", id="more outputs"),
        pytest.param("None", id="nothing"),
    ],
)
def test_who_returns_what_was_asked_for_at_first_only_is_refused(later: str, new_pair: NewPair) -> None:
    pair, blocks = new_pair(of_reference="x * 3", of_candidate=f"x * 3 if self.calls < 2 else {later}")
    with pytest.raises(Failure) as failure:
        pair.answers(blocks)
    assert failure.value.kind == "output"


@pytest.mark.parametrize(
    "later",
    [
        pytest.param("[x * 3, x + 1]", id="a list"),
        pytest.param("{'y': x * 3, 'a': x + 1}", id="another key"),
        pytest.param("[{'y': x * 3}, x + 1]", id="one key"),
        pytest.param("{'n': {'y': x * 3}, 'z': x + 1}", id="a key more"),
        pytest.param("Both(x * 3, x + 1)", id="fields"),
    ],
)
def test_who_returns_what_was_asked_for_under_its_keys_at_first_only_is_refused(later: str, new_pair: NewPair) -> None:
    named = "{'y': x * 3, 'z': x + 1}"
    pair, blocks = new_pair(of_reference=named, of_candidate=f"{named} if self.calls < 2 else {later}")
    with pytest.raises(Failure) as failure:
        pair.answers(blocks)
    assert failure.value.kind == "output"
    assert "another form" in failure.value.text


@pytest.mark.parametrize("inputs", ["x", "(x, 1)"], ids=["answered shortly", "answered in full"])
def test_every_call_brings_tensors_that_no_call_has_seen(
    inputs: str, new_pair: NewPair, num_short: Callable[[], int]
) -> None:
    seen = "not hasattr(x, 'mark') and all(x is not each for each in self.kept)"
    marks = "setattr(x, 'mark', 1), self.kept.append(x))"
    is_as_drawn = "x.is_leaf and x.grad is None and x.requires_grad and x.stride() == (1, 16)"
    of_candidate = f"x * 3 if {seen} and ({marks} and {is_as_drawn} else x"
    pair, blocks = new_pair(
        of_reference="x * 3", of_candidate=of_candidate, drawn="torch.randn(8, 16).t().requires_grad_()", inputs=inputs
    )
    for _ in range(3):
        ours, theirs = pair.answers(blocks), pair.truths(blocks)
        assert all(np.array_equal(*both) for both in zip(_floats(ours), _floats(theirs), strict=True))
    assert bool(num_short()) == (inputs == "x")


def test_a_tensor_that_comes_again_has_another_version(new_pair: NewPair) -> None:
    is_new = "(x is not self.last or x._version != self.kept[0])"
    keeps = "setattr(self, 'last', x), self.kept.__setitem__(0, x._version)"
    pair, blocks = new_pair(of_reference="x * 3", of_candidate=f"x * 3 if ({is_new}, {keeps})[0] else x")
    for same in (True, True, False, True):
        ours, theirs = pair.answer(blocks[0], same=same)[1], pair.truth(blocks[0], same=same)[0]
        assert np.array_equal(ours, theirs)


def test_a_tensor_comes_again_where_that_is_asked_for(new_pair: NewPair) -> None:
    of_candidate = "(x if x is self.last else x * 3, setattr(self, 'last', x))[0]"
    pair, blocks = new_pair(of_reference="x * 3", of_candidate=of_candidate)
    assert np.array_equal(pair.answer(blocks[0])[1], pair.truth(blocks[0])[0])
    assert np.array_equal(pair.answer(blocks[1], same=True)[1], blocks[1])


def test_a_tensor_that_comes_twice_in_a_call_is_one(new_pair: NewPair) -> None:
    pair, blocks = new_pair(
        of_reference="x * 3", of_candidate="x * 3 if x is rest[0]['x'] else x", inputs="(x, {'x': x})"
    )
    for _ in range(3):
        ours, theirs = pair.answers(blocks), pair.truths(blocks)
        assert all(np.array_equal(*both) for both in zip(_floats(ours), _floats(theirs), strict=True))


def test_outputs_outlive_the_next_exchange_and_no_other(new_pair: NewPair) -> None:
    looks = "(old := [ref() is None for ref in self.last or []], y := x * 3"
    keeps = "setattr(self, 'last', [*(self.last or []), weakref.ref(y)])"
    is_as_it_should_be = "len(old) < 5 or old[-2:] == [True, False]"  # the first were held
    pair, blocks = new_pair(
        of_reference="x * 3", of_candidate=f"{looks}, {keeps}, ({is_as_it_should_be}) or y.add_(1))[1]"
    )
    for _ in range(8):
        ours, theirs = pair.answers(blocks[:1]), pair.truths(blocks[:1])
        assert np.array_equal(_floats(ours)[0], _floats(theirs)[0])
        assert pair.have_kept(0.0) == (True, True)


def test_outputs_that_the_next_exchange_overwrites_are_noticed(new_pair: NewPair) -> None:
    keeps = "(self.last is None and setattr(self, 'last', torch.empty_like(x)), torch.mul(x, 3, out=self.last))[1]"
    pair, blocks = new_pair(of_reference="x * 3", of_candidate=keeps)
    for block in blocks[:2]:
        pair.answers([block]), pair.truths([block])
    assert pair.have_kept(0.0) == (False, True)


def test_a_call_that_fails_says_so_and_the_next_is_answered(new_pair: NewPair) -> None:
    pair, blocks = new_pair(of_reference="x * 3", of_candidate="x * 3 if self.calls != 2 else 1 / 0")
    with pytest.raises(Failure, match="raised"):
        pair.answers(blocks)
    assert np.array_equal(pair.answers(blocks).several([0])[0], pair.truths(blocks).several([0])[0])


def test_a_held_output_is_kept_over_short_calls(new_pair: NewPair) -> None:
    pair, blocks = new_pair(of_reference="x * 3", of_candidate="x * 3")
    kept = pair.held_outputs(slot=0)
    for _ in range(3):
        pair.answers(blocks)
    assert all(np.array_equal(*both) for both in zip(pair.held_outputs(slot=0), kept, strict=True))


def _floats(answers: Answers) -> list[np.ndarray]:
    return [block.view(np.float32) for block in answers.several(range(len(answers.specs)))]
