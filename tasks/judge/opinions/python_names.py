"""What names in Python text stand for, as far as the text alone tells: imports, simple aliases and folded strings."""

import ast
import builtins
from collections.abc import Iterator

_MAX_DEPTH = 100
_IMPORTERS = ("__import__", "importlib.import_module")
_MAX_JOINED = 1 << 16


class Names:
    """The dotted names that a module's variables stand for. Scopes and the order of statements are not looked at."""

    def __init__(self, tree: ast.Module) -> None:
        self._meanings: dict[str, str] = {}
        self._modules: set[str] = set()
        self._known: dict[int, str] = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._import(node)
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                meaning = self.dotted(node.value)
                if meaning:
                    self._meanings.setdefault(node.targets[0].id, meaning)
        self._known.clear()

    def dotted(self, node: ast.AST, depth: int = 0) -> str:
        """Such as "torch.cuda.Stream", or "os.getppid()" for what a call returns; empty when the text does not tell."""
        if id(node) not in self._known:
            # Each node once: expressions that refer to their parts twice would take exponential time.
            self._known[id(node)] = "" if depth > _MAX_DEPTH else self._meaning(node, depth + 1)
        return self._known[id(node)]

    def is_imported(self, node: ast.expr) -> bool:
        """Whether it is a module, or something in one, that the text imports; not what a call returns."""
        dotted = self.dotted(node)
        return "()" not in dotted and dotted.partition(".")[0] in self._modules

    def is_known(self, dotted: str) -> bool:
        """Whether a dotted name begins with a module that the text imports or with a built-in."""
        root = dotted.partition(".")[0].removesuffix("()")
        return root in self._modules or hasattr(builtins, root)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                self._meanings[alias.asname or root] = alias.name if alias.asname else root
                self._modules.add(root)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._meanings[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            self._modules.add(node.module.partition(".")[0])

    def _meaning(self, node: ast.AST, depth: int) -> str:
        match node:
            case ast.Name(id=name):
                return self._meanings.get(name, name)
            case ast.Attribute(attr=name, value=owner):
                return _below(self.dotted(owner, depth), name)
            case ast.Call(func=function, args=arguments):
                return self._called(self.dotted(function, depth), arguments, depth)
            case ast.Subscript(value=owner, slice=key):
                return self._entry(self.dotted(owner, depth), folded(key))
        return ""

    def _called(self, function: str, arguments: list[ast.expr], depth: int) -> str:
        names = [folded(argument) for argument in arguments[:2]]
        if function in _IMPORTERS and names and names[0]:
            self._modules.add(names[0].partition(".")[0])
            return names[0]
        if function == "getattr" and len(names) == 2 and names[1]:
            return _below(self.dotted(arguments[0], depth), names[1])
        if function == "vars" and arguments:
            return _below(self.dotted(arguments[0], depth), "__dict__")
        return function and f"{function}()"

    def _entry(self, owner: str, key: str | None) -> str:
        """sys.modules["x"] is x, and x.__dict__["y"] is x.y; of any other entry its owner is what counts."""
        if owner == "sys.modules" and key:
            self._modules.add(key.partition(".")[0])
            return key
        if owner.endswith(".__dict__") and key:
            return _below(owner.removesuffix(".__dict__"), key)
        return owner


def folded(node: ast.AST, depth: int = 0) -> str | None:
    """The string that an expression of constants is; * stands for what an f-string fills in. None for anything else."""
    if depth > _MAX_DEPTH:
        return None
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_or_star(folded(value, depth + 1)) for value in values)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            texts = [folded(left, depth + 1), folded(right, depth + 1)]
            return None if None in texts else "".join(map(_or_star, texts))
        case ast.BinOp(op=ast.Mod(), left=left):
            return folded(left, depth + 1)
        case ast.Call(func=ast.Attribute(attr="format" | "replace" | "strip", value=text)):
            return folded(text, depth + 1)
        case ast.Call(func=ast.Attribute(attr="join", value=glue), args=[ast.List(elts=items) | ast.Tuple(elts=items)]):
            return _joined(folded(glue, depth + 1), [folded(item, depth + 1) for item in items])
        case ast.Subscript(value=text, slice=ast.Slice(step=ast.UnaryOp(op=ast.USub()))):
            forwards = folded(text, depth + 1)
            return None if forwards is None else forwards[::-1]
    return None


def parts(target: ast.expr) -> Iterator[ast.expr]:
    """What an assignment assigns to, tuples taken apart."""
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from parts(element)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def _joined(glue: str | None, texts: list[str | None]) -> str | None:
    if glue is None or None in texts or (len(glue) + 1) * len(texts) > _MAX_JOINED:
        return None
    return glue.join(map(_or_star, texts))


def _below(owner: str, name: str) -> str:
    return owner and f"{owner}.{name}"


def _or_star(text: str | None) -> str:
    return "*" if text is None else text
