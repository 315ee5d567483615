"""The expressions of a forward that it computes once, whatever its inputs are, each with a place to compute it anew."""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence

from tasks.variants.kernels.model import Model
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.steps import Site, Step, single_assignment

_DEFERRED = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.IfExp, ast.BoolOp, ast.NamedExpr),
)
"""What may compute a part of itself later, several times or not at all, or bind a name on the way."""


def expressions(model: Model) -> Iterator[tuple[ast.expr, Shapes, Callable[[], Site]]]:
    """Every expression of a forward without branches and loops, but of checks, those of the last step first.

    Yields:
        It, the shapes that are known before it, and what makes a step of its own of it.
    """
    steps = single_assignment(model)
    if steps is None or any(step.bound for step in steps):
        return
    shapes = Shapes(dict(model.shapes.values))
    for step in steps:
        if step.targets:
            shapes.bind(step.targets, step.value)  # type: ignore[arg-type]
    for place in reversed(range(len(steps))):
        value = steps[place].value
        if isinstance(value, ast.stmt) or any(isinstance(node, _DEFERRED) for node in ast.walk(value)):
            continue
        for node in ast.walk(value):
            if isinstance(node, ast.expr):
                yield (
                    node,
                    shapes,
                    lambda node=node, place=place: Site.of(  # type: ignore[misc]
                        model, _with_step_of_its_own(steps, place, node), [place]
                    ),
                )


def _with_step_of_its_own(steps: Sequence[Step], place: int, node: ast.expr) -> list[Step]:
    """The steps with a part of one computed before it, in its place."""
    step = steps[place]
    if step.value is node and step.is_value:
        return list(steps)
    taken = {each.id for one in steps for each in ast.walk(one.value) if isinstance(each, ast.Name)}
    taken |= {name for one in steps for name in one.targets}
    name = next(name for number in range(99) if (name := f"multiplied{number or ''}") not in taken)
    rest = copy.deepcopy(step.value, {id(node): ast.Name(name)})  # which takes that for a copy it has made before
    return [*steps[:place], Step((name,), node, {}, {}), Step(step.targets, rest, {}, {}), *steps[place + 1 :]]
