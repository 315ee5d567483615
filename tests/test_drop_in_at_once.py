"""What shows at once to be as it was is not compared in full again, and every change of it is seen all the same.

The candidate used here adds 1 to what the reference returns, so that every output says which of the two computed it.
"""

import contextlib
import copy
import functools
import pickle
import subprocess
import sys
import types
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tasks.search.survey import Survey
from tests.drop_in_builders import FACTS, imported, of_drop_in, of_text, text_of

SOURCE = """
import torch
from torch import nn


def scaled(x, by=[2.0], *, least={"value": -9.0}):
    return (x * by[0]).clamp(min=least["value"])


class Inner(nn.Module):
    sizes = [1, 2]
    factor = 1.0

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))
        self.register_buffer("table", torch.zeros(4))
        self.register_buffer("mask", None)
        self.steps = nn.ModuleDict({"a": nn.Hardtanh(-9.0, 9.0), "b": nn.LeakyReLU(0.5)})
        self.empty = nn.ModuleDict()
        self.scale = scaled
        self.places = [[0], [1]]

    def forward(self, x):
        for step in self.steps.values():
            x = step(x)
        return self.turned(self.scale(x * self.weight + self.shift)) * self.factor * len(self.places)

    def turned(self, x):
        return -x


class Block(nn.Module):
    power = 1.0

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.options = {"names": ["a"]}

    def forward(self, x):
        return self.inner(x) ** self.power


def example_inputs():
    return torch.randn(3, 2, 4)
"""
ADDING = "def forward(self, x, skip, *, scale=1.0, many=()):\n        return skip * scale + self.inner(x)"
WITH_MORE = SOURCE.replace("def forward(self, x):\n        return self.inner(x) ** self.power", ADDING)
MORE_MARKS = {"return skip * scale": "return 1 + skip * scale"}
TENSOR = FACTS.inputs[0]
MORE = Survey(
    inputs=(TENSOR, TENSOR),
    named_inputs={"scale": ("value", 2.0), "many": [("type", "tuple"), TENSOR]},
    constructor=None,
)
Change = Callable[[Any], object]


class Own(torch.Tensor):
    """One of a kind of its own."""


class Longer(nn.Hardtanh):
    """A part of another kind."""


def in_data(name: str, value: torch.Tensor) -> Change:
    """Put other memory into a tensor, which stays the object that it was."""
    return lambda block: setattr(getattr(block.inner, name), "data", value)


def in_class(name: str, value: object) -> Change:
    return lambda block: setattr(type(block.inner), name, value)


def swapped(block: Any) -> None:
    """Make a weight a nested one, which it remains the object of."""
    torch.utils.swap_tensors(block.inner.table, torch.nested.nested_tensor([torch.ones(2), torch.ones(2)]))


def replaced_and_back(block: Any) -> None:
    shift = block.inner.shift
    block.inner.shift = torch.ones(4)
    block.inner.shift = shift


