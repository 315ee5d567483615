"""Large inputs that are made of two draws are like neither, and keep what both have."""

import numpy as np
import pytest

from tasks.judge.distributions import domains, items, mixed
from tasks.judge.wire import TensorSpec, offsets


def block_of(*tensors: np.ndarray) -> np.ndarray:
    return np.concatenate([tensor.reshape(-1).view(np.uint8) for tensor in tensors])


def test_two_draws_mixed_are_like_neither_and_keep_to_their_places() -> None:
    rng = np.random.default_rng(0)
    specs = [TensorSpec.from_json(["float32", [64, 1024]]), TensorSpec.from_json(["float64", [304]])]
    blocks = [block_of(rng.standard_normal((64, 1024), dtype=np.float32), 1.0 + rng.random(304)) for _ in range(3)]
    where = domains(blocks, specs)
    found = mixed(blocks[0], blocks[1], specs, where, rng)
    assert found is not None
    for spec, start, place in zip(specs, offsets(specs)[0], where, strict=True):
        values, one, other = (items(block, spec, start) - place.nearest_to_zero for block in (found, *blocks[:2]))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.stack([values / one, values / other])
        is_of = (shares > 0.79) & (shares < 0.981)  # of one, and of the other
        assert is_of.any(axis=0).all()
        assert 0.4 < is_of[0].mean() < 0.8
        assert len(np.unique(np.round(shares[is_of], 3))) > 100, "who knows one share must not know all"


@pytest.mark.parametrize("low", [-1.0, 0.0, 1.0])
def test_no_value_of_a_mixture_was_seen_before_in_its_place(low: float) -> None:
    rng = np.random.default_rng(0)
    spec = TensorSpec.from_json(["float32", [4096]])
    blocks = [block_of((low + 2 * rng.random(4096)).astype(np.float32)) for _ in range(3)]
    where = domains(blocks, [spec])
    first, second = (mixed(blocks[0], blocks[1], [spec], where, rng) for _ in range(2))
    assert first is not None
    assert second is not None
    for seen in (blocks[0], blocks[1], second):
        assert (first.view(np.float32) == seen.view(np.float32)).mean() < 0.01
    assert where[0].low <= first.view(np.float32).min() <= first.view(np.float32).max() <= where[0].high


@pytest.mark.parametrize("structure", ["a mask", "sorted rows", "whole numbers"])
def test_what_has_a_structure_is_not_mixed(structure: str) -> None:
    rng = np.random.default_rng(0)
    structured = {
        "a mask": lambda: rng.integers(0, 2, (8, 512)).astype(np.float32),
        "sorted rows": lambda: np.sort(rng.standard_normal((8, 512), dtype=np.float32)),
        "whole numbers": lambda: rng.integers(0, 99, (8, 512)),
    }[structure]
    dtype = "int64" if structure == "whole numbers" else "float32"
    specs = [TensorSpec.from_json([dtype, [8, 512]]), TensorSpec.from_json(["float32", [4096]])]
    blocks = [block_of(structured(), rng.standard_normal(4096, dtype=np.float32)) for _ in range(3)]
    assert mixed(blocks[0], blocks[1], specs, domains(blocks, specs), rng) is None


def test_what_is_the_same_in_every_draw_stays_so_in_a_mixture() -> None:
    rng = np.random.default_rng(0)
    specs = [TensorSpec.from_json(["float32", [512]]), TensorSpec.from_json(["float32", [4096]])]
    ones = np.ones(512, dtype=np.float32)
    blocks = [block_of(ones, rng.standard_normal(4096, dtype=np.float32)) for _ in range(3)]
    found = mixed(blocks[0], blocks[1], specs, domains(blocks, specs), rng)
    assert found is not None
    assert np.array_equal(items(found, specs[0], 0), ones)
    assert not np.array_equal(found, blocks[0])


def test_a_mixture_of_matrices_that_equal_their_transposes_equals_its_own() -> None:
    rng = np.random.default_rng(0)
    spec = TensorSpec.from_json(["float32", [3, 64, 64]])
    drawn = [rng.standard_normal((3, 64, 64), dtype=np.float32) for _ in range(3)]
    blocks = [block_of(draw + draw.transpose(0, 2, 1)) for draw in drawn]
    found = mixed(blocks[0], blocks[1], [spec], domains(blocks, [spec]), rng)
    assert found is not None
    matrices = items(found, spec, 0).reshape(3, 64, 64)
    assert np.array_equal(matrices, matrices.transpose(0, 2, 1))
    assert not np.array_equal(found, blocks[0])
