"""What a class inherits from others of its file is put into its text, where rewrites look, and computes the same."""

from pathlib import Path
from typing import Any

import libcst as cst
import pytest
import torch

from flows.optimizing.providers import rewriting
from tasks.problems.problem import Problem, Split
from tasks.search import inherited
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


PLAIN = """import abc
import functools
import math
import torch
from abc import ABC, abstractmethod
from dataclasses import dataclass
from torch import nn

dropout, WIDTH, MADE = 0.5, 7, {}


def patched(self, x):
    return x + 100


def doubled(owner):
    return type(owner.__name__, (owner,), {"forward": lambda self, x: 2 * owner.forward(self, x)})


def traced(function):
    return functools.wraps(function)(lambda self, *given: function(self, *given) * 10)


"""


def of_constructors(
    base: str, mine: str, *, init: str = "[2]", base_parameters: str = "self, size", mine_parameters: str = "self, n"
) -> str:
    """Two classes, of which the constructor of one calls that of the other; and what the other is made of."""
    texts = (each.replace("\n", "\n        ") for each in (base, mine))
    of_base, of_mine = texts
    return f"""class Base(nn.Module):
    def __init__({base_parameters}):
        super().__init__()
        {of_base}

    def forward(self, x):
        return x * self.kept


class Model(Base):
    def __init__({mine_parameters}):
        {of_mine}


def get_init_inputs():
    return {init}
"""


def of_methods(base: str, mine: str = "pass", *, head: str = "class Base(nn.Module):", between: str = "") -> str:
    """Two classes, of which one inherits from the other; and what the file has between them."""
    of_base, of_mine = (each.replace("\n", "\n    ") for each in (base, mine))
    return f"{head}\n    {of_base}\n\n\n{between}\n\n\nclass Model(Base):\n    {of_mine}\n"


FORWARD = "def forward(self, x):\n    return x + 1"
KEPT = "self.kept = size"
CALLED = "super().__init__(n)"
WITH_A_CLASS = """def forward(self, x):
    class Inner(nn.ReLU):
        def forward(self, y):
            return super().forward(y) + 1

    return Inner()(x)"""
