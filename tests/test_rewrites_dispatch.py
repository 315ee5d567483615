"""Forwards that call operators where they called layers: the same values from the same parameters, in fewer words."""

import pytest
import torch
from torch import nn

from tasks.variants.rewrites.dispatch import call_layers_directly, call_losses_directly
from tests.program_builders import defined, outputs, problem, ready, recipes_of, rewritten

ROWS, SIGNALS, PICTURES, VOLUMES = "5, 4", "2, 4, 11", "2, 4, 9, 8", "2, 4, 7, 6, 5"


def with_layer(layer: str, inputs: str, forward: str = "return self.layer(x)") -> str:
    return problem(forward, f"torch.randn({inputs})", init=f"self.layer = {layer}", init_arguments="4")


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        ("nn.Linear(size0, 3)", ROWS),
        ("nn.Linear(size0, 3, bias=False)", "2, 5, 4"),
        ("nn.LayerNorm(size0)", ROWS),
        ("nn.LayerNorm((size0, 11), eps=0.1, elementwise_affine=False)", SIGNALS),
        ("nn.GroupNorm(2, size0, eps=0.1)", PICTURES),
        ("nn.Conv1d(size0, 8, 3, stride=2, padding=1, dilation=2, groups=2)", SIGNALS),
        ("nn.Conv2d(size0, 8, (3, 1), bias=False, padding='same')", PICTURES),
        ("torch.nn.Conv3d(size0, 2, 3, 2, 1)", VOLUMES),
        ("nn.ConvTranspose1d(size0, 2, 3, 2, 1, 1)", SIGNALS),
        ("nn.ConvTranspose2d(size0, 8, (3, 2), stride=2, output_padding=1, groups=2, dilation=2)", PICTURES),
        ("nn.ConvTranspose3d(size0, 2, 3, bias=False)", VOLUMES),
        ("nn.MaxPool1d(3, 2, 1, 2, ceil_mode=True)", "2, 4, 13"),
        ("nn.MaxPool2d((3, 2), padding=1)", PICTURES),
        ("nn.MaxPool3d(2, stride=1)", VOLUMES),
        ("nn.AvgPool1d(3, 2, 1, ceil_mode=True)", SIGNALS),
        ("nn.AvgPool2d(3, 2, 1, count_include_pad=False, divisor_override=5)", PICTURES),
        ("nn.AvgPool3d(3, padding=1)", VOLUMES),
    ],
    ids=lambda value: value.split("(")[0].removeprefix("nn.") if "(" in value else "",
)
def test_a_layer_that_is_called_as_an_operator_computes_the_same_to_the_bit(layer: str, inputs: str) -> None:
    source = with_layer(layer, inputs)
    candidate = rewritten(source, call_layers_directly)
    assert candidate is not None
    assert "self.layer(" not in candidate
    expected, found = outputs(source, candidate)
    assert torch.equal(found, expected)


def test_parameters_are_read_at_every_call_and_gradients_reach_them() -> None:
    source = with_layer("nn.Linear(size0, 3)", ROWS)
    model, reference, (x,) = ready(source, defined(rewritten(source, call_layers_directly) or ""))
    for each in (model, reference):
        with torch.no_grad():
            each.layer.weight.mul_(2.0)
        each.layer.bias = nn.Parameter(torch.ones(3))
    assert torch.equal(model(x), reference(x))
    model(x).sum().backward()
    assert model.layer.weight.grad is not None


def test_a_layer_that_is_called_twice_and_within_another_call_is_read_once() -> None:
    forward = "x = self.layer(torch.relu(self.layer(x)))\nreturn x + self.layer(x)"
    source = with_layer("nn.Linear(size0, 4)", ROWS, forward)
    candidate = rewritten(source, call_layers_directly)
    assert candidate is not None
    assert candidate.count('self._modules["layer"]') == 1
    assert candidate.count("F.linear(") == 3
    expected, found = outputs(source, candidate)
    assert torch.equal(found, expected)


def test_a_compiler_sees_one_graph() -> None:
    source = with_layer("nn.Conv2d(size0, 8, 3)", PICTURES)
    model, reference, (x,) = ready(source, defined(rewritten(source, call_layers_directly) or ""))
    compiled = torch.compile(type(model).forward, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(model, x), reference(x))


