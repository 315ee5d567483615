"""The timed calls of one exchange are compared together, and what is found is what comparing them one by one finds."""

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tasks.judge import blocks, equality
from tasks.judge.evidence import Evidence, RefusedError
from tasks.judge.program import Answers, LazyBytes, OutputPlace
from tasks.judge.right_answers import END_BYTES, MAX_KEPT, RightAnswers, are_no_guesses
from tasks.judge.trials import Trials
from tasks.judge.verdict import Status
from tasks.judge.wire import TensorSpec, offsets
from tasks.judge.yardstick import Yardstick
from tests.device_arrays import DeviceArray

FLOATS = [TensorSpec.from_json([dtype, [6, 20]]) for dtype in ("float32", "float64", "float16", "bfloat16")]
SEVERAL = [FLOATS[0], TensorSpec.from_json(["int64", [7]]), TensorSpec.from_json(["complex64", [3, 5]])]
EMPTY = TensorSpec.from_json(["float32", [0, 4]])
TEN_BYTES = TensorSpec.from_json(["uint8", [10]])
INPUT_BYTES = 64
NUM_CALLS = 5


def block_of(specs: Sequence[TensorSpec], *values: np.ndarray) -> np.ndarray:
    """Bytes of an answer with these values."""
    starts, num_bytes = offsets(specs)
    block = np.zeros(num_bytes, dtype=np.uint8)
    for spec, start, value in zip(specs, starts, values, strict=True):
        equality.put_array(block, spec, start, value)
    return block


def drawn(specs: Sequence[TensorSpec], rng: np.random.Generator) -> list[np.ndarray]:
    """Random values for each tensor, complex numbers as pairs."""
    counts = [spec.num_items * (2 if spec.dtype.startswith("complex") else 1) for spec in specs]
    return [
        rng.integers(-50, 50, count) if spec.dtype == "int64" else rng.standard_normal(count)
        for spec, count in zip(specs, counts, strict=True)
    ]


def several(specs: Sequence[TensorSpec], count: int, seed: int = 0) -> np.ndarray:
    """Random answers, a row each."""
    rng = np.random.default_rng(seed)
    return np.stack([block_of(specs, *drawn(specs, rng)) for _ in range(count)])


def one_by_one(ours: np.ndarray, theirs: np.ndarray, specs: Sequence[TensorSpec]) -> list[float]:
    return [equality.compare(*pair, specs, [0.0] * len(specs)).max_error for pair in zip(ours, theirs, strict=True)]


def at_once(ours: np.ndarray, theirs: np.ndarray, specs: Sequence[TensorSpec]) -> list[float]:
    return list(equality.errors_at_once(ours, theirs, specs, [0.0] * len(specs)))


@pytest.mark.parametrize("spec", FLOATS, ids=lambda spec: spec.dtype)
@pytest.mark.parametrize("error", [0.0, 1e-7, 1e-5, 1e-4, 1e-2, 1.0])
def test_what_is_right_at_once_is_right_one_by_one_and_by_as_much(spec: TensorSpec, error: float) -> None:
    truths = several([spec], 12)
    rng = np.random.default_rng(1)
    values = [equality.as_array(row, spec, 0).astype(np.float64) for row in truths]
    ours = np.stack([block_of([spec], row + error * rng.standard_normal(row.size)) for row in values])
    pairs = list(zip(at_once(ours, truths, [spec]), one_by_one(ours, truths, [spec]), strict=True))
    for together, alone in pairs:
        if together <= 1:
            assert together == pytest.approx(alone, rel=1e-4)
    smallest_step = equality.epsilon(spec)
    if error < smallest_step:
        assert all(together <= 1 for together, _ in pairs)
    if error > 500 * smallest_step:
        assert not any(together <= 1 for together, _ in pairs)


def test_an_answer_of_several_tensors_is_wrong_where_one_of_them_is() -> None:
    rng = np.random.default_rng(0)
    values = [drawn(SEVERAL, rng) for _ in range(4)]
    truths = np.stack([block_of(SEVERAL, *each) for each in values])
    values[1][0][3] += 1.0
    values[2][1][2] += 1
    values[3][2][-1] += 1.0
    ours = np.stack([block_of(SEVERAL, *each) for each in values])
    for errors in (at_once(ours, truths, SEVERAL), one_by_one(ours, truths, SEVERAL)):
        assert [bool(error <= 1) for error in errors] == [True, False, False, False]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_never_found_right_without_a_closer_look(odd: float) -> None:
    usual = several(FLOATS[:1], 3)
    special = usual.copy()
    special.view(np.float32)[:, 7] = odd
    assert not any(error <= 1 for error in at_once(special, usual, FLOATS[:1]))
    assert not any(error <= 1 for error in at_once(usual, special, FLOATS[:1]))
    assert not any(error <= 1 for error in at_once(special, special, FLOATS[:1]))  # compare says that they are