DOUBTFUL = [
    # Names of constructors that would be others in one.
    pytest.param(
        of_constructors("self.kept = size * dropout", CALLED, mine_parameters="self, n, dropout=3"),
        id="a captured global",
    ),
    pytest.param(
        of_constructors("self.kept = size * WIDTH", "WIDTH = 3\nsuper().__init__(n + WIDTH)"),
        id="captured by a local name",
    ),
    pytest.param(
        of_constructors(
            "self.kept = size * slope",
            CALLED,
            base_parameters="self, size, slope=WIDTH",
            mine_parameters="self, n, WIDTH=1",
        ),
        id="a captured default",
    ),
    pytest.param(
        of_constructors("MADE[size] = MADE.get(size, 0) + 1\nself.kept = size", f"{CALLED}\nself.made = len(MADE)"),
        id="a global that is changed",
    ),
    pytest.param(
        of_constructors("import math\nself.kept = math.sqrt(size)", f"{CALLED}\nself.up = math.ceil(n)"),
        id="an import inside",
    ),
    pytest.param(
        of_constructors("self.kept = (size := size * 2)", "super().__init__(5)", init="[1]"),
        id="a name given in passing",
    ),
    pytest.param(
        of_constructors("if (n := size * 2) > 3:\n    self.kept = n", "super().__init__(n + 1)\nself.n = n"),
        id="another name given in passing",
    ),
    pytest.param(
        of_constructors(
            "try:\n    1 / 0\nexcept ZeroDivisionError as n:\n    self.kept = size", f"{CALLED}\nself.n = n"
        ),
        id="a name after as",
    ),
    pytest.param(
        of_constructors("double = lambda size: size * 2\nself.kept = double(3)", "super().__init__(16)"),
        id="a lambda's own",
    ),
    pytest.param(
        of_constructors("self.later = lambda: size\nself.kept = size", f"{CALLED}\nn = 50\nself.kept = self.later()"),
        id="what a closure reads later",
    ),
    pytest.param(
        of_constructors(
            "self.kept = sum([size * 2 for size in sizes])",
            "super().__init__(16)",
            base_parameters="self, size, sizes=(1, 2)",
        ),
        id="a comprehension's own",
    ),
    pytest.param(
        of_constructors("self.kept = sum(n * size for n in range(4))", f"{CALLED}\nself.n = n"),
        id="another comprehension's",
    ),
    pytest.param(
        of_constructors(
            "WIDTH = size\nself.kept = WIDTH + sum([WIDTH for WIDTH in (1, 2)])", f"{CALLED}\nself.n = WIDTH"
        ),
        id="a name of both a comprehension and the constructor",
    ),
    pytest.param(of_constructors("self.kept = size\ndel size", f"{CALLED}\nself.n = n"), id="a deleted parameter"),
    pytest.param(
        of_constructors("self.kept = len(locals())", "other = 1\nsuper().__init__(n + other)"),
        id="what looks at its names",
    ),
    pytest.param(
        of_constructors("self.text = f'{size=}'\nself.kept = len(self.text)", "super().__init__(1000)"),
        id="a shown name",
    ),
    pytest.param(
        of_constructors("self.kept = size.bit_length() + -size ** 2", "super().__init__(16)"),
        id="a number with a method",
    ),
    pytest.param(
        of_constructors("size += 1\nself.kept = size", f"{CALLED}\nsize = 9\nself.kept += n"),
        id="a parameter given another",
    ),
    pytest.param(
        of_constructors(
            KEPT, "super().__init__(n)\nthis.n = n".replace("super()", "super(Model, this)"), mine_parameters="this, n"
        ),
        id="another self",
    ),
    pytest.param(
        of_constructors("me.kept = size", f"{CALLED}\nself.n = n", base_parameters="me, size"), id="another self inside"
    ),
    pytest.param(
        of_constructors(
            "me.kept = size",
            "super().__init__(*a, **k)\nself.n = 1",
            base_parameters="me, size",
            mine_parameters="self, *a, **k",
        ),
        id="another self inside, passed on",
    ),
    pytest.param(
        of_constructors(
            "width = size * 2\nself.kept = width",
            "width = 100\nsuper().__init__(*a, **k)\nself.width = width",
            mine_parameters="self, *a, **k",
        ),
        id="passed on beside the same name",
    ),
    pytest.param(
        of_constructors(
            "self.kept = size + more",
            "super().__init__(*a, **k, more=5)",
            base_parameters="self, size, more=1",
            mine_parameters="self, *a, **k",
        ),
        id="passed on with more",
    ),
    pytest.param(
        of_constructors(
            "self.kept = WIDTH",
            "super().__init__(*a, **k)\nself.kept += WIDTH",
            base_parameters="self, WIDTH",
            mine_parameters="self, *a, **k",
        ),
        id="passed on beside a global",
    ),
    pytest.param(
        of_constructors(
            "self.kept = size + len(MADE)",
            "super().__init__(size=MADE.setdefault(n, 5), other=MADE.pop(n))",
            base_parameters="self, other, size",
        ),
        id="arguments in their order",
    ),
    pytest.param(
        of_constructors("kept.append(size)\nself.kept = len(kept)", CALLED, base_parameters="self, size, kept=[]"),
        id="a default that is kept",
    ),
    pytest.param(
        of_constructors("self.kept = size", "super().__init__(n)").replace(
            "    def __init__(self, size)", "    @torch.no_grad()\n    def __init__(self, size)"
        ),
        id="a decorated constructor",
    ),
    pytest.param(
        of_constructors("self.kept = size * 3", CALLED).replace(
            "class Model",
            "def made(self, size):\n    nn.Module.__init__(self)\n    self.kept = 40\n\n\n"
            "Base.__init__ = made\n\n\nclass Model",
        ),
        id="a constructor that is replaced",
    ),
    # Forwards and methods.
    pytest.param(of_methods(FORWARD, head="@doubled\nclass Base(nn.Module):"), id="a decorated parent"),
    pytest.param(of_methods(FORWARD, between="Base.forward = patched"), id="a parent that is patched"),
    pytest.param(of_methods(FORWARD, between="setattr(Base, 'forward', patched)"), id="patched by name"),
    pytest.param(
        of_methods(FORWARD, between="for name in ('forward',):\n    setattr(Base, name, patched)"),
        id="patched by any name",
    ),
    pytest.param(
        of_methods(
            FORWARD, "def forward(self, x):\n    return super().forward(x) * 3", between="Base.forward = patched"
        ),
        id="a patched one that is called",
    ),
    pytest.param(
        of_methods(
            f"def __init_subclass__(cls):\n    cls.forward = patched\n\n{FORWARD}",
        ),
        id="a parent that changes its children",
    ),
    pytest.param(
        of_methods(
            "size: int = 4\n\ndef __post_init__(self):\n    nn.Module.__init__(self)\n\n"
            "def forward(self, x):\n    return x * self.size",
            head="@dataclass(eq=False)\nclass Base(nn.Module):",
        ),
        id="a constructor that is written for it",
    ),
    pytest.param(
        of_methods(
            f"@abstractmethod\n{FORWARD}",
            "def forward(self, x):\n    return super().forward(x) + 1",
            head="class Base(nn.Module, ABC):",
        ),
        id="an abstract method",
    ),
    pytest.param(
        of_methods(f"@traced\n{FORWARD}", "def forward(self, x):\n    return super().forward(x)"),
        id="a decorated method",
    ),
    pytest.param(
        of_methods(
            "def act(self, x):\n    return x\n\ndef forward(self, x):\n    return self.act(x)",
            "def __init__(self):\n    super().__init__()\n    self.act = torch.abs",
        ),
        id="an attribute over a method",
    ),
    pytest.param(
        of_methods(
            "def act(self, x):\n    return x\n\ndef forward(self, x):\n    return self.act(x)",
            "def __init__(self):\n    super().__init__()\n"
            "    for name in ('act',):\n        setattr(self, name, torch.abs)",
        ),
        id="an attribute of any name over a method",
    ),
    pytest.param(
        of_methods(
            "def __act(self, x):\n    return x\n\n"
            "def forward(self, x):\n    self.__act = torch.abs\n    return self.__act(x)",
        ),
        id="an attribute over a private method",
    ),
    pytest.param(
        of_methods(
            WITH_A_CLASS,
        ),
        id="a class within a method",
    ),
    pytest.param(
        of_methods(
            FORWARD,
            WITH_A_CLASS,
        ),
        id="a class within its own forward",
    ),
    pytest.param(
        of_methods(
            "def forward(self, x):\n    def inner(other):\n        return super().extra_repr() or x\n\n"
            "    return inner(self)",
        ),
        id="super in a function within",
    ),
    pytest.param(of_methods("def forward(self, x):\n    return x * len(__class__.__name__)"), id="a bare class"),
    pytest.param(
        of_methods(
            "def forward(self, x, c=[]):\n    c.append(1)\n    return x * len(c)",
            "def forward(self, x):\n    return super().forward(x) + Base.forward(self, x)",
        ),
        id="a default that methods share",
    ),
    pytest.param(
        of_methods("def forward(self, x, by=WIDTH):\n    return x * by", between="WIDTH = 9"),
        id="a default's name of then",
    ),
    pytest.param(
        of_methods("def forward(self, x, by=WIDTH):\n    return x * by", "WIDTH = 9"),
        id="a default's name of the class",
    ),
    pytest.param(
        of_methods(FORWARD, "def forward(self, x):\n    Base = 3\n    return super().forward(x) * Base"),
        id="a name of a parent",
    ),
    pytest.param(
        of_methods(
            FORWARD,
            "def __init__(self, deep=True):\n    super().__init__()\n"
            "    self.inner = Sub(False) if deep else nn.Identity()\n\n"
            "def forward(self, x):\n    return self.inner(super().forward(x))",
        )
        + "\n\nclass Right(Base):\n    def forward(self, x):\n        return x * 100\n\n\n"
        "class Sub(Model, Right):\n    pass\n",
        id="a child of it among its parts",
    ),
    pytest.param(
        of_methods(
            "def act(self, x):\n    return x * scale\n\n"
            "def forward(self, x):\n    scale = 3\n    return self.act(x) + scale",
            between="scale = 5",
        ),
        id="a method that reads what the forward calls otherwise",
    ),
    pytest.param(
        of_methods("def act(me, x):\n    return x * me.by\n\nby = 3\n\ndef forward(self, x):\n    return self.act(x)"),
        id="a method with another self",
    ),
]


