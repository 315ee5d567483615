"""A forward as steps in which every name is bound once, and back to text with the names a person would use."""

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from tasks.variants.kernels.model import Model
from tasks.variants.kernels.statements import is_check, names_assigned

_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Step:
    """An assignment, a return, a check or a loop of assignments."""

    targets: tuple[str, ...]
    """What it binds; nothing for a return and for a check."""
    value: ast.expr | ast.stmt
    """The statement itself for a loop and for a check."""
    names: Mapping[str, str]
    """For a loop: what the variables of the forward are called before it."""
    bound: Mapping[str, str]
    """For a loop: what the variables that it assigns are called after it."""

    @property
    def is_value(self) -> bool:
        """Whether it binds or returns one value, as a kernel could."""
        return isinstance(self.value, ast.expr) and len(self.targets) < 2

    def reads(self) -> set[str]:
        read = {node.id for node in ast.walk(self.value) if isinstance(node, ast.Name)}
        return {self.names[name] for name in read if name in self.names} if self.bound else read

    def text(self) -> str:
        value = ast.unparse(self.value)
        if isinstance(self.value, ast.stmt):
            return value
        return f"{', '.join(self.targets)} = {value}" if self.targets else f"return {value}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Steps of a forward that one kernel replaces, as text."""

    before: tuple[str, ...]
    """Lines that stay above the kernel."""
    target: str | None
    """The name that the kernel's result gets; None when it is returned at once."""
    after: tuple[str, ...]
    """Lines that stay below it."""
    lines: tuple[str, ...]
    """The steps that go into the kernel."""
    inputs: tuple[str, ...]
    """Variables that those read and others bind."""

    @classmethod
    def of(cls, model: Model, steps: Sequence[Step], places: Collection[int]) -> Self:
        """Where the steps at some places go, the last of which is the kernel's result."""
        last = max(places)
        kept = [(place, step) for place, step in enumerate(steps) if place not in places]
        inside = {name for place in places for name in steps[place].targets}
        read = set().union(*(steps[place].reads() for place in places))
        local = [*model.arguments, *(name for step in steps for name in step.targets)]
        return cls(
            before=tuple(step.text() for place, step in kept if place < last),
            target=steps[last].targets[0] if steps[last].targets else None,
            after=tuple(step.text() for place, step in kept if place > last),
            lines=tuple(step.text() for place, step in enumerate(steps) if place in places and not step.bound),
            inputs=tuple(name for name in dict.fromkeys(local) if name in read - inside),
        )


def single_assignment(model: Model) -> list[Step] | None:
    """The steps of a forward; None where there is more than assignments, checks, simple loops and a return."""
    names = {name: name for name in model.arguments}
    taken = {node.id for node in ast.walk(model.forward) if isinstance(node, ast.Name)}
    steps = []
    for statement in model.forward.body:
        match statement:
            case ast.Assign(value=value) if assigned := names_assigned(statement):
                renamed = _renamed(value, names)
                steps.append(Step(tuple(_bind(name, names, taken) for name in assigned), renamed, {}, {}))
            case ast.Return(value=ast.expr() as value):
                steps.append(Step((), _renamed(value, names), {}, {}))
            case ast.Assert() | ast.If() if is_check(statement):
                steps.append(Step((), _renamed(statement, names), {}, {}))
            case ast.For(body=body) if all(_is_assignment(part) for part in body):
                before = dict(names)
                carried = dict.fromkeys(part.targets[0].id for part in body)  # type: ignore[attr-defined]
                bound = {name: _bind(name, names, taken) for name in carried}
                steps.append(Step(tuple(bound.values()), statement, before, bound))
            case _:
                return None
    return steps if steps and steps[-1].is_value and not steps[-1].targets else None


def natural(lines: Sequence[str]) -> list[str]:
    """The lines of a straight function, with x1 called x again wherever the old x is not needed any more."""
    statements = [ast.parse(line).body[0] for line in lines]
    for place, statement in enumerate(statements):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        name = statement.targets[0].id
        base = name.rstrip("0123456789")
        later = [node for other in statements[place + 1 :] for node in ast.walk(other) if isinstance(node, ast.Name)]
        if base != name and not any(node.id == base for node in later):
            for node in (statement.targets[0], *later):
                node.id = base if node.id == name else node.id
    return [ast.unparse(statement) for statement in statements]


def _is_assignment(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()]):
            return True
    return False


def _bind(name: str, names: dict[str, str], taken: set[str]) -> str:
    """A name for a new value of a variable: its own the first time, numbered afterwards."""
    fresh, number = name, 1
    while name in names and fresh in taken:
        fresh, number = f"{name}{number}", number + 1
    taken.add(fresh)
    names[name] = fresh
    return fresh


def _renamed(expression: _Node, names: Mapping[str, str]) -> _Node:
    renamed = copy.deepcopy(expression)
    for node in ast.walk(renamed):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return renamed
