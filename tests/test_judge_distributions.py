"""Inputs leave the range that get_inputs shows only where the problem allows it."""

import numpy as np
import pytest

from tasks.judge.distributions import DISTRIBUTIONS, Domain, domain, perturbed, transformed
from tasks.judge.wire import TensorSpec

RNG = np.random.default_rng(0)
SPEC = TensorSpec.from_json(["float32", [32, 64]])
SIGNED = RNG.standard_normal(SPEC.num_items).astype(np.float32)
BOUNDED = RNG.random(SPEC.num_items).astype(np.float32)


def domain_of(values: np.ndarray, spec: TensorSpec = SPEC) -> Domain:
    return domain(spec, [values, values])


def moved(values: np.ndarray, name: str) -> np.ndarray:
    block = transformed(values.view(np.uint8), [SPEC], [domain_of(values)], name, np.random.default_rng(1))
    return block.view(np.float32)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        pytest.param(SIGNED, "signed", id="normal"),
        pytest.param(BOUNDED, "bounded", id="uniform"),
        pytest.param((BOUNDED > 0.5).astype("f"), "fixed", id="mask"),
        pytest.param(np.tril(SIGNED.reshape(32, 64)).reshape(-1), "fixed", id="triangle"),
        pytest.param(np.sort(BOUNDED.reshape(32, 64), axis=1).reshape(-1), "fixed", id="sorted rows"),
        pytest.param(
            (BOUNDED.reshape(32, 64) / BOUNDED.reshape(32, 64).sum(1, keepdims=True)).reshape(-1), "fixed", id="shares"
        ),
        pytest.param(np.ones(SPEC.num_items, "f"), "fixed", id="constant"),
        pytest.param(np.where(BOUNDED > 0.9, np.inf, SIGNED).astype("f"), "fixed", id="infinite"),
    ],
)
def test_the_domain_is_read_off_the_draws(values: np.ndarray, kind: str) -> None:
    assert domain_of(values).kind == kind


def test_integers_are_only_drawn() -> None:
    assert domain(TensorSpec.from_json(["int64", [8]]), []).kind == "fixed"


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bounded_values_stay_within_their_bounds(name: str) -> None:
    values = moved(BOUNDED, name)
    assert not np.array_equal(values, BOUNDED)
    assert values.min() >= BOUNDED.min()
    assert values.max() <= BOUNDED.max()


def test_signed_values_are_negated_and_scaled() -> None:
    assert np.array_equal(moved(SIGNED, "negated"), -SIGNED)
    assert np.allclose(moved(SIGNED, "large"), SIGNED * 10)
    assert np.allclose(moved(SIGNED, "small"), SIGNED * 0.1)


def test_few_values_remain_in_every_stretch() -> None:
    stretches = moved(SIGNED, "few_values").reshape(16, -1)
    assert all(len(np.unique(stretch)) <= 3 for stretch in stretches)
    assert set(moved(SIGNED, "few_values")) <= set(SIGNED)


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
