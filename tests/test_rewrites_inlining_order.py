"""What is put into forward is computed when it was: neither before nor after what changes something."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.inlining import inlined
from tests.test_rewrites_inlining_names import computed, program, same_for_both

OFF = "def off(z):\n    y = z - 0.5\n    return y\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            program("return self.relu(x) + off(x)", above=OFF, init="self.relu = nn.ReLU(inplace=True)\n"),
            id="after a layer that overwrites its input",
        ),
        pytest.param(program("return F.relu(x, inplace=True) + off(x)", above=OFF), id="after a function that does"),
        pytest.param(
            program(
                "return bump(x) * squared(x)",
                above="def bump(z):\n    z.add_(1)\n    return z\n\n\ndef squared(z):\n    return z * z\n",
            ),
            id="after a helper that stays where it is",
        ),
        pytest.param(
            program(
                "return self.step(x) * self.scaled(x)",
                init="self.n = 1.0\n",
                methods="def step(self, z):\n    self.n += 1\n    return z\n"
                "def scaled(self, z):\n    y = z * self.n\n    return y\n",
            ),
            id="after a method that counts",
        ),
        pytest.param(
            program(
                "return sub(self.n, self.step(x))",
                above="def sub(a, b):\n    return b - a\n",
                init="self.n = 1.0\n",
                methods="def step(self, z):\n    self.n += 1\n    return z\n",
            ),
            id="with an attribute that an argument after it changes",
        ),
        pytest.param(
            program("return (x + 1) * moved(x)", above="def moved(z):\n    return z.add_(1)\n"),
            id="overwriting what was read before it",
        ),
        pytest.param(
            program(
                "g = gen([x], y)\ny = y + 1\nreturn sum(g)", above="def gen(xs, k):\n    return (v * k for v in xs)\n"
            ),
            id="a generator that runs later",
        ),
        pytest.param(
            program("return f(x, 3)", above="def f(x, s):\n    t = s.real\n    return x * t\n"),
            id="a number with an attribute",
        ),
        pytest.param(
            program("z = twice(x)\nreturn z", above="def twice(z):\n    return z * 2\n    return z * 3\n"),
            id="a helper with a second return",
        ),
        pytest.param(
            program("_ = self.prepare(x)\nreturn x", methods='def prepare(self, x):\n    """Override me."""\n'),
            id="a method that only says what it is for",
        ),
    ],
)
def test_it_computes_the_same(source: str) -> None:
    same_for_both(source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            program(
                "return self.linear(x) + scaled(x) * self.linear(y)",
                above="def scaled(z):\n    y = z * 2\n    return y\n",
            ),
            id="between layers",
        ),
        pytest.param(
            program(
                "return (x * 3) + self.scaled(y)",
                methods="def scaled(self, z):\n    return self.linear(z) * 2\n",
            ),
            id="beside what is computed before",
        ),
        pytest.param(
            program(
                "return scaled(x)",
                above="import math\n\n\ndef scaled(z, by=1 / 8, to=-math.pi, at=(2.0, FACTOR), of=float('-inf')):\n"
                "    return z * by + to + at[0] + max(of, 0.0)\n",
            ),
            id="with defaults that are computed from constants",
        ),
        pytest.param(
            program(
                "return scaled(x)",
                above="import torch.utils.checkpoint\n\n\n"
                "def scaled(z, dtype=torch.float32):\n    return z.to(dtype) * 2\n",
            ),
            id="with a default of a module that is imported twice",
        ),
    ],
)
def test_it_is_put_in(source: str) -> None:
    changed = inlined(cst.parse_module(source)).code
    assert "scaled(" not in changed.partition("def forward")[2].partition("def scaled")[0]
    assert torch.equal(computed(source), computed(changed))
