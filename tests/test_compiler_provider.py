"""What torch.compile emits becomes a program that needs no torch.compile and holds wherever the reference does."""

import contextlib
import copy
import shutil
from pathlib import Path

import pytest
import torch

from tasks.params.generation import GenerateVariantsParams
from tasks.problems.problem import Problem, Split
from tasks.variants.candidate import Candidate
from tasks.variants.compiler import child
from tasks.variants.compiler.cpp import CppEmitter
from tasks.variants.compiler.emission import Emission
from tasks.variants.compiler.process import emit
from tasks.variants.compiler.program import program_of
from tasks.variants.compiler.provider import CompilerProvider
from tests.program_builders import defined, problem

pytestmark = pytest.mark.slow
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ builds the kernels, and is not installed")

# A product that stays torch's, statistics that a call updates, an argument that is no tensor, and two outputs.
SOURCE = problem(
    """
x = torch.relu(self.layers(x) * scale)
probabilities = torch.softmax(x, dim=-1)
return probabilities, x.amax(dim=0)
""",
    "torch.randn(24, 40), 0.5",
    arguments="x, scale=2.0",
    init="self.layers = nn.Sequential(nn.Linear(size0, size1), nn.BatchNorm1d(size1))",
    init_arguments="40, 33",
)
GENERATOR = {"base_url": "http://localhost", "model": "m", "key_variable": None}
GENERATOR |= {"prompt_usd_per_million": 0.0, "answer_usd_per_million": 0.0}


def problem_of(source: str) -> Problem:
    return Problem(problem_id="level2/small", level=2, family="small", split=Split.TRAIN, source=source)


@pytest.fixture(scope="module")
def candidates() -> dict[str, Candidate]:
    """By the name of the variation."""
    found = CompilerProvider().candidates(problem_of(SOURCE), seed=0)
    return {candidate.recipe[-1]: candidate for candidate in found}


VECTORS = {"AVX512": ["vectors"], "AVX2": ["half_vectors"]}.get(torch.backends.cpu.get_cpu_capability(), [])
"""What loops over the longest vectors of this processor are called."""


@pytest.fixture(params=["loops", *VECTORS])
def program(request: pytest.FixtureRequest, candidates: dict[str, Candidate]) -> dict:
    return defined(candidates[request.param].source)


