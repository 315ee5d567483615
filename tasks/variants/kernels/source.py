"""Writes the C function for a tree of elementwise operations and reductions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tasks.variants.kernels.geometry import Geometry
from tasks.variants.kernels.nodes import Carried, Leaf, Loop, Node, Number, Op, Reduce, children, walk
from tasks.variants.kernels.text import Text, calls_function, number, times_used

_START = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}
_STEP = {"sum": "{0} += {1};", "max": "{0} = {1} > {0} ? {1} : {0};", "min": "{0} = {1} < {0} ? {1} : {0};"}
_OPERATOR = {"sum": "+", "max": "max", "min": "min"}


# Columns from which on a float's rounding, in the 16 sums that a vector holds, would show beside torch's pairwise sums.
_LONG = 1024

Work = tuple[str, str, Node]
"""A C statement to be: its form, the place {0} that it writes and the value {1} that goes there."""


@dataclass(slots=True)
class Writer:
    """Writes one function's body; `names` says what has been computed and what it is called from here on."""

    geometry: Geometry
    elements: Mapping[Leaf, str]
    """C expressions of the current element of every tensor."""
    root: Node
    names: dict[Node, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    variables: int = 0
    kept: Node | None = None
    """A value that goes to the output's memory for a later pass."""

    def body(self) -> list[str]:
        passes = phases(self.root)
        self.kept = _worth_keeping(self.root, passes) if self._varies(self.root) else None
        if self.geometry.has_rows:
            self.line("#pragma omp parallel for", depth=0)
            self.open("for (long r = 0; r < rows; r++) {")
        for reduces in passes:
            self._reduce(reduces)
        if self._varies(self.root):
            self._name_rows([self.root])
            self._columns("", [("{0} = {1};", self.out(), self.root)])
        else:
            self._per_lane(self.out(), self.root)
        if self.geometry.has_rows:
            self.close()
        return self.lines

    def _reduce(self, reduces: list[Reduce]) -> None:
        """One pass over the columns for all reductions that can be done at once."""
        self._name_rows(reduce.argument for reduce in reduces)
        clauses, places = "", []
        for reduce in reduces:
            name = self._variable("s")
            start = _START[reduce.kind]
            if self.geometry.has_lanes:
                self.line(f"float {name}[n];")
                self.line(f"for (long i = 0; i < n; i++) {name}[i] = {start};")
                name = f"{name}[i]"
            else:
                self.line(f"{'double' if self.geometry.columns > _LONG else 'float'} {name} = {start};")
                clauses += f" reduction({_OPERATOR[reduce.kind]}:{name})"
            places.append(name)
        self._columns(clauses, [(_STEP[r.kind], place, r.argument) for r, place in zip(reduces, places, strict=True)])
        self.names |= dict(zip(reduces, places, strict=True))

    def _columns(self, clauses: str, work: list[Work]) -> None:
        """A loop over the columns, with one over the lanes in it where there are some."""
        has_lanes = self.geometry.has_lanes
        if has_lanes:
            self.open("for (long c = 0; c < m; c++) {")
        parallel = "" if self.geometry.has_rows or has_lanes else "parallel for "
        self.line(f"#pragma omp {parallel}simd simdlen(16){clauses}", depth=0)
        outer = dict(self.names)
        self.open("for (long i = 0; i < n; i++) {" if has_lanes else "for (long c = 0; c < m; c++) {")
        self.statements(work)
        self.close()
        if self.kept in self.names:
            outer[self.kept] = self.out()
        self.names = outer
        if has_lanes:
            self.close()

    def _per_lane(self, place: str, node: Node) -> None:
        """A value that all columns share, computed once for every lane."""
        if not self.geometry.has_lanes:
            self.statements([("{0} = {1};", place, node)])
            return
        outer = dict(self.names)
        self.open("for (long i = 0; i < n; i++) {")
        self.statements([("{0} = {1};", place, node)])
        self.close()
        self.names = outer

    def _name_rows(self, targets: Iterable[Node]) -> None:
        """Compute ahead of a loop over the columns what is the same in all of them."""
        for target in targets:
            for node in self._unnamed(target):
                for part in children(node) if self._varies(node) else ():
                    if isinstance(part, Op) and part.arguments and not self._varies(part) and part not in self.names:
                        name = self._variable("v")
                        lanes = "[i]" if self.geometry.has_lanes else ""
                        if lanes:
                            self.line(f"float {name}[n];")
                        self._per_lane(f"{name}[i]" if lanes else f"float {name}", part)
                        self.names[part] = name + lanes

    def statements(self, work: list[Work]) -> None:
        """The statements, after declarations of whatever they use more than once."""
        uses: Counter[Node] = Counter()
        order = list(dict.fromkeys(node for _, _, target in work for node in self._unnamed(target)))
        for form, _, target in work:
            uses[target] += form.count("{1}")
        for node in order:
            for argument, part in enumerate(children(node)):
                uses[part] += times_used(node, argument) if isinstance(node, Op) else 2
        for node in order:
            if isinstance(node, Carried) and node not in self.names:
                self._loop(node.loop)
            elif isinstance(node, Op) and node.arguments and (uses[node] > 1 or node == self.kept):
                self._declare(node)
        for form, place, target in work:
            self.line(form.format(place, self._text(target).text))

    def _declare(self, node: Node) -> None:
        name = self._variable("v")
        self.line(f"float {name} = {self._text(node).text};")
        if node == self.kept:
            self.line(f"{self.out()} = {name};")
        self.names[node] = name

    def _loop(self, loop: Loop) -> None:
        for name, start in loop.initial:
            self.line(f"float {name} = {self._text(start).text};")
        self.line("#pragma GCC unroll 64", depth=0)  # gcc vectorises what is around it only then
        self.open(f"{loop.header} {{")
        outer, carried = dict(self.names), {name for name, _ in loop.initial}
        for name, update in loop.updates:
            self.statements([("{0} = {1};", name if name in carried else f"float {name}", update)])
            carried.add(name)
            self.names = dict(outer)
        self.close()
        for name, _ in loop.initial:
            self.names |= {node: name for node in walk(self.root) if node == Carried(loop, name, node.shape)}

    def _text(self, node: Node) -> Text:
        if node in self.names:
            return Text(self.names[node])
        match node:
            case Number():
                return Text(number(node))
            case Leaf():
                return Text(self.elements[node])
            case Op():
                return Text(node.template.format(*(self._text(argument) for argument in node.arguments)))
        raise AssertionError(f"{node} should have a name by now")

    def _unnamed(self, target: Node) -> list[Node]:
        """What is still to be computed for a value, in order."""
        order: dict[Node, None] = {}

        def visit(node: Node) -> None:
            if node not in self.names and node not in order:
                for child in children(node):
                    visit(child)
                order[node] = None

        visit(target)
        return list(order)

    def _varies(self, node: Node) -> bool:
        return self.geometry.varies(node.shape, over="columns")

    def out(self) -> str:
        return f"out[{self.geometry.element(Leaf('out', self.root.shape), str)}]"

    def _variable(self, letter: str) -> str:
        self.variables += 1
        return f"{letter}{self.variables - 1}"

    def line(self, text: str, *, depth: int | None = None) -> None:
        self.lines.append("    " * (self.depth if depth is None else depth) + text)

    def open(self, text: str) -> None:
        self.line(text)
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")


def phases(root: Node) -> list[list[Reduce]]:
    """The reductions in passes: one needs the passes before its own to be over."""
    passes: dict[Reduce, int] = {}
    for node in walk(root):
        if isinstance(node, Reduce):
            passes[node] = 1 + max(
                (passes[part] for part in walk(node.argument) if isinstance(part, Reduce)), default=0
            )
    return [[node for node, at in passes.items() if at == phase] for phase in sorted(set(passes.values()))]


def _worth_keeping(root: Node, phases: list[list[Reduce]]) -> Node | None:
    """A costly value that one pass computes and a later one needs again; the output has room for one."""
    passes = [[reduce.argument for reduce in reduces] for reduces in phases] + [[root]]
    needed = [_within_pass(targets) for targets in passes]
    again = [node for node in walk(root) if calls_function(node) and sum(node in nodes for nodes in needed) > 1]
    return next((node for node in reversed(again) if node.shape == root.shape), None)


def _within_pass(targets: Sequence[Node]) -> set[Node]:
    found: set[Node] = set()
    waiting = [*targets]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += () if isinstance(node, Reduce) else children(node)
    return found
