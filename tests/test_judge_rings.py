"""Square matrices become rings, and keep what makes them what they are."""

import numpy as np
import pytest

from tasks.judge.distributions import RINGS, domains, transformed
from tasks.judge.wire import TensorSpec

SIZE, BATCH = 24, 3
RNG = np.random.default_rng(0)


def ringed(draws: list[np.ndarray]) -> np.ndarray:
    """What becomes of the first draw."""
    blocks = [np.ascontiguousarray(draw).reshape(-1).view(np.uint8) for draw in draws]
    specs = [TensorSpec.from_json([str(draws[0].dtype), list(draws[0].shape)])]
    found = transformed(blocks[0], specs, domains(blocks, specs), RINGS, np.random.default_rng(1))
    return found.view(draws[0].dtype).reshape(draws[0].shape)


def steps_around(links: np.ndarray) -> int:
    """In how many steps the first place reaches all others."""
    reached = np.arange(len(links)) == 0
    for step in range(len(links) + 1):
        if reached.all():
            return step
        reached = reached | (reached @ links)
    return len(links) + 1


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def beside_diagonal(matrices: np.ndarray) -> np.ndarray:
    return matrices * (1 - np.eye(SIZE, dtype=matrices.dtype))


def test_signed_matrices_keep_their_radius_and_their_diagonals() -> None:
    draws = [normal(BATCH, SIZE, SIZE) for _ in range(3)]
    found = ringed(draws)
    for matrix, before in zip(found, draws[0], strict=True):
        assert np.array_equal(np.diagonal(matrix), np.diagonal(before))
        links = np.abs(beside_diagonal(matrix)) > 1
        assert (links.sum(axis=1) == 1).all()
        assert steps_around(links) == SIZE - 1
        assert 3 < np.linalg.norm(beside_diagonal(matrix), 2) < 6, "the square root of 24 is 4.9"


def test_matrices_between_bounds_stay_there() -> None:
    draws = [RNG.random((SIZE, SIZE), dtype=np.float32) for _ in range(3)]
    found = ringed(draws)
    assert found.min() >= 0
    assert found.max() <= max(draw.max() for draw in draws)
    links = beside_diagonal(found) > 0.5
    assert steps_around(links) == SIZE - 1
    assert (beside_diagonal(np.where(links, 0, found)).sum(axis=1) < 0.03).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_chances_still_sum_to_one(axis: int) -> None:
    drawn = [np.exp(normal(SIZE, SIZE)) for _ in range(3)]
    draws = [draw / draw.sum(axis=axis, keepdims=True) for draw in drawn]
    found = ringed(draws)
    assert np.allclose(found.sum(axis=axis), 1.0, atol=1e-6)
    assert steps_around(found > 0.5) == SIZE - 1


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_masks_become_rings_of_ones(dtype: str) -> None:
    found = ringed([(RNG.random((BATCH, SIZE, SIZE)) < 0.2).astype(dtype) for _ in range(3)])
    assert set(np.unique(found)) == {0, 1}
    for matrix in found:
        assert steps_around(beside_diagonal(matrix.astype(np.uint8)) > 0) == SIZE - 1


def test_what_mirrors_itself_still_does() -> None:
    halves = [np.triu(RNG.random((SIZE, SIZE)) < 0.2) for _ in range(3)]
    edges = ringed([half | half.T for half in halves])
    assert np.array_equal(edges, edges.T)
    assert steps_around(edges) == SIZE // 2
    numbers = [normal(SIZE, SIZE) for _ in range(3)]
    weights = ringed([half + half.T for half in numbers])
    assert np.array_equal(weights, weights.T)
    assert steps_around(np.abs(beside_diagonal(weights)) > 1) == SIZE // 2


def test_edges_that_lead_one_way_still_do() -> None:
    draws = [np.triu(RNG.random((SIZE, SIZE)) < 0.2, 1) for _ in range(3)]
    assert np.array_equal(ringed(draws), np.eye(SIZE, k=1, dtype=bool))
    assert np.array_equal(ringed([draw.T for draw in draws]), np.eye(SIZE, k=-1, dtype=bool))


@pytest.mark.parametrize(
    "draws",
    [
        pytest.param([normal(SIZE, SIZE + 1) for _ in range(3)], id="not square"),
        pytest.param([normal(SIZE, SIZE) @ np.eye(SIZE, dtype="f")] * 3, id="alike in every draw"),
        pytest.param([np.tril(normal(SIZE, SIZE)) for _ in range(3)], id="triangles of numbers"),
        pytest.param([np.triu(np.tril(RNG.random((SIZE, SIZE)) < 0.5, 4), -4) for _ in range(3)], id="a band of ones"),
        pytest.param([half @ half.T for half in (normal(SIZE, SIZE) for _ in range(3))], id="positive definite"),
        pytest.param([half - half.T for half in (normal(SIZE, SIZE) for _ in range(3))], id="skew"),
        pytest.param([np.linalg.qr(normal(SIZE, SIZE))[0] for _ in range(3)], id="orthogonal"),
        pytest.param(
            [np.argsort(RNG.random((SIZE, SIZE)), axis=1) < 5 for _ in range(3)], id="as many neighbours for each"
        ),
    ],
)
def test_what_has_another_structure_becomes_no_ring(draws: list[np.ndarray]) -> None:
    assert np.array_equal(ringed(draws), draws[0])
