"""Every built-in problem runs, depends on all it is given, and is what a policy, a rewrite and the judge can work with.

A reference whose output ignores its inputs or weights, or hides them below the tolerance, teaches a policy to cheat.
"""

import ast
from types import SimpleNamespace

import pytest
import torch

from tasks.params import load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split

PROBLEMS = load_problems(load_params().problems)
MATERIAL_CHANGE = 1e-3  # of the output's norm, after a fresh draw or a shift of a single tensor
INPUT_BYTES_MAX = 4.5 * 2**20
OUTPUT_BYTES_MAX = 1.6 * 2**20  # outputs are copied out at every timed call

each_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)


def load(problem: Problem) -> SimpleNamespace:
    namespace: dict[str, object] = {}
    exec(compile(problem.source, problem.problem_id, "exec"), namespace)
    return SimpleNamespace(**namespace)


def make_model(problem: Problem, *, seed: int = 0) -> torch.nn.Module:
    module = load(problem)
    torch.manual_seed(seed)
    return module.Model(*module.get_init_inputs())


def make_inputs(problem: Problem, *, seed: int = 1) -> list[torch.Tensor]:
    module = load(problem)
    torch.manual_seed(seed)
    return module.get_inputs()


def relative_change(new: torch.Tensor, old: torch.Tensor) -> float:
    return ((new - old).norm() / old.norm()).item()


@each_problem
def test_the_output_is_one_finite_small_float32_tensor(problem: Problem) -> None:
    inputs = make_inputs(problem)
    out = make_model(problem)(*inputs)
    assert out.dtype == torch.float32
    assert torch.isfinite(out).all()
    assert out.std() > MATERIAL_CHANGE, "an output this flat disappears below an absolute tolerance"
    assert out.nbytes <= OUTPUT_BYTES_MAX
    assert sum(tensor.nbytes for tensor in inputs) <= INPUT_BYTES_MAX
    assert {tensor.dtype for tensor in inputs} <= {torch.float32, torch.int64}


@each_problem
def test_equal_seeds_give_equal_outputs_and_leave_the_inputs_alone(problem: Problem) -> None:
    inputs = make_inputs(problem)
    model = make_model(problem)
    first = model(*inputs)
    assert torch.equal(first, model(*inputs)), "a second call must not see traces of the first"
    assert torch.equal(first, make_model(problem)(*make_inputs(problem)))
    assert all(torch.equal(used, fresh) for used, fresh in zip(inputs, make_inputs(problem), strict=True))


@each_problem
def test_every_input_matters(problem: Problem) -> None:
    model = make_model(problem)
    inputs, others = make_inputs(problem), make_inputs(problem, seed=2)
    out = model(*inputs)
    for position, other in enumerate(others):
        changed = model(*inputs[:position], other, *inputs[position + 1 :])
        assert relative_change(changed, out) > MATERIAL_CHANGE, f"input {position} does not matter"


@each_problem
def test_every_weight_matters(problem: Problem) -> None:
    model, inputs = make_model(problem), make_inputs(problem)
    state = model.state_dict()
    out = model(*inputs)
    if state:
        fresh = make_model(problem, seed=2)(*inputs)
        assert relative_change(fresh, out) > MATERIAL_CHANGE, "fresh weights do not matter"
    for name, weight in state.items():
        original = weight.clone()
        weight += 0.1 * torch.rand_like(weight)
        assert relative_change(model(*inputs), out) > MATERIAL_CHANGE, f"{name} does not matter"
        weight.copy_(original)


@each_problem
@pytest.mark.parametrize("factor", [-1.0, 0.1, 10.0], ids=["negated", "small", "large"])
def test_other_distributions_of_the_inputs_are_valid_too(problem: Problem, factor: float) -> None:
    inputs = [tensor * factor if tensor.is_floating_point() else tensor for tensor in make_inputs(problem)]
    assert torch.isfinite(make_model(problem)(*inputs)).all()


@each_problem
def test_single_precision_loses_no_more_than_rounding(problem: Problem) -> None:
    model, inputs = make_model(problem), make_inputs(problem)
    out = model(*inputs)
    exact = model.double()(*[tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs])
    assert exact.dtype == torch.float64, "the forward must follow the precision of its inputs"
    assert (out - exact).abs().max() <= 3e-6 * exact.abs().max()


@each_problem
def test_the_text_is_short_and_imports_nothing_but_torch(problem: Problem) -> None:
    tree = ast.parse(problem.source)
    imported = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imported[:2] == ["import torch", "import torch.nn as nn"]
    assert set(imported[2:]) <= {"import torch.nn.functional as F"}
    assert ("F." in problem.source) == (len(imported) == 3)
    assert "#" not in problem.source
    assert '"""' not in problem.source
    assert len(problem.source.splitlines()) <= 45
    assert len(problem.source) <= 1000


def test_there_are_enough_problems_on_every_level_and_on_both_sides_of_the_split() -> None:
    held_out = [problem for problem in PROBLEMS.values() if problem.split is Split.HELD_OUT]
    assert len(PROBLEMS) >= 50
    assert 0.2 <= len(held_out) / len(PROBLEMS) <= 0.3
    assert {problem.level for problem in held_out} == {problem.level for problem in PROBLEMS.values()} == {1, 2, 3}


def test_every_problem_has_a_family_of_at_least_two_and_no_twin() -> None:
    families = [problem.family for problem in PROBLEMS.values()]
    assert [family for family in families if families.count(family) < 2] == []
    assert len({problem.problem_hash for problem in PROBLEMS.values()}) == len(PROBLEMS)
