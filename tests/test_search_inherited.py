"""What a class inherits from others of its file is put into its text, where rewrites look, and computes the same."""

from pathlib import Path
from typing import Any

import libcst as cst
import pytest
import torch

from flows.optimizing.providers import rewriting
from tasks.search.drop_in import drop_in
from tasks.search.inherited import hidden_forward, put_together, with_inherited
from tasks.search.survey import survey
from tasks.search.texts import ProblemTexts, problem_texts
from tasks.search.user_file import UserFile, read_user_file

HEAD = """import abc
import torch
from abc import ABC
from typing import Generic, TypeVar
from torch import nn

T = TypeVar("T")


class Base(nn.Module):
    scale = 2.0

    def __init__(self, size, *, slope=0.5, act=None):
        \"\"\"Of this size.\"\"\"
        super().__init__()
        width = size
        self.__slope = slope
        self.act = act or nn.Tanh()
        self.linear = nn.Linear(size, width)
        self.register_buffer("shift", torch.arange(1.0, 1 + width))

    def helped(self, x):
        return self.__softened(x) * self.scale

    def __softened(self, x):
        e = torch.exp(x - torch.max(x, dim=1, keepdim=True)[0])
        return e / torch.sum(e, dim=1, keepdim=True) * self.__slope

    def forward(self, x):
        return self.act(self.linear(self.helped(x))) + self.shift


"""
TAIL = """

def example_inputs():
    return torch.randn(8, 16)


def example_init():
    return {init}
"""
CHILDREN = [
    pytest.param("class Mine(Base):\n    pass\n", "[16]", id="everything"),
    pytest.param("class Mine(Base):\n    scale = 3.0\n", "[16, ]", id="all but an attribute"),
    pytest.param("class Mine(Base): pass\n", "{'size': 16, 'slope': 0.25}", id="in one line"),
    pytest.param(
        "class Mine(Base):\n    def __init__(self):\n        super().__init__(16)\n", "[]", id="all but a constructor"
    ),
    pytest.param(
        "class Mine(Base):\n    def __init__(self, width=4):\n        width = width * 4\n"
        "        super(Mine, self).__init__(width, slope=width / 32, act=nn.ReLU())\n"
        "        self.linear.bias.data += 1\n",
        "[]",
        id="a constructor whose names are those of the inherited one",
    ),
    pytest.param(
        "class Mine(Base):\n    def __init__(self, *given, **named):\n        super().__init__(*given, **named)\n"
        "        self.scale = 0.5\n",
        "[16]",
        id="a constructor that passes all on",
    ),
    pytest.param(
        "class Mine(Base):\n    def __init__(self, *given):\n        super().__init__(*given, slope=0.125)\n",
        "[16]",
        id="a constructor that passes something on",
    ),
    pytest.param(
        "class Mine(Base):\n    def helped(self, x):\n        return torch.sigmoid(x)\n", "[16]", id="but for a method"
    ),
    pytest.param(
        "class Mine(Base):\n    def __softened(self, x):\n        return x\n", "[16]", id="beside a private method"
    ),
    pytest.param(
        "class Mine(Base):\n    def forward(self, x):\n        return super().forward(x) * 2 + self.helped(x)\n",
        "[16]",
        id="what its own forward calls",
    ),
    pytest.param(
        "class Middle(Base, ABC):\n    def forward(self, x):\n        return super().forward(x).square()\n\n"
        "    def helped(self, x):\n        return super().helped(x) + 1\n\n\n"
        "class Mine(Middle, Generic[T]):\n    def helped(self, x):\n        return super().helped(x) * 3\n",
        "[16]",
        id="over several classes",
    ),
    pytest.param(
        "class Left(Base):\n    def helped(self, x):\n        return super().helped(x) + 1\n\n\n"
        "class Right(Base):\n    def helped(self, x):\n        return super().helped(x) * 3\n\n\n"
        "class Mine(Left, Right, abc.ABC):\n    pass\n",
        "[16]",
        id="over two parents of one class",
    ),
    pytest.param(
        "class Mixin:\n    def forward(self, x):\n        return super().forward(x) - x\n\n\n"
        "class Mine(Mixin, Base):\n    def __init__(self, size: int) -> None:\n        super().__init__(size)\n",
        "[16]",
        id="beside a class that is no module",
    ),
]


def user_file(folder: Path, child: str, init: str) -> UserFile:
    path = folder / "mine.py"
    path.write_text(f"{HEAD}{child}{TAIL.format(init=init)}")
    return read_user_file(path, "Mine")


def texts_of(file: UserFile) -> ProblemTexts:
    return problem_texts(file, survey(file))


def run(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "there"}
    exec(compile(source, "there", "exec"), names)
    return names


