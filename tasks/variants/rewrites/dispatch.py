"""Rewrites for forwards of which Python takes longer to say what is to be done than the device takes to do it.

A layer that is called asks for its hooks, for its parameters by name, and passes through two or three functions before
it comes to the operator; a loss of torch.nn.functional looks for subclasses and broadcasts what has one shape. On a
small operator that is a tenth of the time and more.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from tasks.variants.kernels.model import read_model
from tasks.variants.kernels.values import Layer, Tensor
from tasks.variants.names import walk
from tasks.variants.rewrites.forward import find_method, parse_statements, statements_of, with_statements
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.reading import dotted_name
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

DISPATCH = "dispatch"
_WEIGHTS = '{own}["weight"], {own}["bias"]'
_CONVOLUTION = f"{{x}}, {_WEIGHTS}, {{layer}}.stride, {{layer}}.padding"
_POOLING = "{x}, {layer}.kernel_size, {layer}.stride, {layer}.padding"


@dataclass(frozen=True, slots=True)
class _Direct:
    """What a layer's forward comes to in the end."""

    text: str
    most_arguments: int = 8
    """Positional ones of its constructor; those after them make it another operator."""
    never: tuple[str, ...] = ()
    """Keywords of its constructor that do so as well."""


_DIRECT = {
    "Linear": _Direct(f"F.linear({{x}}, {_WEIGHTS})"),
    "LayerNorm": _Direct(f"torch.layer_norm({{x}}, {{layer}}.normalized_shape, {_WEIGHTS}, {{layer}}.eps)"),
    "GroupNorm": _Direct(f"torch.group_norm({{x}}, {{layer}}.num_groups, {_WEIGHTS}, {{layer}}.eps)"),
    "AvgPool1d": _Direct(f"torch.avg_pool1d({_POOLING}, {{layer}}.ceil_mode, {{layer}}.count_include_pad)"),
    **{
        f"AvgPool{dims}d": _Direct(
            f"F.avg_pool{dims}d({_POOLING}, {{layer}}.ceil_mode, {{layer}}.count_include_pad, "
            "{layer}.divisor_override)"
        )
        for dims in (2, 3)
    },
    **{
        f"MaxPool{dims}d": _Direct(
            f"torch.max_pool{dims}d({_POOLING}, {{layer}}.dilation, {{layer}}.ceil_mode)", 4, ("return_indices",)
        )
        for dims in (1, 2, 3)
    },
    **{
        f"Conv{dims}d": _Direct(
            f"torch.conv{dims}d({_CONVOLUTION}, {{layer}}.dilation, {{layer}}.groups)", 8, ("padding_mode",)
        )
        for dims in (1, 2, 3)
    },
    **{
        f"ConvTranspose{dims}d": _Direct(
            f"torch.conv_transpose{dims}d({_CONVOLUTION}, {{layer}}.output_padding, {{layer}}.groups, "
            "{layer}.dilation)",
            9,
            ("padding_mode",),
        )
        for dims in (1, 2, 3)
    },
}


@rewrite(DISPATCH)
def call_layers_directly(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Convolutions, linear layers, norms and poolings are called as the operators that they are.

    Their settings and parameters are read from them at every call. Assumes that they stay of the class that the
    constructor gives them, that nobody hooks them, and that their parameters are theirs rather than computed.
    """
    forward, model = find_method(program, "forward"), read_model(text_of(program))
    if forward is None or model is None:
        return None
    calls: dict[cst.CSTNode, tuple[str, _Direct]] = {}
    for node in walk(forward):
        match node:
            case cst.Call(func=func, args=[cst.Arg(keyword=None, star="")]):
                name = dotted_name(func) or ""
                layer = model.shapes.values.get(name)
                if name.count(".") == 1 and isinstance(layer, Layer) and (direct := _direct(layer)):
                    calls[node] = name.removeprefix("self."), direct
    taken = {node.value for node in walk(program) if isinstance(node, cst.Name)}
    names = {name: f"{name}_layer" for name, _ in calls.values()}
    owned = {name: f"{name}_own" for name, direct in calls.values() if "{own}" in direct.text}
    if not calls or taken & {*names.values(), *owned.values()}:
        return None
    before = "".join(f'{local} = self._modules["{name}"]\n' for name, local in names.items())
    before += "".join(f"{local} = {names[name]}._parameters\n" for name, local in owned.items())
    changed = forward.visit(_Caller(calls, names, owned))
    assert isinstance(changed, cst.FunctionDef)
    return with_statements(program, forward, [*parse_statements(before), *statements_of(changed)])


@rewrite(DISPATCH)
def call_losses_directly(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Mean losses are called as operators. Assumes equal shapes but of the cross-entropy's targets."""
    operator = "torch._C._nn"  # where torch.nn.functional finds them; the 1 is for the mean
    rules = [
        rule("torch.mean((_a - _b) ** 2)", f"{operator}.mse_loss(_a, _b, 1)", when=_same_shape),
        rule("F.mse_loss(_a, _b)", f"{operator}.mse_loss(_a, _b, 1)", when=_same_shape),
        rule("F.smooth_l1_loss(_a, _b)", f"{operator}.smooth_l1_loss(_a, _b, 1, 1.0)", when=_same_shape),
        rule("F.cross_entropy(_a, _b)", f"{operator}.cross_entropy_loss(_a, _b, None, 1)"),
    ]
    return replace_one(program, rng, rules)


def _same_shape(match: Match) -> bool:
    model = read_model(text_of(match.view.program))
    a, b = (model.shapes.values.get(match.holes[hole].head) if model else None for hole in ("_a", "_b"))
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a == b


def _direct(layer: Layer) -> _Direct | None:
    """What a layer is called as, where all that the constructor was given is known."""
    found = _DIRECT.get(layer.kind)
    keywords = {name for name, _ in layer.keywords}
    if found is None or None in layer.arguments or len(layer.arguments) > found.most_arguments:
        return None
    return None if keywords & {"", *found.never} else found


class _Caller(cst.CSTTransformer):
    """Puts operators where layers are called."""

    def __init__(
        self, calls: Mapping[cst.CSTNode, tuple[str, _Direct]], names: Mapping[str, str], owned: Mapping[str, str]
    ) -> None:
        self.calls, self.names, self.owned = calls, names, owned

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if original_node not in self.calls:
            return updated_node
        name, direct = self.calls[original_node]
        written = direct.text.format(x="given", layer=self.names[name], own=self.owned.get(name))
        call = cst.parse_expression(written)
        assert isinstance(call, cst.Call)
        return call.with_changes(args=[call.args[0].with_changes(value=updated_node.args[0].value), *call.args[1:]])
