"""A drop-in is fast only while its module is what was judged: made of the same values, in the same modes and dtypes.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import copy
import pickle
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from tasks.errors import RecordError
from tasks.search.survey import Survey
from tests.drop_in_builders import imported

SOURCE = """
import enum
import random

import numpy as np
import torch
from torch import nn


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Inner(nn.Module):
    scale = 1.0

    def __init__(self, slope, act):
        super().__init__()
        self.leaky = nn.LeakyReLU(slope)
        self.dropout = nn.Dropout(0.5)
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.act = act
        self.plain = nn.Linear(4, 4, bias=False)
        self.register_buffer("mask", None)

    def forward(self, x):
        x = self.plain(self.conv(self.dropout(self.leaky(x))))
        return self.act(x) * self.scale * (1.0 if self.mask is None else self.mask)


class Block(nn.Module):
    def __init__(self, slope=0.2, act=torch.relu, power=2.0, sizes=(1, 2)):
        super().__init__()
        self.inner = Inner(slope, act)
        self.power = power
        self.sizes = list(sizes)
        self.config = {"dtype": torch.float32, "names": ["a", None]}
        self.mode = Mode.SUM
        self.axes = {"rows", "columns", "planes"}
        self.place = torch.device("cpu")
        self.width, self.span = np.int64(4), slice(0, 2)
        self.last = torch.zeros(2)
        self.register_buffer("table", torch.ones(4))

    def forward(self, x):
        return self.inner(x) ** self.power + self.table + len(self.sizes)


def example_init():
    return {"slope": 0.2}


def example_inputs():
    return torch.randn(3, 2, 4)
"""
PRIOR = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self):
        return self.weight * 1


def example_inputs():
    return []
"""
NO_INPUTS = Survey(inputs=(), named_inputs={}, constructor=None)
OTHERWISE = [
    pytest.param(lambda block: setattr(block, "power", 3.0), id="a number"),
    pytest.param(lambda block: setattr(block, "power", 2), id="an equal number of another type"),
    pytest.param(lambda block: setattr(block, "power", torch.tensor([2.0, 2.0])), id="a tensor instead of a number"),
    pytest.param(lambda block: delattr(block, "power"), id="an attribute that is gone"),
    pytest.param(lambda block: block.sizes.append(3), id="a list that grew"),
    pytest.param(lambda block: block.config["names"].pop(), id="a list in a mapping"),
    pytest.param(lambda block: block.config.update(dtype=torch.float64), id="a dtype in a mapping"),
    pytest.param(lambda block: setattr(block.inner, "scale", 2.0), id="an attribute that hides one of the class"),
    pytest.param(lambda block: setattr(block.inner, "act", torch.tanh), id="a function"),
    pytest.param(lambda block: setattr(block.inner.leaky, "negative_slope", 0.9), id="a number of a part"),
    pytest.param(lambda block: block.inner.dropout.train(), id="the mode of a part"),
    pytest.param(lambda block: setattr(block.inner.plain, "bias", torch.nn.Parameter(torch.ones(4))), id="a bias"),
    pytest.param(lambda block: setattr(block.inner, "mask", torch.ones(4)), id="a buffer that was none"),
    pytest.param(lambda block: setattr(block.inner, "forward", partial(_negated, block.inner)), id="a forward"),
    pytest.param(lambda block: setattr(block.inner, "act", _scaled(2.0)), id="a closure"),
    pytest.param(lambda block: setattr(block, "mode", type(block.mode).MEAN), id="a member of an enumeration"),
    pytest.param(lambda block: block.axes.add("lines"), id="a set that grew"),
    pytest.param(lambda block: setattr(block, "axes", frozenset(block.axes)), id="an equal set of another type"),
    pytest.param(lambda block: setattr(block, "place", torch.device("meta")), id="a device"),
    pytest.param(lambda block: setattr(block, "width", type(block.width)(5)), id="a number of another library"),
    pytest.param(lambda block: setattr(block, "span", slice(0, 3)), id="a slice"),
    pytest.param(lambda block: setattr(block, "late", 3), id="an attribute that was not there"),
    pytest.param(lambda block: setattr(block.inner, "late", 3), id="an attribute that a part did not have"),
    pytest.param(lambda block: setattr(block.inner, "leaky", Leaky(0.2).eval()), id="a part of another kind"),
    pytest.param(lambda block: setattr(block.inner, "leaky", Namesake(0.2).eval()), id="one of a file of that name"),
]
Change = Callable[[torch.nn.Module], object]


