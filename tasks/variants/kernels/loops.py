"""Reads loops that refine values elementwise turn by turn, such as a power series."""

import ast

from tasks.variants.kernels.nodes import Carried, Loop, Node, Op, Unsupported
from tasks.variants.kernels.reader import Reader
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.steps import Step
from tasks.variants.kernels.values import Tensor, broadcast, is_size


def read_loop(reader: Reader, step: Step) -> dict[str, Node]:
    """What a loop leaves in each name it binds.

    Raises:
        Unsupported: if it is not `for k in range(...)` with constant bounds around elementwise assignments.
    """
    loop = step.value
    assert isinstance(loop, ast.For)
    counter, bounds = _range(loop, reader)
    initial = {name: reader.read(ast.Name(step.names[name])) for name in step.bound if name in step.names}
    shape = broadcast((), *(node.shape for node in initial.values()))
    if shape is None:
        raise Unsupported("carried values that do not fit each other")
    inner = {name: reader.nodes[outer] for name, outer in step.names.items() if outer in reader.nodes}
    inner |= {name: Op(f"{name}_", (), shape) for name in step.bound}
    known = Shapes({**reader.shapes.values, **{name: reader.shapes.values.get(o) for name, o in step.names.items()}})
    known.values |= {name: Tensor(shape) for name in step.bound}
    inner[counter] = Op(counter, (), ())
    known.values[counter] = Tensor(())
    body = Reader(known, inner)
    updates = []
    for statement in loop.body:
        assert isinstance(statement, ast.Assign)
        assert isinstance(statement.targets[0], ast.Name)
        updates.append((f"{statement.targets[0].id}_", body.read(statement.value)))
    header = f"for (int {counter} = {bounds[0]}; {counter} < {bounds[1]}; {counter}++)"
    read = Loop(header, tuple((f"{name}_", node) for name, node in initial.items()), tuple(updates))
    return {new: Carried(read, f"{old}_", shape) for old, new in step.bound.items() if old in initial}


def _range(loop: ast.For, reader: Reader) -> tuple[str, tuple[int, int]]:
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=arguments)):
            bounds = tuple(argument.value for argument in arguments if isinstance(argument, ast.Constant))
            if len(bounds) == len(arguments) and len(bounds) in (1, 2) and all(is_size(bound) for bound in bounds):
                return counter, bounds if len(bounds) == 2 else (0, *bounds)  # type: ignore[return-value]
    raise Unsupported("a loop over other than a constant range")
