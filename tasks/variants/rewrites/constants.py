"""Numbers that become tensors on a device: filled in there instead of copied, which the host waits for."""

import libcst as cst

from tasks.variants.names import walk
from tasks.variants.rewrites.reading import dotted_name

_OPTIONS = {"device", "dtype"}


def with_constants_filled(program: cst.Module) -> cst.Module:
    """The program with `torch.full((), 0.5, device=d)` for `torch.tensor(0.5, device=d)`, whose copy no graph can hold.

    Only for numbers that are written out, and for what is computed from such.
    """
    while call := next((node for node in walk(program) if isinstance(node, cst.Call) and _is_constant(node)), None):
        empty, function = cst.Arg(cst.Tuple([])), cst.Attribute(cst.Name("torch"), cst.Name("full"))
        changed = program.deep_replace(call, call.with_changes(func=function, args=[empty, *call.args]))
        assert isinstance(changed, cst.Module)
        program = changed
    return program


def _is_constant(call: cst.Call) -> bool:
    if dotted_name(call.func) != "torch.tensor" or not call.args:
        return False
    number, *options = call.args
    names = {each.keyword.value for each in options if each.keyword}
    is_known = len(names) == len(options) and "device" in names <= _OPTIONS
    return is_known and number.keyword is None and not number.star and _is_number(number.value)


def _is_number(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus | cst.Plus) and _is_number(node.expression)
    return isinstance(node, cst.Integer | cst.Float)
