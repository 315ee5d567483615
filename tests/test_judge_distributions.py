"""Inputs leave the range that get_inputs shows only where the problem allows it."""

import numpy as np
import pytest

from tasks.judge.distributions import DISTRIBUTIONS, Domain, domain, domains, items, transformed
from tasks.judge.equality import put_array
from tasks.judge.wire import TensorSpec

RNG = np.random.default_rng(0)
SPEC = TensorSpec.from_json(["float32", [32, 64]])
SIGNED = RNG.standard_normal(SPEC.num_items).astype(np.float32)
BOUNDED = RNG.random(SPEC.num_items).astype(np.float32)


def domain_of(values: np.ndarray, spec: TensorSpec = SPEC) -> Domain:
    """What two draws say that differ a little, unless all values are alike or whole."""
    is_constant = values.dtype.kind in "ib" or (values == values[0]).all()
    return domain(spec, [values, values if is_constant else values * values.dtype.type(0.999)])


def moved(values: np.ndarray, name: str) -> np.ndarray:
    return moved_by(1, values, name)


def moved_by(seed: int, values: np.ndarray, name: str) -> np.ndarray:
    block = transformed(values.view(np.uint8), [SPEC], [domain_of(values)], name, np.random.default_rng(seed))
    return block.view(np.float32)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        pytest.param(SIGNED, "signed", id="normal"),
        pytest.param(BOUNDED, "bounded", id="uniform"),
        pytest.param((BOUNDED > 0.5).astype("f"), "fixed", id="mask"),
        pytest.param(np.tril(SIGNED.reshape(32, 64)).reshape(-1), "signed", id="triangle"),
        pytest.param(np.sort(BOUNDED.reshape(32, 64), axis=1).reshape(-1), "fixed", id="sorted rows"),
        pytest.param(
            (BOUNDED.reshape(32, 64) / BOUNDED.reshape(32, 64).sum(1, keepdims=True)).reshape(-1), "fixed", id="shares"
        ),
        pytest.param(np.ones(SPEC.num_items, "f"), "constant", id="constant"),
        pytest.param(np.where(BOUNDED > 0.9, np.inf, SIGNED).astype("f"), "fixed", id="infinite"),
    ],
)
def test_the_domain_is_read_off_the_draws(values: np.ndarray, kind: str) -> None:
    assert domain_of(values).kind == kind


@pytest.mark.parametrize(("most", "kind"), [(128, "whole"), (16, "fixed")], ids=["pixels", "codes"])
def test_bytes_may_be_any_where_the_draws_show_many(most: int, kind: str) -> None:
    draws = [RNG.integers(0, most, 4096, dtype=np.uint8) for _ in range(3)]
    assert domain(TensorSpec.from_json(["uint8", [4096]]), draws).kind == kind


@pytest.mark.parametrize("value", [False, True])
def test_every_row_of_another_mask_has_both(value: bool) -> None:
    mask = np.full((32, 6), value)
    spec = TensorSpec.from_json(["bool", [32, 6]])
    where = domain(spec, [mask.reshape(-1)] * 2)
    block = mask.reshape(-1).view(np.uint8)
    found = transformed(block, [spec], [where], "unlike_constants", np.random.default_rng(1)).reshape(32, 6)
    assert (found.any(axis=1) & ~found.all(axis=1)).all()


def moved_whole(values: np.ndarray, name: str) -> np.ndarray:
    spec = TensorSpec.from_json([str(values.dtype), [values.size]])
    where = Domain(kind="whole", low=float(values.min()), high=float(values.max()))
    return transformed(values.view(np.uint8), [spec], [where], name, np.random.default_rng(1)).view(values.dtype)


def test_lengths_become_shorter_bytes_any_and_places_farther() -> None:
    lengths = RNG.integers(96, 129, 4096)
    shorter = moved_whole(lengths, "other_whole")
    assert 1 <= shorter.min() < 20
    assert shorter.max() <= 128
    assert np.array_equal(moved_whole(lengths, "farther_places"), lengths)
    bright = moved_whole(RNG.integers(0, 128, 4096, dtype=np.uint8), "other_whole")
    assert bright.min() < 10
    assert bright.max() > 245
    places = RNG.integers(0, 96, 4096)
    farther = moved_whole(places, "farther_places")
    assert farther.min() >= 0
    assert 300 < farther.max() < 4 * 96
    assert moved_whole(places, "nowhere").min() > 4 * 96