def test_equal_zeros_are_right_and_so_is_nothing() -> None:
    zeros = np.stack([block_of(FLOATS[:1], np.zeros(120))] * 2)
    assert at_once(zeros, zeros, FLOATS[:1]) == [0.0, 0.0]
    assert at_once(several(FLOATS[:1], 2), zeros, FLOATS[:1]) == [np.inf, np.inf]
    nothing = np.stack([block_of([EMPTY], np.zeros(0))])
    assert at_once(nothing, nothing, [EMPTY]) == [0.0]


def test_blocks_of_the_host_and_large_ones_have_the_errors_that_compare_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    truths = several(FLOATS[:1], 3)
    ours = truths.copy()
    equality.as_array(ours[1], FLOATS[0], 0)[5] += 1.0
    errors = equality.quick_errors(list(ours), list(truths), FLOATS[:1], [0.0])
    assert list(errors) == one_by_one(ours, truths, FLOATS[:1])
    monkeypatch.setattr(equality, "AT_ONCE_BYTES", 1_000)
    there = equality.quick_errors(DeviceArray(ours), DeviceArray(truths), FLOATS[:1], [0.0])  # type: ignore[arg-type]
    assert list(there) == pytest.approx(list(errors))


@pytest.mark.parametrize("width", [1, 1023, 1024, 1025, 2048, 3000])
@pytest.mark.parametrize("spare", [0, 8])
def test_rows_are_reduced_as_they_would_be_in_one_piece(width: int, spare: int) -> None:
    rng = np.random.default_rng(width)
    rows = rng.standard_normal((3, width + spare))[:, :width]
    rows[1, -1] = 50.0
    for placed in (np.asarray, DeviceArray):

        def reduced(reduce: Callable[..., Any], values: np.ndarray, placed: Any = placed) -> np.ndarray:
            return blocks.on_host(blocks.of_rows(reduce, placed(values)))

        assert list(reduced(np.max, rows)) == list(rows.max(axis=1))
        assert list(reduced(np.sum, rows)) == pytest.approx(list(rows.sum(axis=1)))
        assert list(reduced(np.any, rows == 50.0)) == [False, True, False]
        with_nan = np.where(rows == rows[2, 0], np.nan, rows)
        assert np.isnan(reduced(np.max, with_nan)[2])


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 3000, 1024 * 1024 + 1])
def test_all_values_are_reduced_alike_on_the_host_and_on_a_device(size: int) -> None:
    values = np.random.default_rng(size).standard_normal(size)
    for placed in (np.asarray, DeviceArray):
        there: Any = placed(values)
        assert float(blocks.of_all(np.max, there)) == values.max()
        assert float(blocks.of_all(np.sum, there)) == pytest.approx(values.sum())
        assert int(blocks.of_all(np.sum, there > 0)) == (values > 0).sum()
        assert [blocks.place_of(find, there) for find in (np.argmin, np.argmax)] == [values.argmin(), values.argmax()]
        equal: Any = placed(np.zeros(size))
        assert blocks.place_of(np.argmax, equal) == 0
        with_nan = values.copy()
        with_nan[size // 2] = np.nan
        odd: Any = placed(with_nan)
        assert np.isnan(float(blocks.of_all(np.max, odd)))
        assert bool(blocks.of_all(np.any, np.isnan(odd)))
        assert blocks.place_of(np.argmax, np.isnan(odd)) == size // 2


@pytest.mark.parametrize("placed", [np.asarray, DeviceArray], ids=["host", "device"])
def test_blocks_are_the_same_byte_for_byte(placed: Callable[[np.ndarray], np.ndarray]) -> None:
    ones = np.random.default_rng(0).integers(0, 255, (4, 64 * 70), dtype=np.uint8)
    others = ones.copy()
    others[1, 0] += 1
    others[3, -1] += 1
    found = equality.are_same(placed(ones), [placed(each) for each in others])
    assert list(found) == [True, False, True, False]


@pytest.mark.parametrize("num_items", [40, 1 << 18, 3 << 17])
@pytest.mark.parametrize("placed", [np.asarray, DeviceArray], ids=["host", "device"])
def test_a_right_answer_is_known_again_by_its_ends(num_items: int, placed: Callable[[np.ndarray], np.ndarray]) -> None:
    spec = TensorSpec.from_json(["float32", [num_items]])
    rows = several([spec], 4)
    truth = placed(rows[3])
    known = RightAnswers([spec])
    known.add([placed(row) for row in rows[:2]], [placed(row) for row in rows[:2]])
    assert [known.has(placed(row), truth) for row in rows[:3]] == [True, True, False]
    for at in (0, 5, num_items - 1):
        other = rows[0].copy()
        other.view(np.float32)[at] += 1.0
        assert not known.has(placed(other), truth)
    swapped = rows[0].copy()
    swapped.view(np.float32)[[0, 1]] = swapped.view(np.float32)[[1, 0]]
    assert not known.has(placed(swapped), truth)


def test_what_is_wrong_in_the_middle_is_no_replay_where_the_ends_are_always_the_same() -> None:
    spec = TensorSpec.from_json(["int64", [4096]])
    right = block_of([spec], np.arange(4096))
    known = RightAnswers([spec])
    known.add([right], [right])
    wrong = right.copy()
    wrong.view(np.int64)[2000] += 1
    assert not known.has(wrong, right)


def test_what_may_be_a_guess_is_told_from_what_may_not() -> None:
    spec = TensorSpec.from_json(["float32", [32]])
    mask, few = np.zeros(32), np.zeros(32)
    mask[::2] = 1.0
    few[10] = 1.0
    rows = np.stack([block_of([spec], each) for each in (mask, np.full(32, 0.1), np.full(32, 3.0), few)])
    assert list(are_no_guesses(rows, rows, [spec])) == [True, True, False, False]
    near = rows.copy()
    near.view(np.float32)[1] *= 1 + 1e-6
    assert list(are_no_guesses(near, rows, [spec])) == [True, False, False, False]


def test_a_guess_that_was_right_is_no_replay_when_given_again() -> None:
    spec = TensorSpec.from_json(["float32", [32]])
    constant, (sure, truth) = block_of([spec], np.full(32, 3.0)), several([spec], 2)
    known = RightAnswers([spec])
    known.add([constant, sure], [constant, sure])
    assert not known.has(constant, truth)
    assert known.has(sure, truth)


def test_bytes_that_are_no_whole_number_of_values_are_no_trouble() -> None:
    rows = np.stack([block_of([TEN_BYTES], np.arange(10))])
    assert list(are_no_guesses(rows, rows, [TEN_BYTES])) == [True]


def test_the_first_and_the_latest_right_answers_are_kept_and_only_their_ends() -> None:
    spec = TensorSpec.from_json(["float32", [5000]])
    rows = several([spec], 3 * MAX_KEPT + 1)
    known = RightAnswers([spec])
    for row in rows[:-1]:
        known.add([row], [row])
    assert [known.has(row, rows[-1]) for row in rows[:-1]] == [True] * MAX_KEPT + [False] * MAX_KEPT + [True] * MAX_KEPT
    kept = [*known._first, *known._latest]
    assert {part.nbytes for both in kept for part in both} == {2 * END_BYTES}


class Exchange:
    """One exchange with a made-up pair of programs on a device, whose turn is a lock that nobody can take twice."""

    def __init__(self, *, changes_inputs: bool = False) -> None:
        self.ours, self.inputs = several(FLOATS[:1], NUM_CALLS), several([TEN_BYTES], NUM_CALLS, seed=1)
        self.truths, self.given = self.ours.copy(), self.inputs.copy()
        self.turns, self.closely, self.lock = 0, 0, threading.Lock()
        self.after_reading: Callable[[], object] = lambda: None
        self.evidence = Evidence()
        self.form = FLOATS[:1]
        yardstick = Yardstick(FLOATS[:1], "fp32", turn=self.turn)
        pair = SimpleNamespace(
            output_bytes=512,
            uncounted=nullcontext,
            referees_turn=self.turn,
            have_inputs=lambda blocks, slots: equality.are_same(DeviceArray(self.inputs[list(slots)]), blocks),
            inputs_by_now=lambda slot: (DeviceArray(self.inputs[slot]), DeviceArray(self.given[slot])),
            late_answer=lambda slot: DeviceArray(self.ours[slot]),
        )
        study = SimpleNamespace(
            weights=SimpleNamespace(states={0: None}),
            output_specs=FLOATS[:1],
            changes_inputs=changes_inputs,
            yardstick=yardstick,
            compare_closely=self.compare_closely,
        )
        self.trials = Trials(
            pair,  # type: ignore[arg-type]
            study,  # type: ignore[arg-type]
            self.evidence,
            inputs=iter(()),
            seeds=[0],
            takes_weights=True,
            rng=random.Random(0),
        )

    @contextmanager
    def turn(self):  # type: ignore[no-untyped-def]
        assert self.lock.acquire(timeout=1), "a turn within a turn"
        self.turns += 1
        try:
            yield
        finally:
            self.lock.release()

    def compare_closely(self, *_: object, **__: object) -> None:
        self.closely += 1

    def run(self) -> None:
        self.trials.compare_timed(
            [DeviceArray(each) for each in self.given],  # type: ignore[misc]
            self._answers(self.ours, self.after_reading),
            self._answers(self.truths, lambda: None),
        )

    def _answers(self, rows: np.ndarray, after: Callable[[], object]) -> Answers:
        places = [OutputPlace(specs=self.form, addresses=[0], at=slot) for slot in range(NUM_CALLS)]

        def read(chosen: Sequence[OutputPlace]) -> np.ndarray:
            found = DeviceArray(rows[[place.at for place in chosen]])
            after()
            return found  # type: ignore[return-value]

        return Answers(specs=[self.form] * NUM_CALLS, outputs=LazyBytes(places, read), taken_ms=1.0, outer_ms=1.0)

    def refused(self) -> tuple[Status, str]:
        with pytest.raises(RefusedError) as refused:
            self.run()
        return refused.value.status, self.evidence.checks[-1].name


def test_right_answers_take_one_turn_together() -> None:
    exchange = Exchange()
    exchange.run()
    assert (exchange.turns, exchange.closely, exchange.trials.num_timed) == (1, 0, NUM_CALLS)
    assert exchange.evidence.max_error == 0.0


def test_one_wrong_answer_of_several_is_refused_though_it_is_right_when_read_again() -> None:
    exchange = Exchange()
    exchange.ours.view(np.float32)[3, 11] += 1.0
    exchange.after_reading = lambda: np.copyto(exchange.ours, exchange.truths)
    assert exchange.refused() == (Status.CHEATED, "timed_outputs")  # it came after the answer
    exchange = Exchange()
    exchange.ours.view(np.float32)[3, 11] += 1.0
    assert exchange.refused() == (Status.WRONG_OUTPUT, "timed_outputs")
    assert exchange.closely == 1


def test_an_answer_that_was_right_for_other_inputs_is_a_replay() -> None:
    exchange = Exchange()
    exchange.run()
    exchange.truths = several(FLOATS[:1], NUM_CALLS, seed=5)
    exchange.ours = exchange.truths.copy()
    exchange.ours[2] = several(FLOATS[:1], NUM_CALLS)[4]
    assert exchange.refused() == (Status.CHEATED, "timed_outputs")


def test_one_changed_byte_of_one_input_is_refused() -> None:
    exchange = Exchange()
    exchange.inputs[3, 9] += 1
    assert exchange.refused() == (Status.WRONG_OUTPUT, "inputs_unchanged")


def test_inputs_that_the_reference_changes_may_be_changed() -> None:
    exchange = Exchange(changes_inputs=True)
    exchange.inputs[3, 9] += 1
    exchange.run()
    assert exchange.trials.num_timed == NUM_CALLS


def test_outputs_of_another_form_are_refused_before_they_are_read() -> None:
    exchange = Exchange()
    exchange.form = FLOATS[1:2]
    assert exchange.refused() == (Status.WRONG_OUTPUT, "output_form")
    assert exchange.turns == 0


@pytest.mark.gpu
@pytest.mark.skipif(not blocks.has_cupy(), reason="needs CuPy")
@pytest.mark.parametrize(
    "specs", [FLOATS[:1], FLOATS[2:3], FLOATS[3:], SEVERAL], ids=["fp32", "fp16", "bf16", "several"]
)
def test_a_device_compares_several_answers_as_the_host_does(specs: list[TensorSpec]) -> None:
    if not pytest.importorskip("torch").cuda.device_count():
        pytest.skip("needs a CUDA device")
    truths = several(specs, 5)
    ours = truths.copy()
    values = equality.as_array(ours[2], specs[0], 0).copy()
    values[4] *= 3
    equality.put_array(ours[2], specs[0], 0, values)
    own_errors = [0.0] * len(specs)
    there, truths_there = (blocks.copied_to_device(each, 0) for each in (ours, truths))
    on_host = at_once(ours, truths, specs)
    assert on_host[2] > 1
    assert list(equality.quick_errors(there, truths_there, specs, own_errors)) == pytest.approx(on_host, rel=1e-4)
    assert list(equality.are_same(there, list(truths_there))) == [True, True, False, True, True]
    known = RightAnswers(specs)
    known.add(list(truths_there[:3]), list(truths_there[:3]))
    assert [known.has(row, truths_there[4]) for row in truths_there] == [True, True, True, False, False]
    assert not known.has(there[2], truths_there[4])
