"""What is read off the draws of an input: its bounds, and structures that would lose their meaning if moved."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.judge.distributions import domain, domains, mixed, transformed
from tasks.judge.wire import TensorSpec

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        pytest.param(lambda: RNG.integers(0, 9, (32, 64)), "whole", id="places in a table"),
        pytest.param(lambda: RNG.integers(96, 129, 64), "whole", id="lengths"),
        pytest.param(lambda: RNG.integers(0, 2, (32, 64)), "fixed", id="mask"),
        pytest.param(lambda: RNG.permutation(64), "fixed", id="order"),
        pytest.param(lambda: np.sort(RNG.integers(0, 99, (32, 64)), axis=1), "fixed", id="growing rows"),
        pytest.param(lambda: RNG.permutation(999)[:64], "fixed", id="none twice"),
        pytest.param(lambda: RNG.integers(-9, 9, (32, 64)), "fixed", id="of both signs"),
        pytest.param(lambda: -np.sort(-RNG.integers(1, 99, 64)), "fixed", id="falling"),
        pytest.param(lambda: RNG.multinomial(640, [0.1] * 10), "fixed", id="always the same sum"),
        pytest.param(lambda: RNG.integers(0, 1 << 40, (32, 64)), "fixed", id="too large for places"),
    ],
)
def test_whole_numbers_may_be_others_where_nothing_speaks_against_it(draw: Callable[[], np.ndarray], kind: str) -> None:
    draws = [draw() for _ in range(3)]
    assert (
        domain(TensorSpec.from_json(["int64", list(draws[0].shape)]), [each.reshape(-1) for each in draws]).kind == kind
    )


def drawn(draw: Callable[[], np.ndarray]) -> str:
    draws = [draw().astype(np.float32) for _ in range(3)]
    spec = TensorSpec.from_json(["float32", list(draws[0].shape)])
    return domain(spec, [each.reshape(-1) for each in draws]).kind


def definite(*sizes: int) -> np.ndarray:
    matrices = RNG.standard_normal(sizes).astype(np.float32)
    return np.matmul(matrices, np.swapaxes(matrices, -1, -2)) + 0.1 * np.eye(sizes[-1], dtype=np.float32)


def intervals() -> np.ndarray:
    corners = RNG.random((300, 2))
    return np.concatenate([corners, corners + RNG.random((300, 2))], axis=1)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda: definite(64, 64), id="a positive definite matrix"),
        pytest.param(lambda: definite(8, 16, 16), id="several"),
        pytest.param(lambda: np.sort(RNG.standard_normal((200, 20)), axis=0), id="sorted columns"),
        pytest.param(lambda: np.sort(RNG.random((200, 2)), axis=1), id="pairs in order"),
        pytest.param(intervals, id="boxes"),
        pytest.param(lambda: np.linalg.qr(RNG.standard_normal((32, 32)))[0], id="an orthogonal matrix"),
    ],
)
def test_what_would_lose_its_meaning_if_moved_is_only_drawn(draw: Callable[[], np.ndarray]) -> None:
    assert drawn(draw) == "fixed"


@pytest.mark.parametrize("shape", [(64,), (128, 2), (300, 4), (5, 5), (32, 3, 8, 8)])
def test_values_drawn_one_by_one_never_look_as_if_they_had_a_structure(shape: tuple[int, ...]) -> None:
    assert {drawn(lambda: RNG.standard_normal(shape)) for _ in range(100)} == {"signed"}
    assert drawn(lambda: np.add(*2 * [RNG.standard_normal((64, 64))])) == "signed"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.full(300, -100), id="a class that is ignored"),
        pytest.param(np.full(2, 4), id="few numbers"),
        pytest.param(np.arange(0, 3000, 10, dtype=np.int32), id="where sequences begin"),
        pytest.param(np.eye(20, dtype=np.float32).reshape(-1), id="a definite matrix"),
    ],
)
def test_what_is_alike_in_every_draw_and_has_a_structure_stays_so(values: np.ndarray) -> None:
    shape = [20, 20] if values.size == 400 else [values.size]
    spec = TensorSpec.from_json([str(values.dtype), shape])
    assert domain(spec, [values, values]).kind == "fixed"


def complex_kind(draw: Callable[[], np.ndarray]) -> str:
    draws = [draw().astype(np.complex64) for _ in range(3)]
    spec = TensorSpec.from_json(["complex64", list(draws[0].shape)])
    return domains([each.reshape(-1).view(np.uint8) for each in draws], [spec])[0].kind


def normal(*sizes: int) -> np.ndarray:
    found: np.ndarray = RNG.standard_normal(sizes) + 1j * RNG.standard_normal(sizes)
    return found


def hermitian(size: int) -> np.ndarray:
    matrix = normal(size, size).astype(np.complex64)
    found: np.ndarray = matrix @ matrix.conj().T
    return found


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        pytest.param(lambda: normal(16, 32), "signed", id="normal"),
        pytest.param(lambda: RNG.random((16, 32)) + 1j * RNG.random((16, 32)), "bounded", id="positive halves"),
        pytest.param(lambda: np.exp(6j * RNG.random((16, 32))), "fixed", id="numbers of length 1"),
        pytest.param(lambda: hermitian(16), "fixed", id="hermitian"),
    ],
)
def test_complex_numbers_are_two_real_ones(draw: Callable[[], np.ndarray], kind: str) -> None:
    assert complex_kind(draw) == kind


def test_complex_inputs_are_moved() -> None:
    spec = TensorSpec.from_json(["complex64", [8, 16]])
    blocks = [normal(8, 16).astype(np.complex64).reshape(-1).view(np.uint8) for _ in range(2)]
    where = domains(blocks, [spec])
    negated = transformed(blocks[0], [spec], where, "negated", RNG)
    assert np.array_equal(negated.view(np.complex64), -blocks[0].view(np.complex64))
    both = mixed(blocks[0], blocks[1], [spec], where, RNG)
    assert both is not None
    assert not np.array_equal(both, blocks[0])


def shares_of_channels() -> np.ndarray:
    parts = RNG.random((4, 6, 5, 5)) + 0.1
    return parts / parts.sum(1, keepdims=True)


def unit_channels() -> np.ndarray:
    vectors = RNG.standard_normal((4, 6, 5, 5))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def toeplitz() -> np.ndarray:
    places = np.arange(12)
    return RNG.standard_normal(23)[places[:, None] - places + 11]


def of_low_rank() -> np.ndarray:
    tall = RNG.standard_normal((3, 16, 4))
    return tall @ np.swapaxes(tall, 1, 2)


def skew() -> np.ndarray:
    matrix = RNG.standard_normal((16, 16)).astype(np.float32)
    return matrix - matrix.T


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        pytest.param(shares_of_channels, "fixed", id="shares of channels"),
        pytest.param(unit_channels, "fixed", id="channels of one length"),
        pytest.param(toeplitz, "fixed", id="the same along diagonals"),
        pytest.param(of_low_rank, "fixed", id="positive semidefinite"),
        pytest.param(skew, "fixed", id="the negative of its transpose"),
        pytest.param(lambda: RNG.integers(0, 256, (16, 16)), "fixed", id="whole numbers as floats"),
        pytest.param(lambda: RNG.standard_normal((16, 4)), "signed", id="nothing of the kind"),
        pytest.param(lambda: RNG.standard_normal((2, 2)), "signed", id="too few to tell"),
    ],
)
def test_patterns_are_kept(draw: Callable[[], np.ndarray], kind: str) -> None:
    assert drawn(draw) == kind
