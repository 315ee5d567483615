"""Kernels in C for forwards that unpack, check what they are given, or have arguments that may be left out."""

import shutil

import pytest
import torch

from tasks.variants.rewrites.dispatch import call_losses_directly
from tasks.variants.rewrites.kernel import cumulation_in_c, elementwise_in_c, recurrence_in_c, reduction_in_c
from tasks.variants.rewriting import Rewrite
from tests.program_builders import MATRIX, MOVING_AVERAGE, defined, problem, ready, rewritten

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the kernels, and is not installed")

CHAIN = "return torch.tanh(x * 2.0) / 3.0"
TWO = f"{MATRIX}, {MATRIX}"
HALVES = "return a * torch.sigmoid(b)"
FORMS = {
    "sizes": (elementwise_in_c, problem("n, dim = x.shape\nreturn torch.tanh(x) * dim / n", MATRIX)),
    "sizes by a method": (elementwise_in_c, problem("n, dim = x.size()\nreturn torch.tanh(x) * dim / n", MATRIX)),
    "sizes in a list": (elementwise_in_c, problem("[n, dim] = x.shape\nreturn torch.tanh(x) * dim / n", MATRIX)),
    "halves": (elementwise_in_c, problem(f"a, b = x.chunk(2, dim=1)\n{HALVES}", "torch.randn(8, 12)")),
    "halves in a call": (elementwise_in_c, problem(f"a, b = torch.chunk(x, 2, -1)\n{HALVES}", "torch.randn(8, 12)")),
    "pieces": (elementwise_in_c, problem(f"a, b, c = x.split(3, dim=1)\n{HALVES}", "torch.randn(8, 8)")),
    "uneven pieces": (elementwise_in_c, problem("a, b = x.split([4, 1], 1)\nreturn a * 2.0 + b", "torch.randn(8, 5)")),
    "slices": (elementwise_in_c, problem(f"a, b = x.unbind(1)\n{HALVES}", "torch.randn(8, 2, 12)")),
    "slices of the first": (elementwise_in_c, problem(f"a, b = x\n{HALVES}", "torch.randn(2, 12)")),
    "a part by its number": (
        elementwise_in_c,
        problem("return torch.tanh(x.chunk(2, dim=1)[1]) * 2.0", "torch.randn(8, 12)"),
    ),
    "a pair of an extremum": (
        reduction_in_c,
        problem("top, place = x.max(dim=1, keepdim=True)\nreturn torch.softmax(x - top, dim=1)", MATRIX),
    ),
    "names given anew": (
        elementwise_in_c,
        problem("_, _, _ = x.shape\n_, x = x.unbind(1)\nx = x + 0.5\nreturn x.tanh() / 3.0", "torch.randn(8, 2, 5)"),
    ),
    "names exchanged": (
        elementwise_in_c,
        problem("x, y = y, x\nreturn torch.tanh(x) / 3.0 - y", TWO, arguments="x, y"),
    ),
    "values one each": (
        elementwise_in_c,
        problem("a, b = torch.tanh(x), x * 2.0\nreturn a / 3.0 - b", MATRIX),
    ),
    "a cumulative sum": (
        cumulation_in_c,
        problem("n, m = x.shape\nx = torch.cumsum(x * 2.0, 1)\nreturn x / m", MATRIX),
    ),
    "a recurrence": (
        recurrence_in_c,
        problem(
            "b, length, d = x.shape\nassert length > 0\n" + MOVING_AVERAGE.replace("x.shape[1]", "length").lstrip(),
            "torch.randn(4, 9, 17)",
        ),
    ),
    "a recurrence whose last state is taken from all": (
        recurrence_in_c,
        problem(MOVING_AVERAGE.replace("return out", "h = out[:, -1:]\nreturn out * h"), "torch.randn(4, 9, 17)"),
    ),
    "a recurrence whose values start one each": (
        recurrence_in_c,
        problem(MOVING_AVERAGE.replace("h = ", "h, out = ", 1).replace("\nout = []", ", []"), "torch.randn(4, 9, 17)"),
    ),
    "an assertion": (elementwise_in_c, problem(f"assert x.dim() == 2, f'{{x.shape}}'\n{CHAIN}", MATRIX)),
    "an assertion between": (
        elementwise_in_c,
        problem("y = x.t()\nassert y.is_floating_point()\nx = y + 1.0\nassert x.ndim == 2\n" + CHAIN, MATRIX),
    ),
    "an error that may be raised": (
        elementwise_in_c,
        problem(f"if x.dim() != 2:\n    raise ValueError('a matrix is needed')\n{CHAIN}", MATRIX),
    ),
    "an argument not given": (elementwise_in_c, problem(CHAIN, MATRIX, arguments="x, mask=None")),
    "a number not given": (
        elementwise_in_c,
        problem("return torch.tanh(x * scale) / 3.0", MATRIX, arguments="x, scale=0.5"),
    ),
    "a dimension not given": (
        reduction_in_c,
        problem("return torch.softmax(x * 2.0, dim)", MATRIX, arguments="x, dim=-1"),
    ),
    "arguments by name alone": (
        elementwise_in_c,
        problem("return torch.tanh(x * scale) / 3.0", MATRIX, arguments="x, *, scale=-0.5, mask=None"),
    ),
    "an argument by position alone": (
        elementwise_in_c,
        problem("return torch.tanh(x * y) / 3.0", TWO, arguments="x, /, y"),
    ),
    "inputs by name": (
        elementwise_in_c,
        problem("return torch.tanh(x * y) / 3.0", TWO, arguments="x, y").replace(
            f"return [{TWO}]", f"return {{'y': {MATRIX}, 'x': {MATRIX}}}"
        ),
    ),
    "an argument for which there is one": (
        elementwise_in_c,
        problem("if y is None:\n    y = torch.zeros_like(x)\nreturn torch.tanh(x * y)", TWO, arguments="x, y=None"),
    ),
    "an argument that is None": (
        elementwise_in_c,
        problem("if y is not None:\n    x = x @ y\n" + CHAIN, f"{MATRIX}, None", arguments="x, y"),
    ),
    "an argument that is None by default": (
        elementwise_in_c,
        problem(
            "if y is None:\n    y = x + 1.0\nelse:\n    y = y.cos_()\nreturn torch.tanh(x * y)",
            MATRIX,
            arguments="x, y=None",
        ),
    ),
    "one of two returns": (
        elementwise_in_c,
        problem(f"if y is None:\n    {CHAIN}\nreturn x @ y", MATRIX, arguments="x, y=None"),
    ),
}