REPLACED: dict[str, Change] = {  # by what does as well
    "a parameter": lambda block: setattr(block.inner, "weight", nn.Parameter(torch.ones(4))),
    "a parameter that is a buffer now": lambda block: block.inner._parameters.update(weight=nn.Buffer(torch.ones(4))),
    "a mode that does not count": lambda block: block.train(),
    "a part's mode that does not count": lambda block: block.inner.steps.b.train(),
    "a buffer": lambda block: block.inner._buffers.update(shift=torch.zeros(4)),
    "a buffer, and back": replaced_and_back,
    "whether it wants gradients": lambda block: block.inner.weight.requires_grad_(False),
    "a part": lambda block: setattr(block.inner.steps, "a", nn.Hardtanh(-9.0, 9.0).eval()),
    "a list that is equal": lambda block: setattr(block, "options", {"names": ["a"]}),
    "attributes of a part that are not compared": lambda block: setattr(block.inner, "last", torch.ones(2)),
}
CHANGED: dict[str, Change] = {
    "a parameter of another dtype": lambda block: setattr(block.inner, "weight", nn.Parameter(torch.ones(4).double())),
    "a parameter of another class": lambda block: block.inner._parameters.update(weight=torch.ones(4).as_subclass(Own)),
    "data of another shape": in_data("shift", torch.zeros(1, 4)),
    "data of another stride": in_data("shift", torch.zeros(8)[::2]),
    "data of another dtype": in_data("shift", torch.zeros(4, dtype=torch.float64)),
    "a buffer elsewhere": lambda block: setattr(block.inner, "table", torch.zeros(4, device="meta")),
    "a buffer that is nested now": swapped,
    "a buffer that is two": lambda block: block.inner._buffers.update(table=block.inner.shift),
    "a buffer that was none": lambda block: setattr(block.inner, "mask", torch.ones(4)),
    "a buffer that is none": lambda block: setattr(block.inner, "table", None),
    "a buffer that is gone": lambda block: delattr(block.inner, "table"),
    "a buffer that is new": lambda block: block.inner.steps.register_buffer("new", torch.zeros(1)),
    "an attribute of a part": lambda block: setattr(block.inner.steps.b, "negative_slope", 0.25),
    "an attribute by its mapping": lambda block: vars(block.inner.steps.b).update(negative_slope=0.25),
    "an attribute of its own": lambda block: setattr(block, "power", 2.0),
    "an attribute that is new": lambda block: setattr(block, "new", 2.0),
    "an attribute that is gone": lambda block: delattr(block, "options"),
    "a list in a list": lambda block: block.inner.places[0].append(3),
    "a list in a mapping": lambda block: block.options["names"].append("b"),
    "a list of a class": lambda block: type(block.inner).sizes.append(3),
    "another part": lambda block: setattr(block.inner.steps, "a", nn.Hardtanh(-1.0, 1.0).eval()),
    "a part of another kind": lambda block: setattr(block.inner.steps.a, "__class__", Longer),
    "a part that is new": lambda block: block.inner.empty.update({"c": nn.Identity().eval()}),
    "a part that is gone": lambda block: block.inner.steps.pop("a"),
    "parts in another order": lambda block: block.inner.steps.update({"a": block.inner.steps.pop("a")}),
    "parts in a new mapping": lambda block: setattr(block.inner.steps, "_modules", {"a": nn.Identity()}),
    "a hook of a part": lambda block: block.inner.register_forward_hook(lambda *_: None),
    "a hook before a part": lambda block: block.inner.steps.a.register_forward_pre_hook(lambda *_: None),
    "a forward of a part": lambda block: setattr(
        block.inner, "forward", functools.partial(type(block.inner).forward, block.inner)
    ),
    "a value of a class": in_class("factor", 2.0),
    "a new value of a class": in_class("other", 2.0),
    "a method of a class": in_class("turned", lambda _, x: x * 3),
    "a value of its own class": lambda block: setattr(type(block).__mro__[1], "power", 2.0),
    "defaults of a function": lambda block: setattr(block.inner.scale, "__defaults__", ([3.0],)),
    "a default of a function": lambda block: block.inner.scale.__defaults__[0].append(3.0),
    "a default by name of a function": lambda block: block.inner.scale.__kwdefaults__.update(least={"value": 0.0}),
}
OTHER_INPUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shape": lambda x: x[:2],
    "stride": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "dtype": torch.Tensor.double,
    "class": lambda x: x.as_subclass(Own),
    "a parameter": lambda x: nn.Parameter(x, requires_grad=False),
    "lazily negated": lambda x: torch._neg_view(x),
}
PRIVATE = ("dict_version", "TensorGuards")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return text_of(tmp_path_factory.mktemp("at_once"), SOURCE)


@pytest.fixture
def module(text: str, tmp_path: Path) -> types.ModuleType:
    return of_text(text, tmp_path)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    count = torch.get_num_threads()
    yield
    torch.set_num_threads(count)


