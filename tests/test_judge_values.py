"""Arguments travel as plain data and bytes, outputs come back as plain tensors, whatever they are nested in."""

import collections
import json

import pytest
import torch

from tasks.judge import values
from tasks.judge.model_state import constructor_arguments
from tasks.judge.outputs import OutputRefusedError, flattened


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
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_value_comes_out_as_it_went_in(value: object) -> None:
    assert carried(value) == value


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
        (print, "builtin"),
        (torch.eye(3).to_sparse(), "sparse"),
        (list(range(100_000)), "make long lists tensors"),
    ],
    ids=["object", "set", "function", "sparse tensor", "long list"],
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
    [ONE.as_subclass(Lazy), torch.eye(2).to_sparse(), ONE.to("meta"), "text", [[[object()]]]],
    ids=["subclass", "sparse", "meta", "text", "object"],
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