@needs_gcc
@pytest.mark.parametrize(("rewrite", "source"), FORMS.values(), ids=[name.replace(" ", "-") for name in FORMS])
def test_a_forward_has_a_kernel_whichever_way_it_is_written(rewrite: Rewrite, source: str) -> None:
    candidate = rewritten(source, rewrite)
    assert candidate is not None
    model, reference, inputs = ready(source, defined(candidate))
    given = {"args": (), "kwargs": inputs} if isinstance(inputs, dict) else {"args": inputs, "kwargs": {}}
    expected = reference(*given["args"], **given["kwargs"])
    torch.testing.assert_close(model(*given["args"], **given["kwargs"]), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("rewrite", "source"),
    [
        pytest.param(
            elementwise_in_c, problem("self.n, dim = x.shape\nreturn torch.tanh(x) / dim", MATRIX), id="an attribute"
        ),
        pytest.param(elementwise_in_c, problem("x[0], n = x.shape\nreturn torch.tanh(x) / n", MATRIX), id="an element"),
        pytest.param(
            elementwise_in_c, problem("n, *rest = x.shape\nreturn torch.tanh(x) / n", MATRIX), id="all the others"
        ),
        pytest.param(
            elementwise_in_c, problem("top, place = x.max(dim=1)\nreturn place * 2.0 + 1.0", MATRIX), id="places"
        ),
        pytest.param(
            elementwise_in_c, problem("return x.max(dim=1)[1] * 2.0 + 1.0", MATRIX), id="places by their number"
        ),
        pytest.param(
            elementwise_in_c,
            problem("a, b = x.chunk(2)\nreturn a * 2.0 + b", "torch.randint(0, 9, (8, 4))"),
            id="halves of integers",
        ),
        pytest.param(
            cumulation_in_c, problem("a, b = torch.cumsum(x, 1)\nreturn a * b", "torch.randn(2, 9)"), id="rows of sums"
        ),
        pytest.param(elementwise_in_c, problem(CHAIN, TWO), id="an argument too many"),
        pytest.param(elementwise_in_c, problem(CHAIN, MATRIX, arguments="x, y"), id="an argument too few"),
        pytest.param(
            elementwise_in_c,
            problem("if y is None:\n    x = x + 1.0\n" + CHAIN, f"{MATRIX}, torch.load('y.pt')", arguments="x, y"),
            id="an argument that may be None",
        ),
        pytest.param(
            elementwise_in_c,
            problem("y = x.grad\nif y is None:\n    x = x + 1.0\n" + CHAIN, MATRIX, arguments="x, y=None"),
            id="an argument given anew",
        ),
        pytest.param(
            recurrence_in_c,
            problem(MOVING_AVERAGE.replace("out = []", "n = h.shape[0]\nout = []"), MATRIX),
            id="a state that is read before",
        ),
        pytest.param(
            recurrence_in_c,
            problem(MOVING_AVERAGE.replace("return out", "return out + h[:, None]"), "torch.randn(4, 9, 17)"),
            id="a state that is read after",
        ),
        pytest.param(
            recurrence_in_c,
            problem(MOVING_AVERAGE.replace("return out", "return out * t"), "torch.randn(4, 9, 17)"),
            id="a counter that is read after",
        ),
        pytest.param(
            elementwise_in_c,
            problem("x = x * 2.0\nassert (x := x + 1.0).dim() == 2\nreturn torch.tanh(x) / 3.0", MATRIX),
            id="a name that a check gives",
        ),
        pytest.param(
            recurrence_in_c,
            problem(MOVING_AVERAGE.replace("torch.zeros_like(x[:, 0])", "x[:, :1]"), "torch.randn(4, 9, 17)"),
            id="a state that starts as something else",
        ),
        pytest.param(
            call_losses_directly,
            problem("x, z = x.chunk(2, 1)\nreturn F.mse_loss(x, y)", TWO, arguments="x, y"),
            id="a shape that is another one later",
        ),
    ],
)
def test_what_is_unpacked_or_left_out_is_not_taken_for_something_else(rewrite: Rewrite, source: str) -> None:
    assert rewritten(source, rewrite) is None


