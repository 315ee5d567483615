"""Rewrites for forwards of which Python takes longer to say what is to be done than the device takes to do it.

A layer that is called asks for its hooks, for its parameters by name, and passes through two or three functions before
it comes to the operator; a loss of torch.nn.functional looks for subclasses and broadcasts what has one shape.
"""

import ast
import random
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from tasks.variants.kernels.model import read_model
from tasks.variants.kernels.statements import names_stored
from tasks.variants.kernels.values import Layer, Tensor
from tasks.variants.names import walk, words
from tasks.variants.rewrites.forward import (
    find_method,
    parse_statements,
    shadows_imports,
    statements_of,
    with_statements,
)
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.reading import dotted_name
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewriting import ENTRY, rewrite
from tasks.variants.text import text_of

DISPATCH = "dispatch"
_REACHING = words("setattr delattr vars exec eval")
"""Functions that reach a layer without naming it."""
_REACHING_METHODS = words(
    "add_module register_module apply children modules named_children named_modules _modules __dict__ __setattr__ "
    "get_submodule set_submodule to half double float bfloat16 cuda cpu type compile load_state_dict _apply "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook"
)
"""Attributes of a module by which it reaches all of its layers."""
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
    "GroupNorm": _Direct(f"F.group_norm({{x}}, {{layer}}.num_groups, {_WEIGHTS}, {{layer}}.eps)"),
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
    """Convolutions, linear layers, layer and group norms, max and average poolings are called as their operators.

    Their settings and parameters are read from them at every call. Where the text of the class does more with a layer,
    or with all, than to make it, to call it and to read its attributes, it stays. Assumes that nobody else gives them
    another class, hooks, or parameters that are computed.
    """
    forward, model = find_method(program, "forward"), read_model(text_of(program))
    if forward is None or model is None or shadows_imports(forward):
        return None
    plain = _only_called(text_of(program))
    calls: dict[cst.CSTNode, tuple[str, _Direct]] = {}
    for node in walk(forward):
        match node:
            case cst.Call(func=func, args=[cst.Arg(keyword=None, star="")]):
                name = dotted_name(func) or ""
                layer = model.shapes.values.get(name)
                attribute = name.removeprefix("self.")
                if attribute in plain and isinstance(layer, Layer) and (direct := _direct(layer)):
                    calls[node] = attribute, direct
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
    names = [match.holes[hole].head for hole in ("_a", "_b")]
    if model is None or not names_stored(model.forward).isdisjoint(names):
        return False
    a, b = (model.shapes.values.get(name) for name in names)
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a == b


def _only_called(code: str) -> set[str]:
    """Attributes of ModelNew that its text does no more with than to assign them, call them and read theirs."""
    entry = next(each for each in ast.parse(code).body if isinstance(each, ast.ClassDef) and each.name == ENTRY)
    parents = {child: node for node in ast.walk(entry) for child in ast.iter_child_nodes(node)}
    found, handed_on = set[str](), set[str]()
    if [ast.unparse(base) for base in entry.bases] not in (["nn.Module"], ["torch.nn.Module"]):
        return found
    for node in ast.walk(entry):
        if not isinstance(node, ast.Name):
            continue
        own = parents[node]
        if node.id in _REACHING or (node.id == "self" and not _is_of_super(own) and not isinstance(own, ast.Attribute)):
            return set()
        if node.id == "self" and isinstance(own, ast.Attribute):
            if own.attr in _REACHING_METHODS:
                return set()
            (found if _is_plain_use(own, parents) else handed_on).add(own.attr)
    return {name for name in found - handed_on if not name.startswith("__")}  # which a class calls otherwise inside


def _is_of_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "super"


def _is_plain_use(node: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    match parents[node]:
        case ast.Assign(targets=[target]):
            return target is node
        case ast.Call(func=called):
            return called is node
        case ast.Attribute(ctx=ast.Load()) as attribute:  # not of what it can do, such as to take hooks
            match parents[attribute]:
                case ast.Call(func=called):
                    return called is not attribute
            return True
    return False


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
