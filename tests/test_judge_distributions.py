"""Inputs leave the range that get_inputs shows only where the problem allows it."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.judge.distributions import DISTRIBUTIONS, Domain, domain, domains, items, mixed, perturbed, transformed
from tasks.judge.equality import put_array
from tasks.judge.wire import TensorSpec, offsets

RNG = np.random.default_rng(0)
SPEC = TensorSpec.from_json(["float32", [32, 64]])
SIGNED = RNG.standard_normal(SPEC.num_items).astype(np.float32)
BOUNDED = RNG.random(SPEC.num_items).astype(np.float32)


def domain_of(values: np.ndarray, spec: TensorSpec = SPEC) -> Domain:
    """What two draws say that differ a little, unless all values are alike or whole."""
    is_constant = values.dtype.kind in "ib" or (values == values[0]).all()
    return domain(spec, [values, values if is_constant else values * values.dtype.type(0.999)])


def moved(values: np.ndarray, name: str) -> np.ndarray:
    block = transformed(values.view(np.uint8), [SPEC], [domain_of(values)], name, np.random.default_rng(1))
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


def test_perturbed_weights_keep_their_sign_where_all_have_one() -> None:
    variance = perturbed(BOUNDED.view(np.uint8), [SPEC], [True], np.random.default_rng(1)).view(np.float32)
    assert (variance >= 0).all()
    assert not np.array_equal(variance, BOUNDED)


def test_weights_that_are_all_zero_do_not_stay_so() -> None:
    zeros = np.zeros(SPEC.num_items, "f")
    assert perturbed(zeros.view(np.uint8), [SPEC], [True], np.random.default_rng(1)).view(np.float32).any()


def test_constants_of_the_program_are_not_perturbed() -> None:
    same = perturbed(SIGNED.view(np.uint8), [SPEC], [False], np.random.default_rng(1))
    assert np.array_equal(same.view(np.float32), SIGNED)


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