def x_of(block: nn.Module) -> torch.Tensor:
    return torch.rand(3, 2, 4, dtype=torch.float32)


def reference_of(block: Any) -> Callable[..., Any]:
    """The user's forward of a drop-in."""
    kind: Any = type(block).__mro__[1]
    return functools.partial(kind.forward, block)


@torch.no_grad()
def is_fast(block: Any, x: torch.Tensor | None = None) -> bool:
    """Whether a call was the candidate's; what the reference returns may be an error."""
    x, outcomes = x_of(block) if x is None else x, []
    for forward in (block, reference_of(block)):
        try:
            outcomes.append(forward(x))
        except (AttributeError, RuntimeError, KeyError, TypeError) as error:
            outcomes.append(error)
    found, wanted = outcomes
    if isinstance(wanted, Exception):
        assert type(found) is type(wanted)
        return False
    assert found.dtype == wanted.dtype
    extra = float((found - wanted).mean())
    assert min(abs(extra), abs(extra - 1)) < 1e-4
    return extra > 0.5


@torch.no_grad()
def is_at_once(block: Any, *inputs: Any, **named: Any) -> bool:
    """Whether it shows at once that another call is as before."""
    return block._fast.seen.known_as(block, block._fast.fast, inputs or (x_of(block),), named) is not None


def warm(block: Any) -> Any:
    for _ in range(3):
        assert is_fast(block)
    assert is_at_once(block)
    return block