@needs_gcc
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_number_by_default_is_read_at_every_call(scale: float) -> None:
    source = problem("return torch.tanh(x * scale) / 3.0", MATRIX, arguments="x, scale=0.5")
    model, reference, inputs = ready(source, defined(rewritten(source, elementwise_in_c) or ""))
    torch.testing.assert_close(model(*inputs, scale=scale), reference(*inputs, scale=scale))


@needs_gcc
def test_a_kernel_for_no_mask_refuses_one() -> None:
    source = problem(f"if mask is not None:\n    x = x * mask\n{CHAIN}", MATRIX, arguments="x, mask=None")
    model, _, inputs = ready(source, defined(rewritten(source, elementwise_in_c) or ""))
    with pytest.raises(AssertionError):
        model(*inputs, mask=inputs[0])


@needs_gcc
def test_a_check_is_made_with_a_kernel_too() -> None:
    source = problem(f"assert x.min() > 0\n{CHAIN}", MATRIX)
    model, _, inputs = ready(source, defined(rewritten(source, elementwise_in_c) or ""))
    with pytest.raises(AssertionError):
        model(*inputs)


@pytest.mark.parametrize("again", ["h = x[:, 0] * 0.5", "h, scale = x[:, 0] * 0.5, 2.0", "h, _ = x.mean(1), 1"])
def test_a_state_that_is_given_another_value_before_the_loop_does_not_start_as_zeros(again: str) -> None:
    forward = MOVING_AVERAGE.replace("out = []", f"{again}\nout = []")
    assert rewritten(problem(forward, "torch.randn(4, 9, 17)"), recurrence_in_c) is None


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("inputs = [torch.randn(8, 8)]\n    inputs.append(0)\n    return inputs", id="appended"),
        pytest.param("inputs = [torch.randn(8, 8)]\n    inputs += [0]\n    return inputs", id="added"),
        pytest.param("inputs = [torch.randn(8, 8)]\n    _ = inputs.append(0)\n    return inputs", id="within a value"),
        pytest.param("return {'x': torch.randn(8, 8), **{'dim': 0}}", id="by a mapping"),
        pytest.param("rest = [0]\n    inputs = [torch.randn(8, 8), *rest]\n    return inputs", id="unpacked"),
    ],
)
def test_an_argument_that_may_be_given_is_not_taken_for_its_default(lines: str) -> None:
    plain = problem("return torch.softmax(x * 2.0, dim)", "torch.randn(8, 8)", arguments="x, dim=1")
    given = plain.replace("return [torch.randn(8, 8)]", lines)
    assert given != plain
    assert rewritten(plain, reduction_in_c) is not None
    assert rewritten(given, reduction_in_c) is None


def test_a_name_of_an_argument_that_is_computed_is_that_argument() -> None:
    plain = problem("return torch.softmax(x * 2.0, dim)", "torch.randn(8, 8)", arguments="x, dim=1")
    first, named = (
        plain.replace("return [torch.randn(8, 8)]", lines)
        for lines in ("return [torch.randn(8, 8), 0]", "name = 'dim'\n    return {'x': torch.randn(8, 8), name: 0}")
    )
    candidates = [rewritten(source, reduction_in_c) or "" for source in (first, named, plain)]
    assert candidates[0] == candidates[1] != candidates[2]


@needs_gcc
def test_a_function_within_a_line_keeps_its_own_names() -> None:
    checked = "y = x.sum(0)\n{}\nassert (lambda x: x.dim() == 1)(y)\nreturn torch.tanh(z) / 3.0"
    assert rewritten(problem(checked.format("x = x * 2.0\nz = x"), MATRIX), elementwise_in_c) is None
    source = problem(checked.format("z = x * 2.0"), MATRIX)
    model, reference, inputs = ready(source, defined(rewritten(source, elementwise_in_c) or ""))
    torch.testing.assert_close(model(*inputs), reference(*inputs))
