"""What replays a graph looks no more at what the drop-in around it has compared, and misses no change all the same.

On a processor there is nothing to capture. The stand-in for a graph reads weights and inputs where they lay when it was
captured, as a graph does, and adds 1, so that every output says whether it was replayed, and of which weights.
"""

import gc
import random
import re
import types
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
import torch
from torch import nn

from tasks.search.drop_in import drop_in
from tasks.search.known_calls import with_known_calls
from tasks.search.survey import Survey
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate
from tasks.variants.layout import laid_out
from tasks.variants.rewrites.cuda_graph import replay_as_graph
from tasks.variants.rewriting import ORIGIN
from tests.drop_in_builders import of_text

BY_POSITION = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x):
        return x * self.weight + self.shift


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.table = torch.ones(4)

    def forward(self, x, t, scale):
        return (self.inner(x) + t) * scale * self.table


def example_inputs():
    return [torch.ones(3, 4), torch.ones(4), 0.5]


def get_inputs():
    return [torch.ones(3, 4), torch.ones(4), 0.5]
"""
BY_NAME = BY_POSITION.replace("t, scale)", "t, *, scale=1.0)").replace(
    "return [torch.ones(3, 4), torch.ones(4), 0.5]", 'return {"x": torch.ones(3, 4), "t": torch.ones(4), "scale": 0.5}'
)
X, T, SCALE = ("tensor", "float32", (3, 4), (4, 1)), ("tensor", "float32", (4,), (1,)), ("value", 0.5)
FACTS = {
    BY_POSITION: Survey(inputs=(X, T, SCALE), named_inputs={}, constructor=None),
    BY_NAME: Survey(inputs=(), named_inputs={"x": X, "t": T, "scale": SCALE}, constructor=None),
}
Change = Callable[[Any], object]
CHANGED: dict[str, Change] = {
    "a weight": lambda block: setattr(block.inner, "weight", nn.Parameter(torch.full((4,), 3.0))),
    "where a weight lies": lambda block: setattr(block.inner.weight, "data", torch.full((4,), 3.0)),
    "where a buffer lies": lambda block: block.inner.shift.set_(torch.full((4,), 3.0)),
    "a buffer": lambda block: block.inner._buffers.update(shift=torch.full((4,), 3.0)),
    "a part": lambda block: setattr(block, "inner", type(block.inner)()),
    "a tensor that is no weight": lambda block: setattr(block, "table", torch.full((4,), 3.0)),
    "where a tensor that is no weight lies": lambda block: setattr(block.table, "data", torch.full((4,), 3.0)),
    "elements of a weight": lambda block: block.inner.weight.data.fill_(3.0),
}


class Graph:
    """What a replay does: the same with what lies where it lay."""

    def __init__(self, block: Any, static: list[Any], outputs: torch.Tensor) -> None:
        self.parts = [each.data for each in (block.inner.weight, block.inner.shift, block.table)]
        self.static, self.outputs = static, outputs

    def replay(self) -> None:
        (x, t, scale), (weight, shift, table) = self.static, self.parts
        self.outputs.copy_((x * weight + shift + t) * scale * table + 1)


class Device:
    """Where a graph would be: which stream is the current one, and what is captured."""

    stream, is_captured = 7, False


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    for name, answer in {
        "_cuda_getDevice": lambda: -1,
        "_cuda_isCurrentStreamCapturing": lambda: device.is_captured,
        "_cuda_getCurrentRawStream": lambda _: device.stream,
    }.items():
        monkeypatch.setattr(torch._C, name, answer, raising=False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: -1)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: device.is_captured)
    return device


def candidate_of(source: str) -> str:
    program = replay_as_graph.apply(cst.parse_module(source.replace("Block", "ModelNew")), random.Random(0))
    assert program is not None
    return re.sub(r"\n+def (?:example|get)_inputs.*\n.*\n", "\n", program.code)


def text_of(
    folder: Path,
    source: str,
    candidate: str,
    *,
    facts: Survey | None = None,
    origin: str = ORIGIN,
    recipe: tuple[str, ...] = (replay_as_graph.name,),
    device: str = "cuda",
) -> str:
    """The drop-in of the rewrite, whose class takes the processor for the device."""
    path = folder / "user_module.py"
    path.write_text(source)
    made = Candidate(problem_id="x", source=candidate, origin=origin, recipe=recipe)
    facts = facts or FACTS[source]
    text = drop_in(read_user_file(path, "Block"), facts, made, problem_id="x", device=device).source
    return text.replace("not item.is_cuda", "item.is_cuda").replace("_DEVICE = 'cuda'", "_DEVICE = 'cpu'")


def replaying(text: str, folder: Path) -> types.ModuleType:
    """Such a drop-in imported, with a stand-in for the graph."""
    module = of_text(text, folder)
    names: Any = vars(module)

    def captured(self: Any, inputs: list[Any], _: bool) -> tuple[Any, ...]:
        static = [each.clone() if isinstance(each, torch.Tensor) else each for each in inputs]
        outputs = torch.zeros(3, 4)
        return names["graph_members"](self), None, (Graph(self, static, outputs), static, outputs)

    names["FastBlock"].graph_made = captured
    return module


def answer_of(block: Any, scale: float = 0.5) -> str:
    """Who answers a call, whose outputs are right in either case."""
    x, t = torch.rand(3, 4), torch.rand(4)
    kind: Any = type(block).__mro__[1]
    is_named = kind.forward.__code__.co_kwonlyargcount > 0
    with torch.no_grad():
        found = block(x=x, t=t, scale=scale) if is_named else block(x, t, scale)
        wanted = kind.forward(block, x, t, scale=scale)
    extra = float((found - wanted).mean())
    assert torch.allclose(found, wanted + round(extra), atol=1e-5), "replayed what was there before"
    return {0: "the user's forward", 1: "a replay"}[round(extra)]


@pytest.fixture(scope="module", params=[BY_POSITION, BY_NAME], ids=["by position", "by name"])
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return text_of(tmp_path_factory.mktemp("replayed"), request.param, candidate_of(request.param))


@pytest.fixture
def module(text: str, tmp_path: Path, device: Device) -> types.ModuleType:
    return replaying(text, tmp_path)


@pytest.fixture
def looked(module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each time that the class looks at its arguments itself."""
    looked, look = list[object](), module.graph_form
    monkeypatch.setitem(vars(module), "graph_form", lambda *given: looked.append(given) or look(*given))
    return looked