@pytest.mark.parametrize(
    ("layer", "inputs", "forward"),
    [
        ("nn.Conv2d(size0, 8, 3, padding=1, padding_mode='circular')", PICTURES, "return self.layer(x)"),
        ("nn.Conv2d(size0, 8, 3, 1, 1, 1, 1, True, 'circular')", PICTURES, "return self.layer(x)"),
        (
            "nn.Conv2d(*(size0, 8, 3, 1, 1, 1, 1, True), **{'padding_mode': 'reflect'})",
            PICTURES,
            "return self.layer(x)",
        ),
        ("nn.MaxPool2d(2, return_indices=True)", PICTURES, "return self.layer(x)[0]"),
        ("nn.MaxPool2d(2, 2, 0, 1, True)", PICTURES, "return self.layer(x)[0]"),
        ("nn.ConvTranspose2d(size0, 8, 3, stride=2)", PICTURES, "return self.layer(x, (19, 17))"),
        ("nn.BatchNorm2d(size0)", PICTURES, "return self.layer(x)"),
        ("nn.Dropout(0.5)", PICTURES, "return self.layer(x)"),
        ("torch.nn.utils.parametrizations.weight_norm(nn.Linear(size0, 3))", ROWS, "return self.layer(x)"),
        ("nn.Linear(size0, 3)", ROWS, "layer_own = x\nreturn self.layer(layer_own)"),
    ],
    ids=[
        "a padding of its own",
        "that in its place",
        "settings from elsewhere",
        "indices too",
        "those in their place",
        "a size for the output",
        "statistics that move",
        "chance",
        "computed weights",
        "a name that is taken",
    ],
)
def test_what_is_no_single_operator_stays_a_layer(layer: str, inputs: str, forward: str) -> None:
    source = with_layer(layer, inputs, forward)
    defined(source)  # or the case would show nothing
    assert rewritten(source, call_layers_directly) is None


@pytest.mark.parametrize(
    "line",
    [
        "self.layer.register_forward_hook(print)",
        "self.layer = nn.Identity()",
        "for each in self.children(): each.register_forward_hook(print)",
        "self.apply(nn.utils.parametrizations.weight_norm)",
        "setattr(self, 'layer', nn.Identity())",
        "self.add_module('layer', nn.Identity())",
        "self._modules['layer'] = nn.Identity()",
        "alias = self.layer",
        "nn.utils.spectral_norm(self.layer)",
        "finish(self)",
        "self.layer.to(torch.float64)",
    ],
)
def test_a_layer_with_which_the_constructor_does_more_than_make_it_stays(line: str) -> None:
    source = with_layer("nn.Linear(size0, 3)", ROWS)
    changed = source.replace("self.layer = nn.Linear(size0, 3)", f"self.layer = nn.Linear(size0, 3)\n        {line}")
    assert line in changed
    assert rewritten(changed, call_layers_directly) is None


def test_a_layer_of_a_class_that_inherits_or_that_forward_replaces_stays() -> None:
    source = with_layer("nn.Linear(size0, 3)", ROWS)
    inherited = source.replace("class Model(nn.Module)", "class Model(Base)")
    replaced = source.replace("        return", "        setattr(self, 'layer', nn.Linear(4, 5))\n        return")
    for changed in (inherited, replaced):
        assert changed != source
        assert rewritten(changed, call_layers_directly) is None


def test_what_initialises_a_layers_weights_is_no_reason_to_leave_it() -> None:
    init = (
        "self.layer = nn.Linear(size0, 3)\nnn.init.zeros_(self.layer.bias)\nself.layer.weight.data.mul_(float(size0))"
    )
    source = problem("return self.layer(x)", f"torch.randn({ROWS})", init=init, init_arguments="4")
    candidate = rewritten(source, call_layers_directly)
    assert candidate is not None
    assert torch.equal(*outputs(source, candidate))


def test_names_of_modules_that_forward_has_for_itself_leave_everything_as_it_is() -> None:
    source = with_layer("nn.Linear(size0, 3)", ROWS)
    for name in ("F", "torch"):
        changed = source.replace("self, x", f"self, {name}").replace("self.layer(x)", f"self.layer({name})")
        assert f"def forward(self, {name})" in changed
        assert rewritten(changed, call_layers_directly) is None
    assert rewritten(source.replace("        return", "        import torch\n        return"), call_layers_directly)


