"""Reads loops over the time steps of a tensor that append a state to a list, stacked in the end."""

import ast
import copy
from collections.abc import Sequence

from tasks.variants.kernels.calls import layer_called
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.nodes import Leaf, Node, Op, Unsupported
from tasks.variants.kernels.reader import Reader
from tasks.variants.kernels.scans import Scan
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.statements import is_check, names_assigned, names_stored
from tasks.variants.kernels.values import Layer, Shape, Tensor

# Layers that treat every time step alike, so that they may be applied to all of them at once.
_STEPWISE = ("Linear", "LayerNorm")


def recurrence(model: Model) -> Scan | None:
    """The recurrence of a forward that is a loop over dimension 1, or None where it is something else."""
    body = model.forward.body
    place = next((place for place, statement in enumerate(body) if isinstance(statement, ast.For)), None)
    others = [] if place is None else [*body[:place], *body[place + 1 :]]
    if place is None or place + 2 > len(body) or not all(map(_is_outside_loops, others)):
        return None
    loop = body[place]
    assert isinstance(loop, ast.For)
    shapes = Shapes(dict(model.shapes.values))
    for statement in body[:place]:
        if isinstance(statement, ast.Assign):
            shapes.bind(names_assigned(statement) or (), statement.value)
    initial, out_list, before = _starts(body[:place], shapes)
    appended = _appended(loop.body[-1], out_list)
    target = _stacked(body[place + 1], out_list)
    if appended is None or target is None or not all(map(_is_in_loop, loop.body[:-1])):
        return None
    try:
        full, updates = _turn(loop, initial, shapes)
    except Unsupported:
        return None
    after = tuple(ast.unparse(statement) for statement in body[place + 2 :])
    gone = {*initial, out_list}  # which the lines that stay must not read or give another value
    if appended not in dict(updates) or (_needed(before) | _stored(before)) & gone:
        return None
    if _needed(after) & (gone | names_stored(loop)) - {target}:
        return None
    starts = tuple((name, start) for name, start in initial.items() if name in dict(updates))
    return Scan(
        full=full,
        dim=1,
        backwards=False,
        initial=starts,
        updates=updates,
        result=appended,
        kind="float",
        before=tuple(before),
        target=target,
        after=after,
    )


def _is_outside_loops(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) or is_check(statement) or names_assigned(statement) is not None


def _is_in_loop(statement: ast.stmt) -> bool:
    return len(names_assigned(statement) or ()) == 1


def _starts(statements: Sequence[ast.stmt], shapes: Shapes) -> tuple[dict[str, float], str, list[str]]:
    """States that start as a number, the name of the list, and the other lines before the loop."""
    initial, out_list, others = {}, "", []
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                out_list = name
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(attr="zeros_like" | "zeros" | "new_zeros")),
            ):
                initial[name] = 0.0
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="ones_like" | "ones"))):
                initial[name] = 1.0
            case _:
                others.append(ast.unparse(statement))
    return initial, out_list, others


def _needed(lines: Sequence[str]) -> set[str]:
    """Names that lines read before they give them a value."""
    needed, given = set[str](), set[str]()
    for line in lines:
        tree = ast.parse(line)
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        needed |= read - given
        given |= names_stored(tree)
    return needed


def _stored(lines: Sequence[str]) -> set[str]:
    return names_stored(ast.parse("\n".join(lines)))


def _appended(statement: ast.stmt, out_list: str) -> str | None:
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[ast.Name(id=state)])
        ) if name == out_list:
            return state
    return None


def _stacked(statement: ast.stmt, out_list: str) -> str | None:
    """The name under which the list is stacked along dimension 1."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(func=ast.Attribute(attr="stack")) as call):
            given = [ast.unparse(part) for part in (*call.args, *(word.value for word in call.keywords))]
            return target if given == [out_list, "1"] else None
    return None


def _turn(loop: ast.For, initial: dict[str, float], shapes: Shapes) -> tuple[Shape, tuple[tuple[str, Node], ...]]:
    """The full shape, and the assignments of one turn.

    Raises:
        Unsupported: if a turn is more than elementwise, or the loop is not over all time steps.
    """
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[length])):
            steps = _Steps(counter, shapes)
        case _:
            raise Unsupported("another kind of loop")
    body = [steps.visit(copy.deepcopy(statement)) for statement in loop.body[:-1]]
    full = steps.full
    if full is None or shapes.of(length) != full[1]:
        raise Unsupported("a loop that is not over all time steps of one tensor")
    known = Shapes({**shapes.values, **{name: Tensor((full[0], *full[2:])) for name in steps.leaves}})
    nodes: dict[str, Node] = dict(steps.leaves)
    one_turn = (full[0], 1, *full[2:])
    nodes |= {name: Op(name, (), one_turn) for name in initial}
    updates = []
    carried = {statement.targets[0].id for statement in body}
    for statement in body:
        name = statement.targets[0].id
        if any(isinstance(part, ast.Name) and part.id in carried - nodes.keys() for part in ast.walk(statement.value)):
            raise Unsupported("a state that starts as something else")
        known.values.update({state: Tensor(one_turn) for state in initial})
        updates.append((name, Reader(known, nodes).read(statement.value)))
        nodes[name] = Op(name, (), one_turn)
        known.values[name] = Tensor(one_turn)
    return full, tuple(updates)


class _Steps(ast.NodeTransformer):
    """Replaces x[:, t], and self.linear(x[:, t]), by names that stand for one time step."""

    def __init__(self, counter: str, shapes: Shapes) -> None:
        self.counter = counter
        self.shapes = shapes
        self.leaves: dict[str, Leaf] = {}
        self.full: Shape | None = None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[ast.Slice(), ast.Name(id=index)])):
                shape = self.shapes.shape(node.value)
                if index == self.counter and ast.unparse(node) == f"{name}[:, {index}]" and shape:
                    return self._leaf(name, shape)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = layer_called(node)
        layer = self.shapes.values.get(name) if name else None
        match layer, node.args:
            case Layer(kind=kind), [ast.Name(id=step)] if kind in _STEPWISE and step in self.leaves:
                given = self.leaves[step]
                whole = Shapes({**self.shapes.values, "x": Tensor(given.shape)})
                shape = whole.shape(ast.parse(f"{name}(x)", mode="eval").body)
                if shape and len(shape) > 2:
                    return self._leaf(f"{name}({given.text})", shape)
        return node

    def _leaf(self, text: str, shape: Shape) -> ast.expr:
        if self.full not in (None, shape):
            raise Unsupported("tensors of different shapes")
        self.full = shape
        name = f"step{len(self.leaves)}"
        self.leaves[name] = Leaf(text, shape)
        return ast.Name(name)
