"""Arguments travel as plain data and bytes, outputs come back as plain tensors, whatever they are nested in."""

import argparse
import collections
import enum
import functools
import json
import math
import re
import sys
import types
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from tasks.judge import values
from tasks.judge.model_state import constructor_arguments
from tasks.judge.outputs import OutputRefusedError, flattened


class Kind(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


class Level(enum.IntEnum):
    LOW = 1


class Choice(enum.Flag):
    FIRST, SECOND = enum.auto(), enum.auto()


@dataclass
class Size:
    width: int
    kind: Kind = Kind.SOFT


@dataclass(frozen=True, slots=True)
class Config:
    size: Size
    layers: list[int] = field(default_factory=lambda: [1, 2])
    dtype: torch.dtype = torch.float32

    @property
    def area(self) -> int:
        return self.size.width**2


class Written:
    def __init__(self, width: int) -> None:
        self.width = width

    def __eq__(self, other: object) -> bool:
        return type(other) is Written and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:  # without the address, which would be another in each process of the tests
        return f"{type(self).__name__}({self.width})"

    def twice(self) -> int:
        return 2 * self.width


class Restored(Written):
    def __getstate__(self) -> list[int]:
        return [self.width]

    def __setstate__(self, state: list[int]) -> None:
        (self.width,) = state

    def __eq__(self, other: object) -> bool:
        return type(other) is Restored and vars(other) == vars(self)


class Open:
    """Has whatever attribute it is asked for, as some configurations do."""

    def __getattr__(self, name: str) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return type(other) is Open

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Open()"


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


def carried(value: object, *, carries_numbers: bool = False) -> object:
    data, tensors = values.encode_all(value, carries_numbers=carries_numbers)
    return values.decode(json.loads(json.dumps(data)), tensors)


@pytest.mark.parametrize(
    "value",
    [
        3,
        2.5,
        float("inf"),
        1 + 2j,
        True,
        None,
        "text",
        [1, (2, [3])],
        {"a": (1, 2), 3: None},
        slice(1, None, 2),
        torch.float16,
        torch.device("cpu"),
        torch.nn.ReLU,
        torch.nn.functional.gelu,
        torch.relu,
        Kind.HARD,
        Level.LOW,
        Choice.FIRST | Choice.SECOND,
        Config(Size(3), layers=[4]),
        {"config": Config(Size(5, Kind.HARD), dtype=torch.float16)},
        Written(3),
        Restored(4),
        types.SimpleNamespace(width=3, names=("a",)),
        argparse.Namespace(width=3),
        Written,
        Written.twice,
        re.compile,
        math.tanh,
        Open(),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_value_comes_out_as_it_went_in(value: object) -> None:
    found = carried(value)
    assert found == value
    assert type(found) is type(value)


def test_what_an_object_holds_is_its_own_and_its_class_is_the_programs() -> None:
    config = Config(Size(3))
    found = carried(config)
    assert isinstance(found, Config)
    assert found.layers is not config.layers
    assert found.area == 9


def test_a_function_with_arguments_given_keeps_them() -> None:
    found = carried(functools.partial(torch.nn.LayerNorm, eps=1e-6))
    assert isinstance(found, functools.partial)
    assert (found.func, found.args, found.keywords) == (torch.nn.LayerNorm, (), {"eps": 1e-6})


def test_an_object_of_the_programs_own_class_becomes_one_of_the_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Config:\n    def __init__(self, size): self.size = size\n"
    programs = {name: types.ModuleType(name) for name in ("reference", "candidate", "other")}
    for name, module in programs.items():
        monkeypatch.setitem(sys.modules, name, module)
        exec(text if name != "other" else "", module.__dict__)
    config = programs["reference"].Config(3)
    data, _ = values.encode_all([config], home="reference")
    (found,) = values.decode(json.loads(json.dumps(data)), [], home="candidate")
    assert type(found) is programs["candidate"].Config
    assert found.size == 3
    with pytest.raises(
        AttributeError, match="the program defines no Config, which its constructor or forward is given"
    ):
        values.decode(data, [], home="other")


def test_tensors_are_found_however_deep_they_lie() -> None:
    big = torch.randn(100, 100)
    found = carried([big, {"states": (big, [torch.ones(2, dtype=torch.bool)])}])
    assert found[0] is big
    assert found[1]["states"][0] is big, "what is handed over twice stays one object"
    assert found[1]["states"][1][0].tolist() == [True, True]


def test_numbers_may_travel_like_tensors_so_that_every_draw_can_have_its_own() -> None:
    data, tensors = values.encode_all([0.5, 3, True], carries_numbers=True)
    assert values.decode(data, tensors) == [0.5, 3, True]
    assert values.decode(data, [tensor + 1 for tensor in tensors[:2]] + tensors[2:]) == [1.5, 4, True]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "object"),
        ({1, 2}, "set"),
        ([].append, "finds it under no name"),
        (ENDLESS, "contains itself"),
        (lambda x: x, "finds it under no name: write it at the top of a file"),
        (torch.nn.ReLU(), "ReLU"),
        (Written(torch.nn.Linear(2, 2)), "Linear"),  # type: ignore[arg-type]
        (Written({1, 2}), "set"),  # type: ignore[arg-type]
        (torch.Generator(), "Generator"),
        (np.zeros(3), "ndarray"),
        (torch.eye(3).to_sparse(), "sparse"),
        (list(range(100_000)), "make long lists tensors"),
    ],
    ids=[
        *(
            "object",
            "set",
            "method of a list",
            "list of itself",
            "function without a name",
            "module",
            "object with a module",
        ),
        *("object with a set", "generator", "array", "sparse tensor", "long list"),
    ],
)
def test_what_cannot_be_carried_is_refused_by_name(value: object, words: str) -> None:
    with pytest.raises(values.ValueRefusedError, match=words):
        values.encode_all([value])