class Leaky(torch.nn.LeakyReLU):
    """Called as torch's own, but of another file."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


class Namesake(Leaky):
    """Called as torch's own, of another file that is called as torch's."""


Leaky.__qualname__ = Namesake.__qualname__ = "LeakyReLU"
Namesake.__module__ = "mylib.activation"


def _negated(inner: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return -type(inner).forward(inner, x)


def _scaled(scale: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x * scale


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    return imported(tmp_path_factory.mktemp("guard"), SOURCE)


@pytest.fixture(scope="module")
def prior(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    """One that is called without inputs: its weights alone say what it is for."""
    return imported(tmp_path_factory.mktemp("prior"), PRIOR, facts=NO_INPUTS)


def is_fast(module: types.ModuleType, block: torch.nn.Module) -> bool:
    """Whether a call takes the fast way; what it returns is right in either case."""
    x, outcomes = torch.randn(3, 2, 4), []
    for forward in (block, partial(module.ReferenceBlock.forward, block)):
        torch.manual_seed(0)
        with torch.no_grad():
            try:
                outcomes.append(forward(x))
            except (AttributeError, RuntimeError) as error:
                outcomes.append(error)
    found, wanted = outcomes
    if isinstance(wanted, Exception):
        assert type(found) is type(wanted)
        return False
    extra = float((found - wanted).mean())
    assert extra in (0.0, pytest.approx(1.0, abs=1e-5))
    return extra != 0.0


@pytest.mark.parametrize(
    ("arguments", "fast"),
    [
        pytest.param({}, True, id="the judged ones"),
        pytest.param({"slope": 0.2, "act": torch.relu}, True, id="the judged ones, spelt out"),
        pytest.param({"slope": 0.9}, False, id="of a part"),
        pytest.param({"act": torch.tanh}, False, id="a function"),
        pytest.param({"power": 3.0}, False, id="of its own"),
        pytest.param({"sizes": (1, 2, 3)}, False, id="a list"),
    ],
)
def test_it_is_fast_for_the_judged_arguments_of_the_constructor(
    written: types.ModuleType, arguments: dict[str, object], fast: bool
) -> None:
    block = written.Block(**arguments).eval()
    assert [is_fast(written, block) for _ in range(2)] == [fast, fast]


@pytest.mark.parametrize("change", OTHERWISE)
def test_what_is_changed_before_the_first_call_runs_as_the_reference(written: types.ModuleType, change: Change) -> None:
    block = written.Block().eval()
    change(block)
    assert not is_fast(written, block)


@pytest.mark.parametrize("change", OTHERWISE)
def test_what_is_changed_after_the_first_call_runs_as_the_reference(written: types.ModuleType, change: Change) -> None:
    block = written.Block().eval()
    assert is_fast(written, block)
    for each in (copy.deepcopy(block), pickle.loads(pickle.dumps(block)), block):
        change(each)
        assert not is_fast(written, each)


@pytest.mark.parametrize("first", [True, False])
def test_it_is_fast_again_when_it_is_what_was_judged_again(written: types.ModuleType, first: bool) -> None:
    block = written.Block().eval()
    assert not first or is_fast(written, block)
    for value, fast in ((float("0.9"), False), (float("0.2"), True)):  # not the object that was there
        block.inner.leaky.negative_slope = value
        assert is_fast(written, block) is fast
    for mode, fast in ((True, False), (False, True)):
        block.inner.dropout.train(mode)
        assert is_fast(written, block) is fast


def test_what_cannot_be_compared_may_change(written: types.ModuleType) -> None:
    block = written.Block().eval()
    for _ in range(2):
        assert is_fast(written, block)
        block.last = torch.randn(2)
        block.inner.another = torch.randn(2)


@torch.no_grad()
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("cast", ["half", "double", "bfloat16"])
def test_weights_of_another_dtype_run_as_the_reference_whenever_they_come(
    prior: types.ModuleType, cast: str, first: bool
) -> None:
    block = prior.Block()
    assert not first or torch.equal(block(), torch.full((3,), 2.0))
    getattr(block, cast)()
    assert torch.equal(block(), torch.ones(3, dtype=block.weight.dtype))
    assert torch.equal(block.float()(), torch.full((3,), 2.0))


@torch.no_grad()
def test_weights_elsewhere_or_of_another_shape_run_as_the_reference(prior: types.ModuleType) -> None:
    assert prior.Block().to("meta")().device.type == "meta"
    assert torch.equal(prior.Block(2)(), torch.ones(2))


@torch.no_grad()
def test_a_constructor_that_runs_again_makes_another_module(prior: types.ModuleType) -> None:
    block = prior.Block()
    assert torch.equal(block(), torch.full((3,), 2.0))
    block.__init__(2)
    assert torch.equal(block(), torch.ones(2))


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_a_trace_is_of_the_reference(prior: types.ModuleType) -> None:
    block = prior.Block()
    traced = torch.jit.trace(block, (), check_trace=False)  # which would compare it with the fast way
    assert torch.equal(traced(), torch.ones(3))
    assert torch.equal(block(), torch.full((3,), 2.0))


@torch.no_grad()
def test_an_attribute_that_calls_change_ends_the_fast_way_and_nothing_else(tmp_path: Path) -> None:
    counting = PRIOR.replace("return self", "self.calls += 1\n        return self").replace(
        "__init__()", "__init__()\n        self.calls = 0"
    )
    block = imported(tmp_path, counting, facts=NO_INPUTS).Block()
    assert [float(block()[0]) for _ in range(4)] == [2.0, 1.0, 1.0, 1.0]
    assert block.calls == 4


def test_a_module_that_is_another_one_each_time_is_refused(tmp_path: Path) -> None:
    drawn = PRIOR.replace("__init__()", "__init__()\n        import random\n        self.scale = random.random()")
    with pytest.raises(RecordError, match="Block is another one each time that it is made"):
        imported(tmp_path, drawn, facts=NO_INPUTS)


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_a_module_with_hooks_inside_is_refused_by_name(tmp_path: Path) -> None:
    hooked = PRIOR.replace(
        "__init__()", "__init__()\n        self.inner = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))"
    )
    with pytest.raises(RecordError, match="Block has hooks inside, in inner, such as those of"):
        imported(tmp_path, hooked, facts=NO_INPUTS)


def test_a_module_with_what_cannot_be_compared_inside_is_refused_by_another_name(tmp_path: Path) -> None:
    held = PRIOR.replace("__init__()", "__init__()\n        self.act = (lambda y: lambda x: x + y)(torch.ones(1))")
    with pytest.raises(RecordError, match="Block has parts, functions or __slots__ that cannot be compared"):
        imported(tmp_path, held, facts=NO_INPUTS)


def test_names_that_the_file_has_stay_its_own(tmp_path: Path) -> None:
    own = "\n\ndef _plain(value):\n    return value\n\n\n_described = _JUDGED = operator = types = None\n"
    module = imported(tmp_path, SOURCE + own)
    assert is_fast(module, module.Block().eval())
    assert module._plain(3) == 3
    assert module._described is module._JUDGED is module.operator is module.types is None


def test_a_transformed_call_runs_as_the_reference(written: types.ModuleType) -> None:
    block = written.Block().eval()
    assert is_fast(written, block)
    x = torch.randn(5, 3, 2, 4)
    with torch.no_grad():
        many = torch.func.vmap(block)(x)
        assert torch.allclose(many, written.ReferenceBlock.forward(block, x.flatten(0, 1)).unflatten(0, (5, 3)))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x[0], torch.ones_like(x[0]))
            tangent = torch.autograd.forward_ad.unpack_dual(block(dual)).tangent
            wanted = torch.autograd.forward_ad.unpack_dual(written.ReferenceBlock.forward(block, dual)).tangent
    assert tangent is not None
    assert torch.equal(tangent, wanted)


def test_its_documentation_is_that_of_the_class(tmp_path: Path) -> None:
    source = SOURCE.replace("class Block(nn.Module):\n", 'class Block(nn.Module):\n    """Adds up."""\n\n')
    assert imported(tmp_path, source).Block.__doc__ == "Adds up."


def test_closures_of_one_factory_are_told_apart_by_what_they_hold(tmp_path: Path) -> None:
    factory = "\n\ndef scaled(scale):\n    return lambda x: x * scale\n\n\n"
    factory += "def example_init():\n    return {'act': scaled(3.0)}\n"
    source = SOURCE[: SOURCE.index("\n\ndef example_init")] + factory + SOURCE[SOURCE.index("\n\ndef example_inputs") :]
    module = imported(tmp_path, source)
    for scale, fast in ((3.0, True), (10.0, False)):
        assert is_fast(module, module.Block(act=module.scaled(scale)).eval()) is fast


def test_a_candidate_may_keep_what_it_likes_in_attributes_of_its_own(tmp_path: Path) -> None:
    own = "        self.kept = None\n        self.calls = {}\n"
    marks = {"        self.power = power\n": own + "        self.power = power\n"}
    marks["return 1 + self.inner(x)"] = (
        "self.kept, self.calls[len(self.calls)] = x, 1\n        self.late = len(self.calls)\n"
        "        return 1 + self.inner(x)"
    )
    module = imported(tmp_path, SOURCE, marks=marks)
    block = module.Block().eval()
    assert [is_fast(module, block) for _ in range(3)] == [True] * 3
    block.later = 1  # nothing of the candidate's
    assert not is_fast(module, block)
    del block.later
    assert is_fast(module, block)


def test_a_candidate_may_keep_something_only_from_a_later_call_on(tmp_path: Path) -> None:
    late = "self.seen = (*getattr(self, 'seen', ()), 1)\n        setattr(self, f'at_{len(self.seen)}', 1)\n        "
    module = imported(tmp_path, SOURCE, marks={"return 1 + self.inner(x)": f"{late}return 1 + self.inner(x)"})
    block = module.Block().eval()
    assert [is_fast(module, block) for _ in range(4)] == [True] * 4
    block.later = 1  # nothing of the candidate's
    assert not is_fast(module, block)


@pytest.mark.parametrize(
    ("judged", "other"),
    [
        pytest.param("lambda x: torch.relu(x)", "lambda x: torch.tanh(x)", id="what they call"),
        pytest.param("lambda x: (lambda y: y * 2.0)(x)", "lambda x: (lambda y: y * 3.0)(x)", id="a function inside"),
    ],
)
def test_functions_without_a_name_are_told_apart_by_their_text(tmp_path: Path, judged: str, other: str) -> None:
    table = f"ACTS = {{'judged': {judged}, 'other': {other}}}\n\n\ndef example_init():\n"
    source = SOURCE.replace("def example_init():\n", table)
    source = source.replace('return {"slope": 0.2}', 'return {"act": ACTS["judged"]}')
    module = imported(tmp_path, source)
    for name, fast in (("judged", True), ("other", False)):
        assert is_fast(module, module.Block(act=module.ACTS[name]).eval()) is fast


def test_where_files_lie_is_not_compared(tmp_path: Path) -> None:
    module = imported(
        tmp_path, SOURCE.replace("self.power = power\n", "self.power = power\n        self.folder = __file__\n")
    )
    module.__dict__["__file__"] = "/elsewhere/user_module.py"
    assert is_fast(module, module.Block().eval())


def test_what_was_judged_otherwise_says_once_that_it_stays_slow(written: types.ModuleType) -> None:
    block = written.Block(power=3.0).eval()
    with (
        pytest.warns(UserWarning, match="stays as slow as it was: it was judged with other arguments"),
        torch.no_grad(),
    ):
        block(torch.randn(3, 2, 4))