class Counted:
    """How often calls of a drop-in are compared in full, and how often what they are like is to be kept."""

    def __init__(self, module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compared = self.noted = 0
        seen, before = of_drop_in(module, "Seen"), of_drop_in(module, "Before")
        is_still, make = seen.is_still, before.__init__

        def comparing(*arguments: object) -> bool:
            self.compared += 1
            return is_still(*arguments)

        def making(*arguments: object) -> None:
            self.noted += 1
            make(*arguments)

        monkeypatch.setattr(seen, "is_still", comparing)
        monkeypatch.setattr(before, "__init__", making)


@pytest.fixture
def unchecked(text: str, tmp_path: Path) -> types.ModuleType:
    return of_text(text, tmp_path, is_checked=False)


@pytest.fixture
def counted(unchecked: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(unchecked, monkeypatch)


def test_of_many_calls_one_is_compared_in_full(unchecked: types.ModuleType, counted: Counted) -> None:
    block = unchecked.Block().eval()
    assert is_fast(block)  # which makes the fast module
    counted.compared = 0
    assert [is_fast(block) for _ in range(10)] == [True] * 10
    assert counted.compared == counted.noted == 1


def test_both_modes_of_tensors_without_gradients_are_seen_at_once(
    unchecked: types.ModuleType, counted: Counted
) -> None:
    block = unchecked.Block().eval()
    for turn in range(20):
        with torch.inference_mode(turn % 2 == 1):
            assert is_fast(block)
    assert counted.compared <= 7


def test_a_default_device_is_no_hindrance(unchecked: types.ModuleType, counted: Counted) -> None:
    block = unchecked.Block().eval()
    with torch.device("cpu"):
        assert [is_fast(block) for _ in range(10)] == [True] * 10
    assert counted.compared == 2


@pytest.mark.parametrize("change", REPLACED)
def test_what_is_replaced_by_what_does_as_well_is_compared_once_more(module: types.ModuleType, change: str) -> None:
    block = warm(module.Block().eval())
    REPLACED[change](block)
    assert not is_at_once(block)
    warm(block)


def test_how_many_threads_there_are_is_of_no_account(module: types.ModuleType) -> None:
    block = warm(module.Block().eval())
    torch.set_num_threads(torch.get_num_threads() + 1)
    assert is_at_once(block)


@pytest.mark.parametrize("change", CHANGED)
def test_every_change_of_the_module_is_seen(module: types.ModuleType, change: str) -> None:
    block = warm(module.Block().eval())
    CHANGED[change](block)
    assert not is_at_once(block)
    assert not is_fast(block)


@pytest.mark.parametrize("form", OTHER_INPUTS)
def test_every_change_of_the_input_is_seen(module: types.ModuleType, form: str) -> None:
    block = warm(module.Block().eval())
    x = OTHER_INPUTS[form](torch.rand(3, 2, 4))
    assert not is_at_once(block, x)
    assert not is_fast(block, x)
    warm(block)


def test_inputs_of_inference_mode_are_seen_to_be_such(module: types.ModuleType) -> None:
    block = warm(module.Block().eval())
    with torch.inference_mode():
        x = torch.rand(3, 2, 4)
    assert not is_at_once(block, x)
    assert is_fast(block, x)


def test_a_nested_input_does_not_end_the_process(module: types.ModuleType) -> None:
    block, x = warm(module.Block().eval()), torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    assert not is_at_once(block, x)


def test_an_input_that_is_asked_anything_runs_no_code_of_its_own(module: types.ModuleType) -> None:
    asked: list[object] = []

    class Telling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, *rest: Any) -> Any:
            asked.append(function)
            raise KeyboardInterrupt

    block = warm(module.Block().eval())
    x = torch.rand(3, 2, 4).as_subclass(Telling)
    assert not is_at_once(block, x)
    assert not asked


@torch.no_grad()
def test_ctrl_c_ends_a_call(module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    block = warm(module.Block().eval())
    with monkeypatch.context() as patched:
        patched.setattr(type(block._fast.seen), "_holds_the_same", interrupted)
        with pytest.raises(KeyboardInterrupt):
            block(x_of(block))
    assert is_fast(block)


@torch.no_grad()
def test_whatever_fails_while_it_is_seen_leads_to_the_full_comparison(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = warm(module.Block().eval())
    monkeypatch.setattr(block._fast.seen, "_version", lambda _: 1 / 0)
    for _ in range(3):
        assert not is_at_once(block)
        assert is_fast(block)


@pytest.mark.parametrize(
    "kind", ["gradients", "autocast", "default dtype", "deterministic", "hooks", "its mode", "a mode"]
)
def test_every_change_of_a_mode_is_seen(tmp_path: Path, kind: str) -> None:
    source = SOURCE.replace("self.inner(x)", "self.inner(nn.functional.dropout(x, 0.0, self.training))")
    block = imported(tmp_path, source, marks={"return self.inner(nn": "return 1 + self.inner(nn"}).Block().eval()
    warm(block)
    x, usual = x_of(block), torch.get_default_dtype()
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.no_grad() if kind != "gradients" else torch.enable_grad())
        if kind == "autocast":
            modes.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        elif kind == "default dtype":
            modes.callback(torch.set_default_dtype, usual)
            torch.set_default_dtype(torch.float64)
        elif kind == "deterministic":
            modes.callback(torch.use_deterministic_algorithms, False)
            torch.use_deterministic_algorithms(True)
        elif kind == "hooks":
            hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
            modes.callback(hook.remove)
        elif kind == "its mode":
            block.train()
        elif kind == "a mode":
            block.inner.steps.train()
        assert torch.equal(block(x), reference_of(block)(x))
    block.eval()
    warm(block)


@torch.no_grad()
def test_autocast_is_seen_without_a_tensor_that_tells_of_it(tmp_path: Path) -> None:
    source = """
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, both):
        return both[0] @ both[1]


def example_inputs():
    return [[torch.randn(4, 4), torch.randn(4, 4)]]
"""
    form = ("tensor", "float32", (4, 4), (4, 1))
    facts = Survey(inputs=([form, form],), named_inputs={}, constructor=None)
    block = imported(tmp_path, source, facts=facts, marks={"return both": "return 1 + both"}).Block().eval()
    both, forward = [torch.rand(4, 4), torch.rand(4, 4)], reference_of(block)
    for _ in range(4):
        assert torch.allclose(block(both), 1 + forward(both))
    assert block._fast.seen.known_as(block, block._fast.fast, (both,), {}) is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert block(both).dtype == torch.bfloat16
        assert torch.equal(block(both), forward(both))
    assert torch.allclose(block(both), 1 + forward(both))


def test_what_autocast_would_compute_in_on_a_processor_is_of_no_account(tmp_path: Path) -> None:
    before = torch.get_autocast_dtype("cpu")
    torch.set_autocast_dtype("cpu", torch.float32)  # which autocast warns of where it is tried
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert is_at_once(warm(imported(tmp_path, SOURCE).Block().eval()))
    finally:
        torch.set_autocast_dtype("cpu", before)


@torch.no_grad()
def test_a_hook_of_its_own_runs(module: types.ModuleType) -> None:
    block = warm(module.Block().eval())
    hook = block.register_forward_hook(lambda *_: "hooked")
    assert [block(x_of(block)) for _ in range(3)] == ["hooked"] * 3
    hook.remove()
    assert is_fast(block)


@torch.no_grad()
def test_a_class_that_is_assigned_is_no_drop_in_s(module: types.ModuleType) -> None:
    class Other(module.Block):  # type: ignore[name-defined]
        pass

    block, x = warm(module.Block().eval()), torch.rand(3, 2, 4)
    object.__setattr__(block, "__class__", Other)
    assert torch.equal(block(x), module.ReferenceBlock.forward(block, x))


@torch.no_grad()
def test_parts_in_a_mapping_with_an_order_of_its_own_are_compared_in_full(module: types.ModuleType) -> None:
    block = module.Block().eval()
    block.inner.steps._modules = OrderedDict(block.inner.steps._modules)
    for _ in range(3):
        assert is_fast(block)
    assert not is_at_once(block)
    block.inner.steps._modules.move_to_end("a")
    assert not is_fast(block)


@torch.no_grad()
def test_arguments_of_all_kinds_are_seen_at_once_and_so_is_every_change_of_them(tmp_path: Path) -> None:
    block = imported(tmp_path, WITH_MORE, facts=MORE, marks=MORE_MARKS).Block().eval()
    forward = reference_of(block)
    x, skip, many = torch.rand(3, 2, 4), torch.rand(3, 2, 4), (torch.rand(3, 2, 4),)

    def extra(*inputs: Any, **named: Any) -> float:
        return round(float((block(*inputs, **named) - forward(*inputs, **named)).mean()), 3)

    for _ in range(3):
        assert extra(x, skip, scale=2.0, many=many) == 1
    assert is_at_once(block, x, skip, scale=2.0, many=many)
    others: list[tuple[tuple[Any, ...], dict[str, Any], int]] = [
        ((x, skip), {"scale": 2, "many": many}, 0),
        ((x, skip), {"scale": 3.0, "many": many}, 0),
        ((x, skip), {"scale": 2.0, "many": (*many, x)}, 0),
        ((x, skip), {"scale": 2.0, "many": [*many]}, 0),
        ((x, skip), {"scale": 2.0, "many": (many[0].double(),)}, 0),
        ((x, skip), {"scale": 2.0}, 0),
        ((x, skip[0]), {"scale": 2.0, "many": many}, 0),
        ((x, skip), {"many": many, "scale": 2.0}, 1),
        ((x,), {"skip": skip, "scale": 2.0, "many": many}, 1),
    ]
    for inputs, named, wanted in others:
        assert not is_at_once(block, *inputs, **named)
        assert extra(*inputs, **named) == wanted
    assert extra(x, skip, scale=2.0, many=many) == 1


@torch.no_grad()
def test_values_given_by_name_in_another_order_are_not_taken_for_each_other(tmp_path: Path) -> None:
    source = SOURCE.replace(
        "x):\n        return self.inner(x) **", "x, *, a=1, b=2):\n        return self.inner(x) * b **"
    )
    facts = Survey(inputs=(TENSOR,), named_inputs={"a": ("value", 1), "b": ("value", 2)}, constructor=None)
    block = imported(tmp_path, source, facts=facts).Block().eval()
    forward, x = reference_of(block), torch.rand(3, 2, 4)
    for _ in range(4):
        assert torch.allclose(block(x, b=2, a=1), 1 + forward(x, b=2, a=1), atol=1e-5)
    for _ in range(4):
        assert torch.allclose(block(x, a=1, b=2), 1 + forward(x, a=1, b=2), atol=1e-5)
    assert is_at_once(block, x, a=1, b=2)
    assert not is_at_once(block, x, b=1, a=2)
    assert torch.equal(block(x, b=1, a=2), forward(x, b=1, a=2))


@pytest.mark.parametrize(
    ("judged", "others"),
    [
        (0.0, [-0.0, 0, False]),
        (-0.0, [0.0]),
        (0.5, [0.25, "0.5"]),
        (1, [True, 1.0]),
        (True, [1, False]),
        (0, [False, 0.0]),
        ("a", ["b", ""]),
        (None, [0, False]),
        ([0.0, 1], [[-0.0, 1], [0.0, True], (0.0, 1)]),
    ],
    ids=str,
)
@torch.no_grad()
def test_values_that_are_equal_but_not_the_same_are_seen(tmp_path: Path, judged: Any, others: list[Any]) -> None:
    source = SOURCE.replace("x):\n        return self.inner(x) **", "x, how):\n        return self.inner(x) **")
    form = [("value", each) for each in judged] if isinstance(judged, list) else ("value", judged)
    facts = Survey(inputs=(TENSOR, form), named_inputs={}, constructor=None)
    block, x = imported(tmp_path, source, facts=facts).Block().eval(), torch.rand(3, 2, 4)
    forward = reference_of(block)
    for _ in range(4):
        assert torch.allclose(block(x, judged), 1 + forward(x, judged), atol=1e-5)
    assert is_at_once(block, x, copy.deepcopy(judged))
    for other in others:
        assert not is_at_once(block, x, other)
        assert torch.equal(block(x, other), forward(x, other))


@torch.no_grad()
def test_one_tensor_twice_is_seen_where_that_counts(tmp_path: Path) -> None:
    source = WITH_MORE.replace("return skip", "x[0] = 1\n        return skip")
    source = source.replace("return torch.randn(3, 2, 4)", "return torch.randn(3, 2, 4), torch.randn(3, 2, 4)")
    facts = Survey(inputs=(TENSOR, TENSOR), named_inputs={}, constructor=None)
    module = imported(tmp_path, source, facts=facts, marks=MORE_MARKS)
    block, x, skip = module.Block().eval(), torch.rand(3, 2, 4), torch.rand(3, 2, 4)
    for other in (x, x.view_as(x), x[:]):
        for _ in range(4):
            assert torch.allclose(block(x, skip), 1 + module.ReferenceBlock.forward(block, x, skip), atol=1e-5)
        assert is_at_once(block, x, skip)
        assert not is_at_once(block, x, other)
        assert torch.equal(block(x, other), module.ReferenceBlock.forward(block, x, other))


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda block: pickle.loads(pickle.dumps(block))])
def test_copies_begin_anew(module: types.ModuleType, copied: Callable[[nn.Module], nn.Module]) -> None:
    block = warm(module.Block().eval())
    other: Any = copied(block)
    assert is_fast(other)
    assert other._fast is not block._fast
    assert not is_at_once(other)
    CHANGED["a list in a list"](other)
    assert not is_fast(other)
    assert is_fast(block) is (other.inner is not block.inner)


