"""Numbers that become tensors on a device: filled in there instead of copied, which the host waits for."""

import operator

import libcst as cst

from tasks.variants.names import walk
from tasks.variants.rewrites.reading import dotted_name

_OPTIONS = {"device", "dtype"}
_OPERATIONS = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
}
_LARGEST, _LARGEST_OF_HALF = 3e38, 65504.0
"""Of what float32 and float16 hold: beyond, `torch.full` fails where `torch.tensor` makes infinity."""


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
    if not is_known or number.keyword is not None or number.star:
        return False
    value = _value(number.value)
    return value is not None and abs(value) <= (_LARGEST_OF_HALF if "dtype" in names else _LARGEST)


def _value(node: cst.BaseExpression) -> float | None:
    """What a number, or a sum, product or quotient of numbers comes to; None for everything else."""
    if isinstance(node, cst.Integer | cst.Float):
        return float(node.evaluated_value) if node.evaluated_value <= _LARGEST else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = _value(node.expression)
        return None if value is None else -value
    if not isinstance(node, cst.BinaryOperation) or type(node.operator) not in _OPERATIONS:
        return None
    left, right = _value(node.left), _value(node.right)
    if left is None or right is None or (right == 0 and isinstance(node.operator, cst.Divide)):
        return None
    return _OPERATIONS[type(node.operator)](left, right)
