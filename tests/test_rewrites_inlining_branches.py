"""Modules whose settings decide what they do: what is put into forward is what the settings of each say."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.inlining import inlined
from tests.test_rewrites_inlining_names import computed, program

NORM = """
FORM = "first"


class Base(nn.Module):
    def reset(self):
        self.form = "last"


class Norm(nn.Module):
    def __init__(self, shift, form="first", *, groups=1):
        super().__init__()
        self.shift, self.form = shift, form
        self.is_plain = False
        self.groups = groups

    def forward(self, x):
        if self.form == "last":
            return x * 3.0
        elif self.form == "first":
            x = x - x.mean(1, keepdim=True)
            if not self.is_plain:
                x = x * 2.0
            if self.groups != 1:
                x = x / self.groups
            return x + self.shift
        return x
"""
CALLED = "return self.norm(x) * y"


def with_norm(init: str, *, norm: str = NORM, forward: str = CALLED) -> str:
    return program(forward, above=norm, init=f"{init}\n")


def own_forward(source: str) -> str:
    return source[source.index("class ModelNew") :].partition("def forward")[2]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(with_norm("self.norm = Norm(1.0)"), id="by default"),
        pytest.param(with_norm("self.norm = Norm(1.0, 'last')"), id="by position"),
        pytest.param(with_norm("self.norm = Norm(1.0, form='neither')"), id="by name"),
        pytest.param(with_norm("self.norm = Norm(1.0, groups=4)"), id="a number"),
        pytest.param(
            with_norm(
                "self.norm, self.other = Norm(1.0), Norm(2.0, 'last')", forward="return self.norm(x) * self.other(y)"
            ),
            id="two of one class",
        ),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=NORM.replace("= shift, form", "= shift, 'last'")),
            id="by the constructor itself",
        ),
    ],
)
def test_a_branch_that_a_setting_decides_is_not_in_the_way(source: str) -> None:
    changed = inlined(cst.parse_module(source)).code
    assert "(x) *" not in own_forward(changed)
    assert "if " not in own_forward(changed)
    assert torch.equal(computed(source), computed(changed))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(with_norm("form = 'last'\nself.norm = Norm(1.0, form)"), id="that is computed"),
        pytest.param(with_norm("self.norm = Norm(1.0, FORM)"), id="that is another name's value"),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=NORM.replace('form="first"', "form=FORM")),
            id="whose default is another name's value",
        ),
        pytest.param(with_norm("self.norm = Norm(1.0)\nself.norm.form = 'last'"), id="that is changed from outside"),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=f"{NORM}\n    def turn(self):\n        self.form = 'last'\n"),
            id="that a method changes",
        ),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=NORM.replace("class Norm(nn.Module)", "class Norm(Base)")),
            id="that a base class may change",
        ),
        pytest.param(
            with_norm(
                "self.norm = Norm(1.0)",
                norm=f"{NORM}\n    form = property(lambda self: 'last', lambda self, form: None)\n",
            ),
            id="that is a property",
        ),
        pytest.param(
            with_norm(
                "self.norm = Norm(1.0)",
                norm=NORM.replace(
                    "self.form = shift, form",
                    "self.other = shift, form\n        if shift > 0:\n            self.form = form",
                ),
            ),
            id="that is given under a condition",
        ),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=NORM.replace("is_plain", "training")),
            id="that train() and eval() give",
        ),
        pytest.param(
            with_norm("self.norm = Norm(1.0)", norm=NORM.replace('"last":', '"last" or x.sum() > 9:')),
            id="that does not decide alone",
        ),
    ],
)
def test_a_setting_that_may_be_another_decides_nothing(source: str) -> None:
    assert "self.norm(x)" in own_forward(inlined(cst.parse_module(source)).code)