def whole_problem(text: str) -> Problem:
    generators = "" if "get_init_inputs" in text else "\n\ndef get_init_inputs():\n    return []\n"
    source = f"{PLAIN}{text}{generators}\n\ndef get_inputs():\n    return [torch.randn(8, 16)]\n"
    return Problem(problem_id="p", level=1, family="f", split=Split.HELD_OUT, source=source, precision="fp32")


def attributes_and_output(source: str) -> tuple[dict[str, str], torch.Tensor]:
    names = run(source)
    model, found = made_and_called(names, "Model", names["get_init_inputs"]())
    return {name: str(each) for name, each in vars(model).items() if not callable(each)}, found


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_may_compute_something_else_in_one_text_stays_where_it_is(text: str) -> None:
    problem = whole_problem(text)
    attributes, expected = attributes_and_output(problem.source)
    for source in (with_inherited(cst.parse_module(problem.source), "Model").code, put_together(problem).source):
        own, found = attributes_and_output(source)
        assert torch.equal(found, expected)
        assert own == attributes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(of_constructors(KEPT, CALLED), id="a name"),
        pytest.param(of_constructors("n = size * 2\nself.kept = n", f"{CALLED}\nself.n = n"), id="the same name"),
        pytest.param(
            of_constructors(
                "self.kept = sum([size * each for each in range(steps)]) + len(sizes)",
                "super().__init__(steps=n, size=3)",
                base_parameters="self, size, *, steps, sizes=(1, 2)",
            ),
            id="a comprehension and a default that is a tuple",
        ),
        pytest.param(
            of_constructors("self.kept = -size ** 2 + size.real", "super().__init__(16)"), id="a number in a sum"
        ),
        pytest.param(
            of_constructors(
                "kept = size\nself.kept = kept",
                "super().__init__(*a, **k)\nself.n = 1",
                mine_parameters="self, *a, **k",
                init="{'size': 3}",
            ),
            id="passed on",
        ),
    ],
)
def test_a_constructor_of_which_the_text_tells_all_is_put_in(text: str) -> None:
    problem = whole_problem(text)
    source = put_together(problem).source
    assert "super().__init__" not in source.partition("class Model")[2]
    names = run(source)
    (attributes, expected), (own, found) = attributes_and_output(problem.source), attributes_and_output(source)
    assert torch.equal(found, expected)
    assert own == attributes
    assert "forward" in vars(names["Model"])