def emitted_here(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Emission:
    """Loops for a source that we trust, without the seconds that a process of its own takes to start."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    return Emission.from_json(child.emission(source, CppEmitter.variations[0].options))


def models(program: dict, *arguments: int) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The reference's and the candidate's, with the same weights."""
    made = []
    for names, entry in ((defined(SOURCE), "Model"), (program, "ModelNew")):
        torch.manual_seed(0)
        made.append(names[entry](*(arguments or (40, 33))))
    return made[0], made[1]


def emitted_calls(program: dict, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each call of the emitted code."""
    calls: list[int] = []
    compiled = program["compiled"]
    monkeypatch.setitem(program, "compiled", lambda *tensors: calls.append(1) or compiled(*tensors))
    return calls


@needs_compiler
def test_it_computes_what_the_reference_computes_and_updates_the_same_buffers(program, monkeypatch):
    reference, candidate = models(program)
    calls = emitted_calls(program, monkeypatch)
    x = torch.randn(24, 40)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(candidate(x, 0.5), reference(x, 0.5))
    assert len(calls) == 2
    torch.testing.assert_close(candidate.state_dict(), reference.state_dict())


@needs_compiler
def test_it_follows_weights_that_change(program):
    reference, candidate = models(program)
    other = {name: torch.rand_like(value.float()).to(value.dtype) for name, value in reference.state_dict().items()}
    x = torch.randn(24, 40)
    with torch.no_grad():
        before = candidate(x, 0.5)[0].clone()
        for model in (reference, candidate):
            model.load_state_dict(other)
        torch.testing.assert_close(candidate(x, 0.5), reference(x, 0.5))
        assert not torch.equal(before, candidate(x, 0.5)[0])


@needs_compiler
@pytest.mark.parametrize(
    "case",
    ["shape", "strides", "dtype", "number", "default", "evaluation", "constructor", "autocast", "gradients", "forward"],
)
def test_it_is_the_reference_for_all_else(program, monkeypatch, case):
    reference, candidate = models(program, *((40, 20) if case == "constructor" else ()))
    calls = emitted_calls(program, monkeypatch)
    x, arguments = torch.randn(24, 40), (0.5,)
    if case == "shape":
        x = torch.randn(7, 40)
    elif case == "strides":
        x = torch.randn(40, 24).T
    elif case == "dtype":
        x, reference, candidate = x.double(), reference.double(), candidate.double()
    elif case in ("number", "default"):
        arguments = (3,) if case == "number" else ()
    elif case == "evaluation":
        reference.layers[1].eval(), candidate.layers[1].eval()
    dual_level = torch.autograd.forward_ad.dual_level() if case == "forward" else contextlib.nullcontext()
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=case == "autocast")
    with torch.set_grad_enabled(case == "gradients"), autocast, dual_level:
        found, expected = candidate(x, *arguments), reference(x, *arguments)
    assert calls == []
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    if case == "gradients":
        found[0].square().sum().backward(), expected[0].square().sum().backward()
        torch.testing.assert_close(candidate.layers[0].weight.grad, reference.layers[0].weight.grad)


@needs_compiler
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_traces_and_transforms_see_the_reference(tmp_path, monkeypatch):
    source = problem("return torch.softmax(x * 2.0, dim=-1)", "torch.randn(8, 16)")
    program = defined(program_of(source, emitted_here(source, tmp_path, monkeypatch), CppEmitter()))
    calls = emitted_calls(program, monkeypatch)
    reference, candidate = program["Model"](), program["ModelNew"]()
    x, other = torch.randn(2, 8, 16)
    torch.testing.assert_close(torch.jit.trace(candidate, x, check_trace=False)(other), reference(other))
    changes = [torch.func.jvp(model, (x,), (other,))[1] for model in (reference, candidate)]
    torch.testing.assert_close(*changes)
    assert calls == []
    assert torch.equal(candidate(x), program["compiled"](x))
    assert len(calls) == 2


@needs_compiler
def test_an_input_of_which_only_the_size_counts_is_looked_at_too(tmp_path, monkeypatch):
    source = problem("return x * like.shape[0]", "torch.randn(8, 16), torch.randn(3)", arguments="x, like")
    program = defined(program_of(source, emitted_here(source, tmp_path, monkeypatch), CppEmitter()))
    calls = emitted_calls(program, monkeypatch)
    x = torch.randn(8, 16)
    for size in (3, 5):
        assert torch.equal(program["ModelNew"]()(x, torch.randn(size)), x * size)
    assert len(calls) == 1


@needs_compiler
@pytest.mark.parametrize("dtype", ["bfloat16", "half"])
def test_loops_over_half_precision_are_built_too(tmp_path, monkeypatch, dtype):
    source = problem("return torch.relu(x) * 2.0", f"torch.randn(8, 16).{dtype}()")
    text = program_of(source, emitted_here(source, tmp_path, monkeypatch), CppEmitter())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "built"))
    (tmp_path / "built").mkdir()
    program = defined(text)
    calls = emitted_calls(program, monkeypatch)
    x = getattr(torch.randn(8, 16), dtype)()
    assert torch.equal(program["ModelNew"]()(x), torch.relu(x) * 2.0)
    assert len(calls) == 1
    assert list((tmp_path / "built").iterdir()) == []


@needs_compiler
def test_a_copy_of_the_model_is_a_model_of_its_own(program):
    reference, candidate = models(program)
    twin = copy.deepcopy(candidate)
    x = torch.randn(24, 40)
    with torch.no_grad():
        twin.layers[0].weight.zero_()
        torch.testing.assert_close(candidate(x, 0.5), reference(x, 0.5))


@needs_compiler
def test_texts_stand_alone_and_come_out_the_same_again(candidates):
    (again,) = emit(SOURCE, CppEmitter.variations[:1], timeout_s=120)
    assert isinstance(again, Emission)
    assert program_of(SOURCE, again, CppEmitter()) == candidates["loops"].source
    assert len({candidate.source for candidate in candidates.values()}) == len(candidates) >= 2
    for candidate in candidates.values():
        assert candidate.origin == "compiler"
        for word in ("_inductor", "torch.compile", "extern_kernels", str(Path.cwd()), str(Path(torch.__file__).parent)):
            assert word not in candidate.source


@needs_compiler
def test_an_index_out_of_range_is_an_exception_as_it_is_in_torch(tmp_path, monkeypatch):
    source = problem("return x[index]", "torch.randn(8, 16), torch.arange(3)", arguments="x, index")
    model = defined(program_of(source, emitted_here(source, tmp_path, monkeypatch), CppEmitter()))["ModelNew"]()
    x = torch.randn(8, 16)
    assert torch.equal(model(x, torch.tensor([7, 0, 1])), x[[7, 0, 1]])
    with pytest.raises(IndexError, match="out of range"):
        model(x, torch.tensor([0, 8, 1]))


def test_it_is_chosen_by_name_beside_the_others():
    values = {"max_per_problem": 1, "depth": 1, "draws": 1, "compiled_share": 0.0, "faulty_share": 0.0}
    params = GenerateVariantsParams(providers=("builtin", "compiler"), **values)
    assert params.generators_in_use == {}
    with pytest.raises(ValueError, match="may not be called compiler"):
        GenerateVariantsParams(generators={"compiler": GENERATOR}, **values)