def warm(block: Any) -> Any:
    assert [answer_of(block) for _ in range(4)] == ["a replay"] * 4
    return block


def test_what_the_drop_in_has_compared_is_not_looked_at_again(module: types.ModuleType, looked: list[object]) -> None:
    block = warm(module.Block().eval())
    looked.clear()
    warm(block)
    assert not looked


@pytest.mark.parametrize("change", CHANGED)
def test_whatever_changes_the_next_call_is_of_what_is_there_then(module: types.ModuleType, change: str) -> None:
    block = warm(module.Block().eval())
    for _ in range(2):
        CHANGED[change](block)
        warm(block)


def test_what_has_changed_is_looked_at_once(module: types.ModuleType, looked: list[object]) -> None:
    block = warm(module.Block().eval())
    CHANGED["where a weight lies"](block)
    warm(block)
    looked.clear()
    warm(block)
    assert not looked


def test_another_value_is_left_to_the_users_forward(module: types.ModuleType) -> None:
    block = warm(module.Block().eval())
    assert answer_of(block, scale=2.0) == answer_of(block, scale=1) == "the user's forward"
    warm(block)


def test_on_another_stream_the_class_looks_itself(
    module: types.ModuleType, device: Device, looked: list[object]
) -> None:
    block = warm(module.Block().eval())
    looked.clear()
    device.stream = 8
    assert answer_of(block) == "a replay"
    assert looked


def test_where_all_is_being_captured_nothing_is_replayed(
    module: types.ModuleType, device: Device, looked: list[object]
) -> None:
    block = warm(module.Block().eval())
    device.is_captured = True
    assert [answer_of(block) for _ in range(2)] == ["the user's forward"] * 2
    device.is_captured = False
    looked.clear()
    warm(block)
    assert not looked


def test_a_capture_that_fails_leaves_none_of_before_to_be_replayed(module: types.ModuleType) -> None:
    def failing(*_: object) -> None:
        raise KeyError("in between")

    block, names = warm(module.Block().eval()), vars(module)
    capture = names["FastBlock"].graph_made
    CHANGED["a weight"](block)
    names["FastBlock"].graph_made = failing
    for _ in range(3):
        with pytest.raises(KeyError):
            answer_of(block)
    names["FastBlock"].graph_made = capture
    warm(block)