@pytest.mark.parametrize(
    ("loss", "operator"),
    [
        ("torch.mean((x - y) ** 2)", "mse_loss"),
        ("((x - y) * (x - y)).mean()", "mse_loss"),
        ("F.mse_loss(x, y)", "mse_loss"),
        ("torch.nn.functional.smooth_l1_loss(x, y)", "smooth_l1_loss"),
    ],
)
def test_a_mean_loss_of_equal_shapes_is_one_operator(loss: str, operator: str) -> None:
    source = problem(f"return {loss}", "3.0 * torch.randn(6, *(5,)), torch.randn(6, 5)", arguments="x, y")
    candidate = rewritten(source, call_losses_directly)
    assert candidate is not None
    assert f"return torch._C._nn.{operator}(" in candidate
    torch.testing.assert_close(*outputs(source, candidate))


def test_a_cross_entropy_is_one_operator() -> None:
    source = problem("return F.cross_entropy(x, y)", "torch.randn(6, 5), torch.randint(0, 5, (6,))", arguments="x, y")
    candidate = rewritten(source, call_losses_directly)
    assert candidate is not None
    assert "return torch._C._nn.cross_entropy_loss(x, y, None, 1)" in candidate
    expected, found = outputs(source, candidate)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("loss", "inputs"),
    [
        ("F.mse_loss(x, y, reduction='sum')", "torch.randn(6, 5), torch.randn(6, 5)"),
        ("F.smooth_l1_loss(x, y, beta=0.5)", "torch.randn(6, 5), torch.randn(6, 5)"),
        ("F.cross_entropy(x, y, label_smoothing=0.1)", "torch.randn(6, 5), torch.rand(6, 5)"),
        ("torch.mean((x - y) ** 2, dim=1)", "torch.randn(6, 5), torch.randn(6, 5)"),
        ("torch.mean((x - y) ** 2)", "torch.randn(6, 5), torch.randn(5)"),
        ("torch.mean((x - y) ** 2)", "torch.randn(6, 5), torch.randint(0, 2, (6, 5))"),
    ],
    ids=["a sum", "another bend", "smooth labels", "one for each row", "shapes that differ", "kinds that differ"],
)
def test_another_loss_stays(loss: str, inputs: str) -> None:
    assert rewritten(problem(f"return {loss}", inputs, arguments="x, y"), call_losses_directly) is None


def test_what_fits_no_kernel_is_called_directly_before_it_is_compiled_or_captured() -> None:
    (first, second, third, *_) = recipes_of(with_layer("nn.Conv1d(size0, 8, 3)", SIGNALS))
    assert first == ("call_layers_directly", "benchmark_convolutions", "replay_as_graph")
    assert second == ("call_layers_directly", "compile_and_replay")
    assert third == ("call_layers_directly", "benchmark_convolutions")


def test_the_librarys_own_function_is_what_a_kernel_competes_with_and_comes_second() -> None:
    recipes = recipes_of(problem("return torch.max(x, dim=1)[0]", "torch.randn(70, 40)"))
    first, second, third, *_ = recipes
    assert first == ("call_amax", "reduction_in_triton", "compile_and_replay")
    assert "def plain0(x):\n    return torch.amax(x, dim=1)" in recipes[first]
    assert second == ("call_amax", "compile_and_replay")
    assert third == ("call_amax",)


def test_what_the_library_does_in_one_function_needs_no_kernel() -> None:
    recipes = recipes_of(problem("return x * torch.sigmoid(x)", "torch.randn(70, 40)"))
    assert next(iter(recipes)) == ("call_silu", "compile_and_replay")
    assert "return F.silu(x)" in recipes["call_silu",]


def test_extrema_of_which_the_places_are_not_wanted_are_found_without_them() -> None:
    for written in ("torch.max(x, dim=1)[0]", "x.max(1).values", "torch.max(x, 1, keepdim=True)[0]"):
        source = problem(f"return {written}", "torch.randn(7, 40)")
        text = recipes_of(source)["call_amax",]
        assert "torch.amax(" in text
        assert torch.equal(*outputs(source, text))