@pytest.mark.usefixtures("without_collector")
def test_nothing_of_what_is_replaced_or_given_is_kept(module: types.ModuleType) -> None:
    block, x = warm(module.Block().eval()), torch.rand(3, 2, 4)
    assert is_fast(block, x)
    given, weight, inner = weakref.ref(x), weakref.ref(block.inner.weight), weakref.ref(block.inner)
    del x
    assert given() is None
    block.inner.weight = nn.Parameter(torch.ones(4))
    assert weight() is None
    other = copy.deepcopy(block.inner)
    block.inner = other
    assert is_fast(block)
    assert inner() is None
    seen = weakref.ref(block)
    del block, other
    assert seen() is None


def test_a_call_that_is_another_one_each_time_is_hardly_ever_kept(
    unchecked: types.ModuleType, counted: Counted
) -> None:
    block = unchecked.Block().eval()
    with torch.inference_mode():
        first = torch.rand(3, 2, 4)
    for turn in range(200):
        assert is_fast(block, first if turn % 2 else torch.rand(3, 2, 4))
    assert counted.noted <= 9
    counted.compared = 0
    for _ in range(300):
        assert is_fast(block)
    assert counted.compared < 250


def test_attributes_that_a_part_is_given_each_time_are_no_lasting_cost(
    unchecked: types.ModuleType, counted: Counted
) -> None:
    block = unchecked.Block().eval()
    for _ in range(200):
        block.inner.last = torch.rand(1)
        assert is_fast(block)
    assert counted.noted <= 9