def test_where_another_way_is_the_fastest_it_is_looked_at_once(module: types.ModuleType, looked: list[object]) -> None:
    names = vars(module)
    ways: list[object] = []

    def plainly(self: Any, *inputs: Any) -> torch.Tensor:
        ways.append(self)
        return self.inner(inputs[0]) * inputs[2] * self.table + inputs[1] * inputs[2] * self.table

    names["FastBlock"].graph_made = lambda self, *_: ([], plainly, None)
    block = module.Block().eval()
    assert [answer_of(block) for _ in range(5)] == ["the user's forward"] * 5
    looked.clear()
    ways.clear()
    assert [answer_of(block) for _ in range(5)] == ["the user's forward"] * 5
    assert len(looked) == len(ways) == 5


@pytest.mark.parametrize("is_there_before", [True, False])
def test_where_the_class_has_settled_for_the_plain_forward_no_instance_looks_any_more(
    module: types.ModuleType, looked: list[object], is_there_before: bool
) -> None:
    first = warm(module.Block().eval())
    other = warm(module.Block().eval()) if is_there_before else None
    fast: Any = vars(module)["FastBlock"]
    entered = "graph_forward" if "graph_forward" in vars(fast) else "forward"
    setattr(fast, entered, vars(module).get("graph_plain", fast.__mro__[1].forward))  # as graph_fastest does
    other = other or module.Block().eval()
    assert [answer_of(block) for block in (first, other) for _ in range(4)] == ["the user's forward"] * 8
    looked.clear()
    assert [answer_of(block) for block in (first, other) for _ in range(4)] == ["the user's forward"] * 8
    assert not looked


def test_a_value_of_which_the_type_alone_was_judged_is_the_one_that_is_given(tmp_path: Path, device: Device) -> None:
    facts = replace(FACTS[BY_POSITION], inputs=(X, T, ("type", "float")))
    block = warm(
        replaying(text_of(tmp_path, BY_POSITION, candidate_of(BY_POSITION), facts=facts), tmp_path).Block().eval()
    )
    assert [answer_of(block, scale=scale) for scale in (2.0, 0.5, 2.0, 4.0)] == ["a replay"] * 4


@pytest.mark.parametrize(
    "made_by", [{"origin": "a model", "recipe": ()}, {"recipe": (replay_as_graph.name, "return_directly")}], ids=str
)
def test_what_another_author_looks_at_before_a_replay_is_looked_at_in_every_call(
    tmp_path: Path, device: Device, made_by: dict[str, Any]
) -> None:
    first_line = "        form = None if named else graph_form(self, inputs)\n"
    own = candidate_of(BY_POSITION).replace(first_line, f"        self.looked_at.append(inputs)\n{first_line}")
    own = own.replace("class ModelNew(PlainModel):\n", "class ModelNew(PlainModel):\n    looked_at = []\n\n")
    module: Any = replaying(text_of(tmp_path, BY_POSITION, own, **made_by), tmp_path)
    block = warm(module.Block().eval())
    module.FastBlock.looked_at.clear()
    warm(block)
    assert len(module.FastBlock.looked_at) == 4


def test_a_drop_in_for_a_processor_asks_nothing_of_a_device(tmp_path: Path) -> None:
    text = text_of(tmp_path, BY_POSITION, candidate_of(BY_POSITION), device="cpu")
    assert "graph_again" not in text
    block = of_text(text.replace("item.is_cuda", "not item.is_cuda"), tmp_path).Block().eval()
    assert [answer_of(block) for _ in range(4)] == ["the user's forward"] * 4


def test_weights_that_were_replaced_long_ago_are_not_kept(module: types.ModuleType) -> None:
    block = warm(module.Block().eval())
    before = weakref.ref(block.inner.weight)
    for _ in range(12):
        CHANGED["a weight"](block)
        answer_of(block)
    gc.collect()
    assert before() is None


def test_programs_that_replay_in_another_way_are_called_as_before(tmp_path: Path, device: Device) -> None:
    other = candidate_of(BY_POSITION).replace("kind = type(item)", "kind = item.__class__")
    assert with_known_calls(laid_out(cst.parse_module(other))) is None
    warm(replaying(text_of(tmp_path, BY_POSITION, other), tmp_path).Block().eval())


@pytest.mark.parametrize("name", ["graph_known", "graph_again"])
def test_a_program_that_has_a_name_of_what_would_be_added_is_called_as_before(name: str) -> None:
    source = candidate_of(BY_NAME.replace("scale", name))
    assert with_known_calls(laid_out(cst.parse_module(source))) is None