def made_and_called(names: dict[str, Any], class_name: str, init: Any) -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = names[class_name](**init) if isinstance(init, dict) else names[class_name](*init)
    return model, model.eval()(torch.randn(8, 16, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize(("child", "init"), CHILDREN)
def test_what_is_inherited_is_put_into_the_class_and_computes_the_same(tmp_path: Path, child: str, init: str) -> None:
    file = user_file(tmp_path, child, init)
    own, expected = made_and_called(run(file.source), "Mine", eval(init))
    whole = with_inherited(cst.parse_module(file.source), "Mine").code
    shown = texts_of(file).shown
    for source, name in ((whole, "Mine"), (put_together(shown).source, "Model")):
        model, found = made_and_called(run(source), name, eval(init))
        assert torch.equal(found, expected)
        assert "forward" in vars(type(model))
        assert model.state_dict().keys() == own.state_dict().keys()


@pytest.mark.parametrize(("child", "init"), CHILDREN)
def test_the_rewrites_find_something_and_a_drop_in_has_no_constructor_run_a_second_time(
    tmp_path: Path, child: str, init: str
) -> None:
    file = user_file(tmp_path, child, init)
    facts = survey(file)
    texts = problem_texts(file, facts)
    first = rewriting(texts.shown, seed=0, device="cpu")[0].propose([])
    assert first is not None
    names = run(drop_in(file, facts, first, problem_id="mine").source)
    _, expected = made_and_called(names, "ReferenceMine", eval(init))
    with torch.no_grad():
        model, found = made_and_called(names, "Mine", eval(init))
    assert torch.allclose(found, expected, atol=1e-5)
    assert model._fast.seen.is_judged
    assert "_made_from" not in vars(model)


def test_the_inherited_constructor_tells_what_layers_there_are(tmp_path: Path) -> None:
    source = put_together(texts_of(user_file(tmp_path, *CHILDREN[3].values)).shown).source  # type: ignore[arg-type]
    own = source.partition("class Model(Base):")[2]
    assert "self.linear = nn.Linear(16, width)" in own
    assert "e = torch.exp(x - torch.max(x, dim=1, keepdim=True)[0])" in own.replace("x_2", "x").replace("x_3", "x")
    assert "def helped" not in own


def test_a_parent_that_changes_later_leads_to_the_own_forward(tmp_path: Path) -> None:
    file = user_file(tmp_path, *CHILDREN[0].values)  # type: ignore[arg-type]
    facts = survey(file)
    first = rewriting(problem_texts(file, facts).shown, seed=0, device="cpu")[0].propose([])
    assert first is not None
    names = run(drop_in(file, facts, first, problem_id="mine").source)
    with torch.no_grad():
        model, found = made_and_called(names, "Mine", [16])
        names["Base"].helped = lambda self, x: x
        _, changed = made_and_called(names, "Mine", [16])
        assert not torch.allclose(found, changed)
        assert torch.equal(model(torch.zeros(8, 16)), names["ReferenceMine"].forward(model, torch.zeros(8, 16)))


UNTOLD = [
    pytest.param("class Mine(nn.Module, Base):\n    pass\n", id="after a module of torch"),
    pytest.param("class Mine(abc.Sized, Base):\n    pass\n", id="after a class of another file"),
    pytest.param(
        "class Odd(nn.Module):\n    factor = 2\n\n    def forward(self, x, by=factor):\n        return x * by\n\n\n"
        "class Mine(Odd):\n    pass\n",
        id="whose defaults are the class's",
    ),
    pytest.param(
        "class Odd(nn.Module):\n    if T:\n        def forward(self, x):\n            return x\n\n\n"
        "class Mine(Odd):\n    pass\n",
        id="in a branch",
    ),
]


@pytest.mark.parametrize("child", UNTOLD)
def test_a_forward_of_which_the_text_does_not_tell_stays_where_it_is(child: str) -> None:
    source = f"{HEAD}{child}"
    module = cst.parse_module(source)
    assert with_inherited(module, "Mine") is module
    assert hidden_forward(source, "Mine") == ("Odd" if "Odd" in child else "Base")


@pytest.mark.parametrize(("child", "init"), CHILDREN)
def test_what_is_put_in_is_not_hidden(child: str, init: str) -> None:
    assert hidden_forward(f"{HEAD}{child}", "Mine") is None


def test_a_class_that_inherits_nothing_of_the_file_stays_as_it_is(tmp_path: Path) -> None:
    shown = texts_of(
        user_file(tmp_path, "class Mine(nn.Module):\n    def forward(self, x):\n        return x\n", "[]")
    ).shown
    assert put_together(shown) is shown
