"""Other weights than a constructor makes: in some places, of one tensor, or as after long training."""

import copy

import numpy as np
import pytest
import torch

from tasks.judge import model_state
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


GATED = {"rnn.weight_ih_l0": [192, 64], "rnn.weight_hh_l0": [192, 64], "rnn.bias_hh_l0": [192], "out.weight": [10, 64]}


def test_weights_with_which_little_is_forgotten_turn_a_state_and_open_the_gate_that_keeps() -> None:
    specs = [TensorSpec.from_json(["float32", shape]) for shape in GATED.values()]
    rows = [(name, spec, "parameter") for name, spec in zip(GATED, specs, strict=True)]
    states = {seed: np.random.default_rng(seed).random(offsets(specs)[1] // 4, dtype=np.float32) for seed in SEEDS}
    weights = Weights(rows, {seed: state.view(np.uint8) for seed, state in states.items()})
    assert weights.has_squares
    changed = weights.lasting(states[0].view(np.uint8), np.random.default_rng(0), stays=False, share=0.05)
    starts, _ = offsets(specs)
    into, step, bias, out = (
        changed[start : start + spec.num_bytes].view(np.float32) for spec, start in zip(specs, starts, strict=True)
    )
    for square in step.reshape(3, 64, 64):
        assert np.allclose(np.linalg.svd(square)[1], 0.995, atol=1e-5)
    assert into.max() <= 0.05
    assert np.array_equal(bias > 3, np.arange(192) // 64 == 1)
    assert np.array_equal(out, states[0][-640:])


def test_chances_to_stay_are_large_on_the_diagonal_of_square_weights(weights: Weights) -> None:
    changed = parts(weights.lasting(state_of(0), np.random.default_rng(0), stays=True, share=0.3))["weight"]
    rest = changed.reshape(64, 64) - 8 * np.eye(64)
    assert np.allclose(rest, 0.3 * parts(state_of(0))["weight"].reshape(64, 64), atol=1e-5)


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
    variance = perturbed(POSITIVE.view(np.uint8), [SPECS[0]], [True], np.random.default_rng(1), is_filled=[False]).view(
        np.float32
    )
    assert (variance >= 0).all()
    assert not np.array_equal(variance, POSITIVE)


def test_weights_that_are_all_zero_do_not_stay_so() -> None:
    zeros = np.zeros(SPECS[0].num_items, "f")
    assert (
        perturbed(zeros.view(np.uint8), [SPECS[0]], [True], np.random.default_rng(1), is_filled=[False])
        .view(np.float32)
        .any()
    )


def test_constants_of_the_program_are_not_perturbed() -> None:
    same = perturbed(SIGNED.view(np.uint8), [SPECS[0]], [False], np.random.default_rng(1), is_filled=[False])
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


def identity_of(kind: str) -> Weights:
    spec = TensorSpec.from_json(["float32", [64, 64]])
    return Weights([("weight", spec, kind)], dict.fromkeys(SEEDS, np.eye(64, dtype=np.float32).view(np.uint8).ravel()))


def test_zeros_of_an_identity_become_small_values_as_in_training() -> None:
    weights = identity_of("parameter")
    near = weights.perturbed(weights.states[0], np.random.default_rng(0)).view(np.float32).reshape(64, 64)
    assert near.all()
    assert near.min() > 0
    assert 0.5 < near.sum(axis=1).mean() - near.diagonal().mean() < 1.5  # together as much as what was there
    strong = weights.strengthened(weights.states[0], np.random.default_rng(0), factor=3.0, with_signs=True)
    assert strong.view(np.float32).all()
    usual = weights.strengthened(weights.states[0], np.random.default_rng(0), factor=3.0, with_signs=True, fills=False)
    assert np.count_nonzero(usual.view(np.float32)) == 64


def test_zeros_between_negative_values_become_negative() -> None:
    values = -np.eye(64, dtype=np.float32)
    rng = np.random.default_rng(0)
    assert perturbed(values.view(np.uint8).ravel(), [SPECS[0]], [True], rng, is_filled=[True]).view("f").max() < 0


@pytest.mark.parametrize("kind", ["frozen", "buffer"])
def test_zeros_of_what_is_not_trained_stay(kind: str) -> None:
    weights = identity_of(kind)
    near = weights.perturbed(weights.states[0], np.random.default_rng(0)).view(np.float32)
    assert np.count_nonzero(near) == 64


def test_one_sided_weights_lie_near_the_usual_and_half_precision_moves_all_of_them_up(weights: Weights) -> None:
    before = state_of(0)
    after = parts(weights.one_sided(before, np.random.default_rng(0)))
    values = after["weight"]
    assert np.abs(values / parts(before)["weight"] - 1).max() < 0.01
    large = values[np.abs(values) > 1e-3]  # below it half precision has fewer bits
    assert (np.abs(large.astype(np.float16)) > np.abs(large)).all()
    assert not after["shift"].any()  # zeros stay what they are


def test_tensors_are_tied_where_they_share_memory_and_copies_are_not() -> None:
    model = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))
    model[1].weight = model[0].weight
    model.append(copy.deepcopy(model[0]))
    assert [name for name, *_ in model_state.state(model)][0::2] == ["0.weight", "1.weight", "2.weight"]
    assert model_state.first_alike(model) == [0, 1, 0, 3, 4, 5]


def test_what_is_tied_is_changed_alike_and_copies_are_not() -> None:
    spec = TensorSpec.from_json(["float32", [64]])
    rows = [(name, spec, "parameter") for name in ("one", "tied", "copy")]
    states = {seed: np.tile(np.random.default_rng(seed).random(64).astype("f"), 3).view(np.uint8) for seed in SEEDS}
    weights = Weights(rows, states, first_alike=[0, 0, 2])
    one, tied, copied = weights.perturbed(states[0], np.random.default_rng(1)).view(np.float32).reshape(3, 64)
    assert np.array_equal(one, tied)
    assert not np.array_equal(one, copied)


def test_a_parameter_that_asks_for_no_gradient_is_frozen_where_another_asks() -> None:
    model = torch.nn.Linear(4, 4)
    model.bias.requires_grad_(False)
    assert [kind for *_, kind in model_state.state(model)] == ["parameter", "frozen"]
    model.requires_grad_(False)
    assert [kind for *_, kind in model_state.state(model)] == ["parameter", "parameter"]