def test_all_that_super_calls_in_a_method_is_put_in() -> None:
    problem = whole_problem(
        of_methods(
            f"def a(self, x):\n    return x + 1\n\ndef b(self, x):\n    return x * 2\n\n{FORWARD}",
            "def forward(self, x):\n    return super().a(super().b(x)) + super().forward(x) + super().a(2 * x)",
        )
    )
    for source in (with_inherited(cst.parse_module(problem.source), "Model").code, put_together(problem).source):
        assert "super" not in source.partition("class Model")[2]
        assert torch.equal(attributes_and_output(source)[1], attributes_and_output(problem.source)[1])


def test_what_a_file_does_besides_stays_in_the_text(tmp_path: Path) -> None:
    problem = whole_problem(of_methods(FORWARD, between="torch.set_printoptions(precision=5)"))
    source = put_together(problem).source
    assert source.partition("class Model")[0] == problem.source.partition("class Model")[0]
    assert "def forward" in source.partition("class Model")[2]


def test_a_class_of_the_file_that_is_called_as_candidates_are_stays_one_class() -> None:
    child = "\n\nclass ModelNew(Model):\n    def forward(self, x):\n        return x + 2\n"
    source = put_together(whole_problem(of_methods(FORWARD) + child)).source
    assert source.count("class Model(") == source.count("class ModelNew(") == 1
    assert "def forward" in source.partition("class Model(")[2].partition("class ModelNew")[0]


def test_a_text_that_does_not_parse_is_not_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = whole_problem(of_methods(FORWARD))
    monkeypatch.setattr(inherited, "_put_together", lambda module: "[16 for 16 in (1, 2)]")
    assert put_together(problem) is problem


def test_a_forward_that_asks_for_the_class_of_its_object_is_put_in() -> None:
    problem = whole_problem(of_methods("def forward(self, x):\n    return x * len(self.__class__.__name__)"))
    assert hidden_forward(problem.source, "Model") is None
    assert "def forward" in put_together(problem).source.partition("class Model")[2]