def test_a_change_now_and_then_costs_one_comparison(unchecked: types.ModuleType, counted: Counted) -> None:
    block = unchecked.Block().eval()
    assert [is_fast(block), is_fast(block)] == [True, True]
    counted.compared = 0
    for _ in range(50):
        block.inner.weight = nn.Parameter(torch.ones(4))
        assert [is_fast(block) for _ in range(4)] == [True] * 4
    assert counted.compared == counted.noted - 1 == 50


def test_calls_with_gradients_between_do_not_make_it_forget(unchecked: types.ModuleType, counted: Counted) -> None:
    block = unchecked.Block().eval()
    assert [is_fast(block), is_fast(block)] == [True, True]
    counted.compared = 0
    for _ in range(10):
        assert block(x_of(block)).requires_grad
        assert is_fast(block)
    assert counted.compared == 0


def without(*_: object) -> None:
    raise RuntimeError("another version")


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("instead", [None, without, lambda *_, **__: 7], ids=["missing", "failing", "doing otherwise"])
def test_without_what_torch_has_for_itself_all_is_compared_in_full(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, instead: object
) -> None:
    if instead is None:
        monkeypatch.delattr(torch._C._dynamo.guards, name)
    elif name == "TensorGuards":  # which the full comparison uses too, and must be what it is or raise
        monkeypatch.setattr(torch._C._dynamo.guards, name, lambda *_, **__: [].clear("another version"))  # type: ignore[call-arg]
    else:
        monkeypatch.setattr(torch._C._dynamo.guards, name, instead)
    block = module.Block().eval()
    for _ in range(5):
        assert is_fast(block)
        assert not is_at_once(block)
    for change in ("a list in a list", "parts in another order"):
        other = copy.deepcopy(block)
        assert is_fast(other)
        CHANGED[change](other)
        assert not is_fast(other)


def test_guards_that_do_not_see_autocast_are_not_relied_on(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards = types.SimpleNamespace(check=lambda *_: True)
    monkeypatch.setattr(torch._C._dynamo.guards, "TensorGuards", lambda *_, **__: guards)
    block = module.Block().eval()
    for _ in range(5):
        assert is_fast(block)
        assert not is_at_once(block)


def test_without_the_global_lock_all_is_compared_in_full(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    block = module.Block().eval()
    for _ in range(5):
        assert is_fast(block)
        assert not is_at_once(block)


def test_neither_importing_nor_calling_it_imports_the_compiler(text: str, tmp_path: Path) -> None:
    (tmp_path / "user_module.py").write_text(text)
    program = """
import sys, torch, user_module
block, x = user_module.Block().eval(), torch.rand(3, 2, 4)
assert "torch._dynamo" not in sys.modules
with torch.no_grad():
    for _ in range(4):
        block(x)
assert block._fast.seen.before
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