def test_bounded_values_go_past_their_bound_and_signed_ones_to_one_side() -> None:
    assert 7 < moved(BOUNDED, "beyond").max() <= 8
    assert moved(BOUNDED, "beyond").min() >= 0
    assert np.array_equal(moved(SIGNED, "beyond"), SIGNED)
    assert moved(SIGNED, "raised").min() > 0
    assert moved(SIGNED, "lowered").max() < 0
    assert np.array_equal(moved(BOUNDED, "raised"), BOUNDED)
    assert 0 < np.isnan(moved(SIGNED, "missing")).sum() < 10


def test_few_values_are_changed_where_no_sample_is_likely_to_find_them() -> None:
    assert np.isnan(moved(SIGNED, "few_missing")).sum() == 2
    assert set(moved(SIGNED, "few_infinite")[~np.isfinite(moved(SIGNED, "few_infinite"))]) == {-np.inf, np.inf}
    assert (moved(BOUNDED, "few_signs") < 0).sum() == 2
    for values, name, count in (SIGNED, "few_outliers", 2), (BOUNDED, "few_beyond", 1):
        found = moved(values, name)
        assert (found != values).sum() == count
        assert np.abs(found).max() > 7.9 * np.abs(values).max()
    assert np.array_equal(moved(BOUNDED, "few_outliers"), BOUNDED)
    assert np.array_equal(moved(SIGNED, "few_beyond"), SIGNED)


def test_few_values_are_none_of_the_zeros_where_there_are_others() -> None:
    values = np.where(BOUNDED < 0.9, 0, SIGNED).astype(np.float32)
    places = [np.flatnonzero(np.isnan(moved_by(seed, values, "few_missing"))) for seed in range(20)]
    assert all(len(found) == 2 and values[found].all() for found in places)
    assert len({tuple(found) for found in places}) > 10


def test_masks_that_are_added_get_other_holes() -> None:
    causal = np.triu(np.full((16, 16), -np.inf, dtype=np.float32), 1)
    spec = TensorSpec.from_json(["float32", [16, 16]])
    where = domain(spec, [causal.reshape(-1)] * 2)
    assert where.kind == "constant"
    for name in ("unlike_constants", "few_unlike_constants"):
        found = transformed(causal.reshape(-1).view(np.uint8), [spec], [where], name, np.random.default_rng(1))
        mask = found.view(np.float32).reshape(16, 16)
        assert not np.array_equal(mask, causal)
        assert set(np.unique(mask)) == {-np.inf, 0.0}
        assert (mask == 0).any(axis=1).all()


def test_few_rows_of_a_mask_are_others_and_never_the_first_or_the_last() -> None:
    mask = np.ones((32, 64), dtype=np.float32)
    spec = TensorSpec.from_json(["float32", [32, 64]])
    where = domain(spec, [mask.reshape(-1)] * 2)
    found = transformed(
        mask.reshape(-1).view(np.uint8), [spec], [where], "few_unlike_constants", np.random.default_rng(1)
    )
    (changed,) = np.nonzero((found.view(np.float32).reshape(32, 64) != mask).any(axis=1))
    assert 1 <= changed.min() <= changed.max() <= 30
    assert len(changed) <= 4


def test_a_grid_that_is_the_same_in_every_draw_gets_other_steps_between_its_ends() -> None:
    grid = np.linspace(0, 1, 300, dtype=np.float32)
    spec = TensorSpec.from_json(["float32", [300]])
    where = domain(spec, [grid, grid])
    found = transformed(grid.view(np.uint8), [spec], [where], "unlike_constants", np.random.default_rng(1))
    other = found.view(np.float32)
    assert (np.diff(other) > 0).all()
    assert np.allclose(other[[0, -1]], [0, 1], atol=1e-5)
    assert np.abs(other - grid).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_moved_too(dtype: str) -> None:
    spec = TensorSpec.from_json([dtype, [4096]])
    blocks = []
    for _ in range(3):
        blocks.append(np.zeros(spec.num_bytes, dtype=np.uint8))
        put_array(blocks[-1], spec, 0, RNG.standard_normal(4096))
    where = domains(blocks, [spec])
    assert where[0].kind == "signed"
    found = transformed(blocks[0], [spec], where, "negated", np.random.default_rng(1))
    assert np.array_equal(items(found, spec, 0), -items(blocks[0], spec, 0))


