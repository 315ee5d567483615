"""Every fault changes the text, and what it says about itself is what happens when it runs."""

import pytest
import torch

from tasks.variants.rewrites import faults, slowdowns
from tasks.variants.rewriting import Rewrite
from tests.program_builders import defined, outputs, problem, rewritten

LAYERS = "self.linear = nn.Linear(size0, size0)\nself.weight = nn.Parameter(torch.rand(size0) + 0.5)"
NORM = problem(
    "x = self.linear(x)\n"
    "mean = torch.mean(x, dim=-1, keepdim=True)\n"
    "var = torch.var(x, dim=-1, keepdim=True)\n"
    "x = (x - mean) / torch.sqrt(var + 1e-5)\n"
    "x = torch.sigmoid(x)\n"
    "x = x * self.weight\n"
    "return x * 0.3",
    "torch.randn(5, 7)",
    init=LAYERS,
    init_arguments="7",
)
PRODUCT = problem(
    "x = torch.matmul(x[:, 0:4], y.transpose(0, 1))\nx = torch.softmax(x, dim=1)\nreturn x",
    "torch.randn(5, 6), torch.randn(9, 4)",
    arguments="x, y",
)
ZEROS = NORM.replace("torch.randn(5, 7)", "torch.zeros(5, 7)").replace("nn.Linear(size0, size0)", "nn.Identity()")
WRONG: dict[Rewrite, str] = {
    faults.drop_term: NORM,
    faults.swap_operands: NORM,
    faults.reduce_wrong_dimension: PRODUCT,
    faults.sum_for_mean: NORM,
    faults.wrong_activation: NORM,
    faults.wrong_constant: NORM.replace("1e-5", "0.1"),
    faults.forget_epsilon: ZEROS,
    faults.miss_last_slice: PRODUCT,
    faults.forget_transpose: PRODUCT,
    faults.forget_keepdim: NORM,
    faults.confuse_variances: NORM,
    faults.use_undefined_name: NORM,
    faults.use_wrong_attribute: NORM,
    faults.forget_import: NORM,
    faults.call_missing_function: NORM,
    faults.change_constructor: NORM,
    slowdowns.round_to_half: NORM,
    slowdowns.keep_result: NORM,
    slowdowns.return_zeros: NORM,
    slowdowns.return_wrong_shape: NORM,
    slowdowns.forget_return: NORM,
    slowdowns.forget_step: NORM,
}
SLOW = [
    slowdowns.detour_through_double,
    slowdowns.clone_needlessly,
    slowdowns.compute_twice,
    slowdowns.loop_over_rows,
]
NOT_PYTHON = [slowdowns.assign_backwards]
CHANGES_INPUT = [slowdowns.change_input]


def changed(source: str, fault: Rewrite, seed: int = 0) -> str:
    candidate = rewritten(source, fault, seed=seed)
    assert candidate is not None, "the fault does not apply"
    plain = source[source.index("class Model") : source.index("def get_inputs")].strip()
    assert plain.replace("class Model", "class ModelNew") not in candidate
    return candidate


@pytest.mark.parametrize("fault", WRONG, ids=lambda fault: fault.name)
def test_a_mistake_fails_or_changes_the_result(fault: Rewrite) -> None:
    candidate = changed(WRONG[fault], fault)
    try:
        expected, found = outputs(WRONG[fault], candidate)
    except (NameError, AttributeError, TypeError, RuntimeError, IndexError):
        return  # it crashed, as some of them should
    assert found is None or found.shape != expected.shape or not torch.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fault", SLOW, ids=lambda fault: fault.name)
def test_a_slowness_leaves_the_result_right(fault: Rewrite) -> None:
    torch.testing.assert_close(*outputs(NORM, changed(NORM, fault)))


@pytest.mark.parametrize("fault", NOT_PYTHON, ids=lambda fault: fault.name)
def test_some_candidates_do_not_parse(fault: Rewrite) -> None:
    with pytest.raises(SyntaxError):
        defined(changed(NORM, fault))


@pytest.mark.parametrize("fault", CHANGES_INPUT, ids=lambda fault: fault.name)
def test_some_candidates_change_their_input(fault: Rewrite) -> None:
    model = defined(changed(NORM, fault))["ModelNew"](7)
    x = torch.ones(5, 7)
    model(x)
    assert not torch.equal(x, torch.ones(5, 7))


def test_every_fault_is_tried_here() -> None:
    tried = {*WRONG, *SLOW, *NOT_PYTHON, *CHANGES_INPUT}
    assert {
        value for module in (faults, slowdowns) for value in vars(module).values() if isinstance(value, Rewrite)
    } == tried


@pytest.mark.parametrize(
    "signature",
    ["size0, scale=2.0", "size0, scale=2.0, *more", "size0, *more, scale=2.0", "size0, scale=2.0, device='cpu'"],
)
def test_a_constructor_with_defaults_wants_one_more_argument_too(signature: str) -> None:
    layers = {"init": "self.scale = scale + size0", "init_arguments": "4"}
    source = problem("return torch.relu(x) * self.scale", "torch.randn(4, 4)", **layers)
    candidate = changed(source.replace("self, size0", f"self, {signature}"), faults.change_constructor)
    for arguments in ((4,), (4, 3.0)):
        with pytest.raises(TypeError):
            defined(candidate)["ModelNew"](*arguments)


def test_places_are_chosen_by_chance() -> None:
    assert len({changed(NORM, faults.drop_term, seed) for seed in range(20)}) > 2


@pytest.mark.parametrize(
    ("fault", "forward"),
    [
        (faults.drop_term, "return torch.relu(x)"),
        (faults.swap_operands, "return x + x"),
        (faults.sum_for_mean, "return torch.sum(x, dim=1)"),
        (faults.wrong_constant, "return torch.relu(x)"),
        (faults.forget_epsilon, "return x + 1.0"),
        (faults.forget_transpose, "return torch.relu(x)"),
        (faults.change_constructor, "return torch.relu(x)"),
        (slowdowns.loop_over_rows, "return torch.relu(x)"),
        (slowdowns.forget_step, "return torch.relu(x)"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_fault_needs_a_place_to_be_made(fault: Rewrite, forward: str) -> None:
    assert rewritten(problem(forward, "torch.randn(4, 4)"), fault) is None
