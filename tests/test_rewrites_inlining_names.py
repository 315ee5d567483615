"""Names of what is put into forward: each means what it meant where it stood, or the call is left alone."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.inlining import inlined

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nFACTOR = 2.0\nSHIFT = torch.zeros(4)\n"
INIT = "super().__init__()\nself.weight = nn.Parameter(torch.randn(4))\nself.linear = nn.Linear(4, 4)\n"


def program(forward: str, *, above: str = "", init: str = "", methods: str = "", arguments: str = "x, y") -> str:
    own = (
        f"def __init__(self):\n{indented(INIT + init)}\ndef forward(self, {arguments}):\n{indented(forward)}\n{methods}"
    )
    return f"{HEAD}\n{above}\n\nclass ModelNew(nn.Module):\n{indented(own)}"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def computed(source: str) -> torch.Tensor:
    names: dict = {}
    torch.manual_seed(0)
    exec(source, names)
    model = names["ModelNew"]()
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    result = model(x, y)
    assert isinstance(result, torch.Tensor)
    return torch.cat([result.flatten(), model.weight.flatten(), x.flatten()])


def same_for_both(source: str) -> None:
    assert torch.equal(computed(source), computed(inlined(cst.parse_module(source)).code))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            program("FACTOR = x.sum()\nreturn scaled(y) + FACTOR", above="def scaled(z):\n    return z * FACTOR\n"),
            id="a local of forward that a helper has from the file",
        ),
        pytest.param(
            program(
                "return self.shifted(x) + scaled(y)",
                above="def scaled(z):\n    return z * FACTOR\n",
                methods="def shifted(self, z):\n    FACTOR = z + 1\n    return FACTOR * FACTOR\n",
            ),
            id="a local of one helper that is a global of the next",
        ),
        pytest.param(
            program(
                "i = y\nreturn summed(i)", above="def summed(z):\n    return sum([z * i for i in range(3)])\n"
            ),
            id="a local of forward that is a variable of a comprehension",
        ),
        pytest.param(
            program(
                "return stacked(self.weight) + x",
                above="def stacked(row):\n    return torch.stack([row * 2 for row in row.unbind(0)])\n",
            ),
            id="an attribute for a parameter that a comprehension gives a value",
        ),
        pytest.param(
            program(
                "return scaled(self.weight) + x", above="def scaled(z):\n    return (lambda z: z * 2)(z + 1)\n"
            ),
            id="an attribute for a parameter that a lambda has too",
        ),
        pytest.param(
            program("z = x\nw = squared(y)\nreturn w * z", above="def squared(a):\n    return (z := a * 2) * z\n"),
            id="what a helper gives a value within an expression",
        ),
        pytest.param(
            program("return (z := x + 1) * squared(z)", above="z = None\ndef squared(a):\n    return a * a\n"),
            id="what forward gives a value within an expression",
        ),
        pytest.param(
            program("return x.add_(1) * squared(x)", above="def squared(a):\n    return a * a\n"),
            id="what the statement changes before the call",
        ),
        pytest.param(
            program(
                "squared = torch.neg\nreturn squared(x)", above="def squared(a):\n    return a * a\n"
            ),
            id="a local of forward that is called like a helper",
        ),
        pytest.param(
            program("return squared(x)", above="def squared(a):\n    return a * a\n\n\nsquared = torch.neg\n"),
            id="a helper that is replaced in the file",
        ),
        pytest.param(
            program(
                "return self.changed(x)",
                methods="def changed(self, z):\n    return z * 2\n\ndef changed(self, z):\n    return z * 3\n",
            ),
            id="a method that the class has twice",
        ),
        pytest.param(
            program("return self.changed(x)", methods="def changed(me, z):\n    return z * me.weight\n"),
            id="a method whose first parameter is not called self",
        ),
        pytest.param(
            program(
                "return self.changed(x)",
                init="self.changed = torch.neg",
                methods="def changed(self, z):\n    return z * 2\n",
            ),
            id="a method that the constructor replaces",
        ),
        pytest.param(
            program(
                "return self.norm(x)",
                above="class Norm(nn.Module):\n    def forward(self, x):\n        return x * 2\n",
                init="if FACTOR < 1:\n    self.norm = Norm()\nelse:\n    self.norm = nn.Identity()\n",
            ),
            id="one of several modules under a name",
        ),
        pytest.param(
            program(
                "return self.norm(x)",
                above="class Norm(nn.Module):\n    def forward(self, x):\n        return x * 2\n",
                init="self.norm, self.other = nn.Identity(), None\nself.norm = Norm()\n"
                "self.norm, self.other = nn.Identity(), None\n",
            ),
            id="a module that is replaced with another name",
        ),
        pytest.param(
            program(
                "return self.outer(x)",
                above="class Norm(nn.Module):\n    def forward(self, x):\n        return x * 2\n\n\n"
                "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.norm = Norm()\n\n    def forward(self, x):\n        return self.norm(x)\n",
                init="self.outer = Outer()\nself.outer.norm = nn.Identity()\n",
            ),
            id="a module that is replaced within a module",
        ),
        pytest.param(
            program(
                "return self.inner(x)",
                above="class Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.__by = 3.0\n\n    def forward(self, x):\n        return x * self.__by\n",
                init="self.inner = Inner()\n",
            ),
            id="a private name of another class",
        ),
        pytest.param(
            program(
                "return self.inner(x)",
                above="class Base(nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n"
                "class Inner(Base):\n    def forward(self, x):\n        return super().forward(x) * 2\n",
                init="self.inner = Inner()\n",
            ),
            id="what another class inherits",
        ),
        pytest.param(
            program(
                "return self.inner(x)",
                above="class Inner(nn.Module):\n    SIZE = 3.0\n\n    def forward(self, x, by=SIZE):\n"
                "        return x * by\n",
                init="self.inner = Inner()\n",
            ),
            id="a default that only the class knows",
        ),
        pytest.param(
            program(
                "return shifted(x) + shifted(y)", above="def shifted(z, by=torch.randn(4)):\n    return z + by\n"
            ),
            id="a default that is drawn once",
        ),
        pytest.param(
            program("return scaled(x)", above="def scaled(z, by=FACTOR):\n    return z * by\n\n\nFACTOR = 7.0\n"),
            id="a default that was another value",
        ),
    ],
)  # fmt: skip
def test_names_mean_what_they_meant(source: str) -> None:
    same_for_both(source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            program("FACTOR = x + 1\nreturn scaled(FACTOR)", above="def scaled(z):\n    out = z * 2\n    return out\n"),
            id="a helper that does not read it",
        ),
        pytest.param(
            program(
                "return scaled(x)", above="def scaled(z, by=FACTOR, dim=-1, kind=torch.float32):\n    return z * by\n"
            ),
            id="defaults that stay what they are",
        ),
        pytest.param(
            program("i = y\nreturn scaled(i)", above="def scaled(z):\n    return sum([z * i for i in range(3)])\n"),
            id="variables of comprehensions, which get other names",
        ),
        pytest.param(
            program("return scaled(scaled(x) + y)", above="def scaled(z):\n    out = z * FACTOR\n    return out\n"),
            id="one within another",
        ),
    ],
)
def test_what_means_the_same_is_put_in(source: str) -> None:
    changed = inlined(cst.parse_module(source)).code
    assert "scaled(" not in changed.partition("def forward")[2]
    assert torch.equal(computed(source), computed(changed))
