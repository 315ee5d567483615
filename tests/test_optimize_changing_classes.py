"""What a class keeps from call to call, or from instance to instance, is named where it stands in a drop-in's way."""

from pathlib import Path

import pytest

from tasks.search.foreseen import fast_once, obstacle
from tests.optimize_builders import FACTS, softmax_file

COUNTING = """import torch
from torch import nn


class Inner(nn.Module):
    seen = {{}}

    def __init__(self):
        super().__init__()
        {inner}

    def forward(self, x):
        return x


class Softmax(nn.Module):
    kept = []
    table = {{}}
    names = set()

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.drawn = 0
        {init}

    def forward(self, x, y=None):
        {called}
        return torch.softmax(x, dim=1)


def example_inputs():
    return {inputs}
"""


def counting(
    tmp_path: Path, *, called: str = "pass", init: str = "pass", inner: str = "pass", inputs: str = "torch.randn(8, 4)"
) -> tuple[str | None, str | None]:
    """What is said before the search: why there is no drop-in, and why it would be fast once."""
    text = COUNTING.format(called=called, init=init, inner=inner, inputs=inputs)
    file = softmax_file(tmp_path, text)
    return obstacle(file, FACTS), fast_once(file, FACTS)


@pytest.mark.parametrize(
    ("called", "name"),
    [
        pytest.param("self.kept.append(x.detach())", "Softmax.kept", id="a list that gets a tensor"),
        pytest.param("self.kept.append(self)", "Softmax.kept", id="a list that gets a module"),
        pytest.param("self.table[len(self.table)] = x", "Softmax.table", id="a mapping that gets a tensor"),
        pytest.param("self.names.add(object())", "Softmax.names", id="a set that gets an object"),
    ],
)
def test_what_a_call_puts_into_something_of_the_class_is_named_whatever_it_is(
    tmp_path: Path, called: str, name: str
) -> None:
    none, once = counting(tmp_path, called=called)
    assert none is None
    assert f"a call of Softmax changes {name}, after which" in (once or "")


def test_so_it_is_where_several_inputs_are_looked_at_in_a_call_of_their_own(tmp_path: Path) -> None:
    none, once = counting(
        tmp_path, called="self.kept.append(x.shape[0])", inputs="[torch.randn(8, 4), torch.randn(8, 4)]"
    )
    assert none is None
    assert "a call of Softmax changes Softmax.kept, after which" in (once or "")


@pytest.mark.parametrize(
    ("init", "inner", "words"),
    [
        pytest.param("self.kept.append(1)", "pass", "Softmax.kept is not", id="a list of the class that grows"),
        pytest.param("pass", "self.seen[len(self.seen)] = 1", "Inner.seen is not", id="of a module inside"),
        pytest.param("self.drawn = torch.rand(()).item()", "pass", "drawn is not", id="a number that is drawn"),
        pytest.param(
            "self.drawn = torch.rand(()).item()",
            "self.by = torch.rand(()).item()",
            "drawn, inner.by are not",
            id="several",
        ),
        pytest.param(
            "self.weight = nn.Parameter(torch.zeros(torch.randint(1, 99999, (1,))))",
            "pass",
            "weight is not",
            id="a form",
        ),
    ],
)
def test_what_is_another_one_each_time_is_named(tmp_path: Path, init: str, inner: str, words: str) -> None:
    none, _ = counting(tmp_path, init=init, inner=inner)
    assert f"Softmax is another one each time that it is made: {words} the same again" in (none or "")
    assert "_Described" not in (none or "")
    assert "Reference" not in (none or "")


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        pytest.param("self.a = nn.Linear(2, 2); self.a.register_forward_hook(print)", "inner.a", id="a hook"),
        pytest.param("self.a, self.b = nn.LazyLinear(4), nn.LazyLinear(4)", "inner.a, inner.b", id="lazy modules"),
    ],
)
def test_parts_with_hooks_are_named(tmp_path: Path, inner: str, words: str) -> None:
    none, _ = counting(tmp_path, inner=inner)
    assert f"Softmax has hooks inside, in {words}, such as those of " in (none or "")
    assert "modules that are lazy until their first call" in (none or "")
