"""Other weights than a constructor makes: in some places, of one tensor, or as after long training."""

import numpy as np
import pytest

from tasks.judge.trained import perturbed
from tasks.judge.weights import Weights
from tasks.judge.wire import TensorSpec, offsets

FORMS = {"weight": [64, 64], "small": [64, 64], "scale": [64], "shift": [64]}
SPECS = [TensorSpec.from_json(["float32", shape]) for shape in FORMS.values()]
ROWS = [(name, spec, "parameter") for name, spec in zip(FORMS, SPECS, strict=True)]
SEEDS = 0, 1, 2
POSITIVE = np.random.default_rng(0).random(SPECS[0].num_items).astype(np.float32)
SIGNED = POSITIVE - 0.5


def state_of(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = [
        rng.standard_normal((64, 64)) / 8,
        1e-7 * rng.standard_normal((64, 64)),
        np.ones(64),
        np.zeros(64),
    ]
    return np.concatenate([values.astype(np.float32).reshape(-1) for values in made]).view(np.uint8)


@pytest.fixture
def weights() -> Weights:
    return Weights(ROWS, {seed: state_of(seed) for seed in SEEDS})


def parts(state: np.ndarray) -> dict[str, np.ndarray]:
    starts = offsets(SPECS)[0]
    return {
        name: state[start : start + spec.num_bytes].view(np.float32)
        for name, spec, start in zip(FORMS, SPECS, starts, strict=True)
    }


def test_one_tensor_changes_in_few_places(weights: Weights) -> None:
    before = state_of(0)
    after = weights.perturbed(before, np.random.default_rng(0), share=0.004, only=[0])
    changed = {name: int((parts(after)[name] != parts(before)[name]).sum()) for name in FORMS}
    assert 1 <= changed.pop("weight") < 50
    assert not any(changed.values())


def test_strong_weights_are_large_of_both_signs_and_none_is_small(weights: Weights) -> None:
    before = state_of(0)
    after = parts(weights.strengthened(before, np.random.default_rng(0), factor=8.0, with_signs=True))
    assert 8 < after["weight"].std() / parts(before)["weight"].std() < 14
    assert after["small"].std() > 0.05
    assert after["scale"].min() < 0 < after["scale"].max()
    assert after["shift"].std() > 0.1
    kept = parts(weights.strengthened(before, np.random.default_rng(0), factor=3.0, with_signs=False))
    assert kept["scale"].min() > 0


def test_tensors_that_are_joined_are_found_and_written_together(weights: Weights) -> None:
    state = state_of(0)
    found = parts(state)
    joined = np.concatenate([found["scale"], found["shift"]])
    rows = [
        ("all", TensorSpec.from_json(["float32", [2, 64]]), "parameter"),
        ("other", TensorSpec.from_json(["float32", [64, 64]]), "parameter"),
    ]
    block = np.concatenate([joined, found["weight"]]).view(np.uint8)
    names = weights.names_in(rows, block, 0)
    assert names == ["other", None, None, None]
    (both,) = weights.joined_in(rows, block, 0, names)
    assert (both.name, both.indices) == ("all", (2, 3))
    written, as_rows = weights.under_names(state, names, {}, [both])
    assert as_rows == [["other", "float32", [64, 64]], ["all", "float32", [2, 64]]]
    assert np.array_equal(written[-512:].view(np.float32), joined)


def test_weights_of_equal_values_under_other_names_cannot_be_told_by_them() -> None:
    spec = TensorSpec.from_json(["float32", [64]])
    rows = [(name, spec, "parameter") for name in ("first.weight", "second.weight", "bias")]
    values = np.concatenate([np.ones(128), np.zeros(64)]).astype(np.float32).view(np.uint8)
    weights = Weights(rows, dict.fromkeys(SEEDS, values))
    assert weights.groups_alike(["gain", "scale", "shift"]) == [[0, 1]]
    assert weights.groups_alike(["first.weight", "second.weight", "bias"]) == []


def test_perturbed_weights_keep_their_sign_where_all_have_one() -> None:
    variance = perturbed(POSITIVE.view(np.uint8), [SPECS[0]], [True], np.random.default_rng(1)).view(np.float32)
    assert (variance >= 0).all()
    assert not np.array_equal(variance, POSITIVE)


def test_weights_that_are_all_zero_do_not_stay_so() -> None:
    zeros = np.zeros(SPECS[0].num_items, "f")
    assert perturbed(zeros.view(np.uint8), [SPECS[0]], [True], np.random.default_rng(1)).view(np.float32).any()


def test_constants_of_the_program_are_not_perturbed() -> None:
    same = perturbed(SIGNED.view(np.uint8), [SPECS[0]], [False], np.random.default_rng(1))
    assert np.array_equal(same.view(np.float32), SIGNED)


def test_complex_buffers_keep_their_length_where_what_is_learned_grows() -> None:
    phases = {seed: np.exp(1j * np.random.default_rng(seed).uniform(0, 6, 64)).astype(np.complex64) for seed in SEEDS}
    spec = TensorSpec.from_json(["complex64", [64]])
    states = {seed: values.view(np.uint8) for seed, values in phases.items()}
    lengths = {}
    for kind in ("buffer", "parameter"):
        of_kind = Weights([("phases", spec, kind)], states)
        strong = of_kind.strengthened(of_kind.states[0], np.random.default_rng(0), factor=8.0, with_signs=True)
        lengths[kind] = np.abs(strong.view(np.complex64))
    assert lengths["buffer"] == pytest.approx(np.ones(64), abs=1e-6)
    assert lengths["parameter"].min() > 2
