"""A drop-in leaves to the reference what torch does otherwise than when it was judged: modes, defaults, forms, hooks.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import contextlib
import types
from collections.abc import Callable, Iterator

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import BaseTorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

from tasks.search.survey import Survey
from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.inner(x) * self.scale


def example_inputs():
    return torch.randn(3, 2, 4)
"""
MODES: dict[str, Callable[[], contextlib.AbstractContextManager]] = {
    "a mode of functions": BaseTorchFunctionMode,
    "a mode of operators": lambda: FlopCounterMode(display=False),
    "another default device": lambda: torch.device("meta"),
    "another default dtype": lambda: default_dtype(torch.float64),
    "deterministic algorithms": lambda: deterministic(),
    "a global hook": lambda: torch.nn.modules.module.register_module_forward_hook(lambda *_: None),
    "a global hook before": lambda: torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: None),
}


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("modes"), SOURCE, marks={"return self.inner": "return 1 + self.inner"})


def is_fast(block: torch.nn.Module) -> bool:
    x = torch.randn(3, 2, 4, dtype=torch.float32, device="cpu")
    with torch.no_grad():
        extra = float((block(x) - x).mean())
    assert extra in (0.0, pytest.approx(1.0, abs=1e-5))
    return extra != 0.0


@pytest.mark.parametrize("mode", MODES)
def test_within_a_mode_it_runs_as_the_reference_and_is_fast_again_after_it(
    written: types.ModuleType, mode: str
) -> None:
    block = written.Block()
    assert is_fast(block)
    with MODES[mode]():
        assert not is_fast(block)
    assert is_fast(block)


@pytest.mark.parametrize("mode", MODES)
def test_a_first_call_within_a_mode_does_not_end_the_fast_way(written: types.ModuleType, mode: str) -> None:
    block = written.Block()
    with MODES[mode]():
        assert not is_fast(block)
    assert is_fast(block)


def test_a_default_device_of_the_judged_kind_changes_nothing(written: types.ModuleType) -> None:
    block = written.Block()
    with torch.device("cpu"):
        assert is_fast(block)
        with FlopCounterMode(display=False):
            assert not is_fast(block)
        with BaseTorchFunctionMode():
            assert not is_fast(block)


@torch.no_grad()
def test_a_graph_of_operators_is_the_reference_s(written: types.ModuleType) -> None:
    block, x = written.Block(), torch.randn(3, 2, 4)
    assert is_fast(block)
    assert torch.equal(make_fx(block)(x)(x), x)


@torch.no_grad()
def test_tensors_that_only_have_a_form_get_the_reference_s_answer(
    written: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, x = written.Block(), torch.randn(3, 2, 4)
    assert is_fast(block)
    monkeypatch.setattr(written.FastBlock, "forward", None)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert block(x).shape == x.shape


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    """One whose reference takes tensors of any layout."""
    facts = Survey(inputs=(("tensor", "float32", (3, 4), (4, 1)),), named_inputs={}, constructor=None)
    source = SOURCE.replace("self.inner(x) * self.scale", "self.inner(x).sin()")
    folder = tmp_path_factory.mktemp("rows")
    return imported(folder, source, facts=facts, marks={"1 + self.inner(x).sin()": "x.relu() * 0 + 9"})


@torch.no_grad()
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(torch._neg_view, id="negated when read"),
        pytest.param(lambda x: x.to_sparse(), id="sparse"),
        pytest.param(lambda x: x.to_sparse_csr(), id="sparse by rows"),
        pytest.param(lambda x: torch.nested.nested_tensor([*x]), id="nested"),
    ],
)
def test_inputs_in_another_storage_run_as_the_reference(
    rows: types.ModuleType, changed: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    block, x = rows.Block(), torch.rand(3, 4)
    assert block(x).eq(9).all()
    given = changed(x)
    found, wanted = block(given), rows.ReferenceBlock.forward(block, given)
    assert found.layout is wanted.layout
    assert all(torch.equal(one.to_dense(), other.to_dense()) for one, other in zip(found, wanted, strict=True))


@torch.no_grad()
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "weight",
    [
        pytest.param(lambda: TwoTensor(torch.ones(4), torch.ones(4)), id="of another class"),
        pytest.param(lambda: torch._neg_view(-torch.ones(4)), id="negated when read"),
    ],
)
def test_weights_in_another_storage_run_as_the_reference(
    written: types.ModuleType, first: bool, weight: Callable[[], torch.Tensor]
) -> None:
    block, x = written.Block(), torch.randn(3, 2, 4)
    assert not first or is_fast(block)
    usual, block.scale = block.scale, torch.nn.Parameter(weight(), requires_grad=False)
    found = block(x)
    assert torch.equal(found.a if isinstance(found, TwoTensor) else found, x)
    block.scale = usual
    assert is_fast(block)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(
    "parameters", ["x", "x, scale=1.0, *, shift=0.0", "x, *others", "x, **named", "x, /, *, shift=0.0, **named"]
)
def test_a_symbolic_trace_is_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, parameters: str, gradients: bool
) -> None:
    source = SOURCE.replace("def forward(self, x)", f"def forward(self, {parameters})")
    file = imported(tmp_path_factory.mktemp("traced"), source, marks={"return self.inner": "return 1 + self.inner"})
    block, x = file.Block(), torch.randn(3, 2, 4)
    assert is_fast(block)
    with torch.set_grad_enabled(gradients):
        traced, wanted = (torch.fx.symbolic_trace(each) for each in (block, file.ReferenceBlock()))
        assert traced.code == wanted.code
    assert is_fast(block)
    compiled = torch.compile(block, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), x)


@pytest.mark.parametrize("first", [True, False])
def test_a_module_that_was_compiled_is_fast_where_it_is_called_itself(written: types.ModuleType, first: bool) -> None:
    block, x = written.Block().eval(), torch.randn(3, 2, 4)
    assert not first or is_fast(block)
    compiled = torch.compile(block, backend="eager")
    with torch.no_grad():
        assert torch.equal(compiled(x), x)
    assert is_fast(block)


def test_a_torch_that_keeps_for_each_thread_whether_it_traces_runs_fast_code(
    written: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch.fx._symbolic_trace, "_is_fx_tracing_flag", raising=False)  # as since 2.14
    monkeypatch.setattr(torch.fx._symbolic_trace, "is_fx_symbolic_tracing", lambda: False)
    block, x = written.Block().eval(), torch.randn(3, 2, 4)
    with torch.no_grad():
        assert torch.equal(block(x), x + 1)


def test_a_torch_that_cannot_be_asked_runs_the_reference(
    written: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, x = written.Block().eval(), torch.randn(3, 2, 4)
    monkeypatch.delattr(torch.nn.modules.module, "_has_any_global_hook")
    with torch.no_grad():
        assert torch.equal(block(x), x)