class Empty:
    def __init__(self) -> None: ...


class Two:
    def __init__(self, first: object, second: object = None) -> None: ...


@pytest.mark.parametrize(
    ("returned", "model", "expected"),
    [
        ([], Empty, ([], {})),
        ((), Empty, ([], {})),
        ({}, Empty, ([], {})),
        ({"first": 1}, Two, ([], {"first": 1})),
        ([1, 2], Two, ([1, 2], {})),
        ([[], {}], Empty, ([], {})),
        ([[1], {"second": 2}], Two, ([[1], {"second": 2}], {})),
        ([[], {"first": 1}], Empty, ([], {"first": 1})),
        (7, Two, ([7], {})),
    ],
)
def test_constructors_get_what_get_init_inputs_means(returned: object, model: type, expected: object) -> None:
    assert constructor_arguments(returned, model) == expected


PAIR = collections.namedtuple("PAIR", "values indices")


@dataclass
class Found:
    mean: object
    rest: object = None


ONE, OTHER = torch.ones(2), torch.zeros(3)


@pytest.mark.parametrize(
    ("result", "paths"),
    [
        (ONE, [""]),
        ([ONE], [""]),
        ((ONE, None), [""]),
        ((ONE, OTHER), ["", ""]),
        ((ONE, (OTHER, [ONE])), ["", "", ""]),
        (PAIR(ONE, OTHER), ["", ""]),
        (torch.topk(ONE, 1), ["", ""]),
        ({"b": ONE, "a": OTHER}, ["['a']", "['b']"]),
        (Found(ONE, rest=[Found(OTHER), 2.5]), [".mean", ".rest.mean", ".rest"]),
        (torch.nn.Parameter(ONE), [""]),
        ((ONE, 2.5, True), ["", "", ""]),
        ((), []),
    ],
    ids=str,
)
def test_outputs_are_taken_apart(result: object, paths: list[str]) -> None:
    tensors, found = flattened(result)
    assert found == paths
    assert all(type(tensor) is torch.Tensor and not tensor.requires_grad for tensor in tensors)


class Lazy(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "result",
    [ONE.as_subclass(Lazy), torch.eye(2).to_sparse(), ONE.to("meta"), "text", [[[object()]]], Found],
    ids=["subclass", "sparse", "meta", "text", "object", "class"],
)
def test_what_is_no_plain_tensor_is_refused(result: object) -> None:
    with pytest.raises(OutputRefusedError):
        flattened(result)


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(OutputRefusedError, match="deep"):
        flattened(endless)


def test_half_precision_is_widened_where_the_problem_allows_it() -> None:
    tensors, _ = flattened([ONE.bfloat16(), ONE.double()], widen=True)
    assert [tensor.dtype for tensor in tensors] == [torch.float32, torch.float64]