def test_places_in_a_row_get_another_order_within_their_row() -> None:
    values = np.tile(np.arange(64), (32, 1))
    spec = TensorSpec.from_json(["int64", [32, 64]])
    where = domain(spec, [values.reshape(-1)] * 2)
    found = transformed(
        values.reshape(-1).view(np.uint8), [spec], [where], "unlike_constants", np.random.default_rng(1)
    ).view(np.int64)
    assert not np.array_equal(found, values.reshape(-1))
    assert np.array_equal(np.sort(found.reshape(32, 64), axis=1), values)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (0, "int64", {0, 1}),
        (17, "int32", {16, 17}),
        (128, "uint8", {127, 128}),
        (1, "uint8", {0, 1}),
        (0, "int8", {0, 1}),
    ],
)
def test_whole_numbers_that_are_all_alike_do_not_stay_so(value: int, dtype: str, expected: set[int]) -> None:
    values = np.full(SPEC.num_items, value, dtype=dtype)
    spec = TensorSpec.from_json([dtype, list(SPEC.shape)])
    block = transformed(
        values.view(np.uint8), [spec], [domain(spec, [values, values])], "unlike_constants", np.random.default_rng(1)
    )
    assert set(block.view(dtype).tolist()) == expected


@pytest.mark.parametrize("name", ["one_sided", "small", "large", "outliers", "negated"])
def test_bounded_values_stay_within_their_bounds(name: str) -> None:
    where = domain_of(BOUNDED)
    beyond = BOUNDED.copy()
    beyond[:2] = 0.0, 1.0  # another draw, a little outside of those that told the bounds
    for values in (BOUNDED, beyond):
        found = transformed(values.view(np.uint8), [SPEC], [where], name, np.random.default_rng(1)).view(np.float32)
        assert not np.array_equal(found, values)
        assert found.min() >= 0.0
        assert found.max() <= 1.0


def test_signed_values_are_negated_and_scaled() -> None:
    assert np.array_equal(moved(SIGNED, "negated"), -SIGNED)
    assert np.allclose(moved(SIGNED, "large"), SIGNED * 10)
    assert np.allclose(moved(SIGNED, "small"), SIGNED * 0.01)


def rounded_to(values: np.ndarray, bits: int) -> np.ndarray:
    dropped = 24 - bits
    return (((values.view(np.int32) + (1 << (dropped - 1))) >> dropped) << dropped).view(np.float32)


@pytest.mark.parametrize("bits", [8, 11, 16])
def test_one_sided_values_are_all_rounded_away_from_zero(bits: int) -> None:
    values = moved(SIGNED, "one_sided")
    assert np.allclose(values, SIGNED, rtol=2**-7)
    assert (np.abs(rounded_to(values, bits)) > np.abs(values)).all()
    assert not (np.abs(rounded_to(SIGNED, bits)) > np.abs(SIGNED)).all()


def test_values_without_a_sign_get_signs_many_or_few() -> None:
    assert 0.4 < (moved(BOUNDED, "signs") < 0).mean() < 0.6
    assert 0 < (moved(BOUNDED, "rare_signs") < 0).sum() < 10


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_zeros_stay_zeros_and_mirrored_matrices_mirrored(name: str) -> None:
    square = TensorSpec.from_json(["float32", [40, 40]])
    half = np.triu(RNG.standard_normal((40, 40)).astype(np.float32), 3)
    values = (half + half.T).reshape(-1)
    block = transformed(values.view(np.uint8), [square], [domain_of(values, square)], name, np.random.default_rng(1))
    found = block.view(np.float32)
    assert (found[values == 0] == 0).all()
    assert np.array_equal(found.reshape(40, 40), found.reshape(40, 40).T)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param(np.ones(SPEC.num_items, "f"), "mask", id="ones"),
        pytest.param(np.ones(SPEC.num_items, bool), "mask", id="true"),
        pytest.param(np.zeros(SPEC.num_items, "f"), "noise", id="zeros"),
        pytest.param(np.full(SPEC.num_items, 3.0, "f"), "noise", id="threes"),
        pytest.param(np.arange(SPEC.num_items), "order", id="places"),
        pytest.param(RNG.random(SPEC.num_items) < 0.5, "mask", id="half of a mask"),
    ],
)
def test_what_was_the_same_in_every_draw_becomes_something_else(values: np.ndarray, words: str) -> None:
    spec = TensorSpec.from_json([str(values.dtype), list(SPEC.shape)])
    where = domain_of(values, spec)
    rng = np.random.default_rng(1)
    found = transformed(values.view(np.uint8), [spec], [where], "unlike_constants", rng).view(values.dtype)
    assert not np.array_equal(found, values)
    if words == "mask":
        assert set(np.unique(found)) == {0, 1}
        assert found.reshape(SPEC.shape).any(axis=1).all(), "no row may lose all its ones"
    elif words == "noise":
        assert len(np.unique(found)) > 1_000
    else:
        assert np.array_equal(np.sort(found), values)
