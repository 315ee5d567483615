"""Calls that are put into forward: what is put in computes the same, and what cannot be is left alone."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.inlining import inlined

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
HELPERS = '''
def swish(x, beta=1.0):
    """Doc."""
    gate = torch.sigmoid(beta * x)
    return x * gate


def pair(a, b):
    low, high = torch.minimum(a, b), torch.maximum(a, b)
    return high - low


def branching(x):
    if x.sum() > 0:
        return x
    return -x


class Scale(nn.Module):
    def __init__(self, size, by):
        super().__init__()
        self.by = by
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x):
        x = x * self.weight
        return x + self.by


class Both(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = Scale(size, 1.0)
        self.second = Scale(size, by=2.0)

    def forward(self, x):
        return self.second(self.first(x)) - self.first(x)
'''


def program(*forward: str, methods: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in forward)
    return (
        f"{HEAD}{HELPERS}\n\nclass ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.both = Both(4)\n        self.dropout = nn.Dropout(0.5)\n        self.linear = nn.Linear(4, 4)\n"
        f"        self.eval()\n\n    def forward(self, x, y):\n{lines}{methods}"
    )


def made(source: str) -> torch.nn.Module:
    names: dict = {}
    exec(source, names)
    torch.manual_seed(0)
    return names["ModelNew"]()


@pytest.mark.parametrize(
    ("source", "gone"),
    [
        pytest.param(program("return swish(x) + swish(y, 2.0)"), "swish(", id="a function, with and without default"),
        pytest.param(program("return swish(beta=3.0, x=x @ y)"), "swish(", id="named arguments"),
        pytest.param(program("gate = y + 1", "return swish(x) * gate"), "swish(", id="a name that is taken"),
        pytest.param(program("x = pair(x, y)", "return pair(y, x)"), "pair(", id="several results at once"),
        pytest.param(program("return self.both(x) + y"), "self.both(", id="modules within modules"),
        pytest.param(program("return self.linear(swish(self.both(x + y)))"), "self.both(", id="nested calls"),
        pytest.param(program("return self.dropout(x) + F.dropout(y, 0.5, self.training)"), "dropout(", id="dropout"),
        pytest.param(
            program("return self.half(x) + self.twice(y)", methods="""
    def half(self, x):
        return self.linear(x) / 2

    @staticmethod
    def twice(x):
        return x * 2
"""),
            "self.half(",
            id="methods",
        ),
    ],
)  # fmt: skip
def test_what_is_put_in_computes_the_same(source: str, gone: str) -> None:
    changed = inlined(cst.parse_module(source)).code
    own = changed[changed.index("class ModelNew") :]
    assert gone not in own[own.index("def forward") :].partition("\n\n")[0]
    before, after = made(source), made(changed)
    assert list(before.state_dict()) == list(after.state_dict())
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    assert torch.equal(before(x, y), after(x, y))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(program("return branching(x) + y"), id="a function with a branch"),
        pytest.param(program("return x if y is None else swish(x)"), id="a call that may not happen"),
        pytest.param(program("return sum(swish(each) for each in (x, y))"), id="a call in a comprehension"),
        pytest.param(program("return swish(*[x])"), id="arguments that are not there to see"),
        pytest.param(program("for _ in range(2):", "    x = swish(x)", "return x + y"), id="a call in a loop"),
        pytest.param(program("return unknown(x) + y"), id="a function of another file"),
        pytest.param("x = 1\n", id="no forward"),
    ],
)
def test_what_cannot_be_put_in_is_left_alone(source: str) -> None:
    assert inlined(cst.parse_module(source)).code == source


def test_functions_that_call_themselves_end() -> None:
    source = program("return endless(x) + y").replace(
        "def branching", "def endless(x):\n    return endless(x + 1)\n\n\ndef branching"
    )
    assert "endless(" in inlined(cst.parse_module(source)).code


def test_dropout_stays_where_training_is_possible() -> None:
    source = program("return self.dropout(x) + y").replace("        self.eval()\n", "")
    assert "self.dropout(x)" in inlined(cst.parse_module(source)).code


def test_other_classes_keep_their_text_where_dropout_is_left_out() -> None:
    source = program("return self.both(x) + y").replace("return x + self.by", "return self.dropout(x) + self.by")
    source = source.replace("self.by = by", "self.by, self.dropout = by, None\n        self.dropout = nn.Dropout(0.1)")
    changed = inlined(cst.parse_module(source)).code
    before, after = (text.partition("class ModelNew") for text in (source, changed))
    assert "self.both(" not in after[2]
    assert "dropout(" not in after[2].partition("def forward")[2]
    assert after[0] == before[0]
