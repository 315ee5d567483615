"""Attributes that a text gives a value or takes away, in whatever words it says so."""

import ast
from collections import Counter
from collections.abc import Iterator

from tasks.variants.names import words

ANYTHING, ANY_MODULE = "*", "*module"
"""In the place of an attribute's name, where it is computed: of any attribute, and of one that holds a module."""
_ANY_TENSOR = "*tensor"
_HOLDING = {"__dict__": ANYTHING, "_modules": ANY_MODULE, "_parameters": _ANY_TENSOR, "_buffers": _ANY_TENSOR}
_WHOLE = {**_HOLDING, "__class__": ANYTHING}
"""What else an attribute gives where it gets a value itself."""
_ADDING = {
    **dict.fromkeys(("add_module", "register_module"), ANY_MODULE),
    **dict.fromkeys(("register_parameter", "register_buffer"), _ANY_TENSOR),
}
_LOOKING = words("items values keys get copy")
_READING_NAMES = words("len list tuple set sorted enumerate")
"""What has no more of a mapping than its keys."""


def attributes_given(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Whose attribute gets a value, and which; nobody's ("") where that is not told.

    What a mapping of attributes is handed to may change it: only looking at it is known to give nothing.
    """
    for whose, name in _given(tree):
        yield whose, name
        if name in _WHOLE:
            yield whose, _WHOLE[name]


def made_by_torch(tree: ast.AST) -> frozenset[str]:
    """Local variables and attributes of self that hold nothing but new objects of torch.nn's own classes."""
    made, given = Counter[str](), Counter(f"self.{name}" for _, name in attributes_given(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self")) as target], value=value):
                made[ast.unparse(target)] += _is_new_of_torch(value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                given[name] += 1
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                given[name] += 1
    return frozenset(name for name, times in made.items() if times == given[name])


def _is_new_of_torch(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=place)):
            return ast.unparse(place) in ("nn", "torch.nn")
    return False


def _given(tree: ast.AST) -> Iterator[tuple[str, str]]:
    told = set[ast.AST]()
    for node in ast.walk(tree):  # what holds a node comes before it
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Store() | ast.Del()):
                yield ast.unparse(value), name
            case ast.Call(
                func=ast.Name(id="setattr" | "delattr") | ast.Attribute(attr="setattr" | "delattr"),
                args=[value, name, *_],
            ):
                told.add(node.func)
                yield ast.unparse(value), _text(name) or ANYTHING
            case ast.Call(func=ast.Attribute(value=value, attr=adding)) if adding in _ADDING:
                told.add(node.func)
                yield ast.unparse(value), _text(_name_given(node)) or _ADDING[adding]
            case ast.Subscript(value=held, slice=name) if found := _held(held):
                told.add(held)
                if not isinstance(node.ctx, ast.Load):
                    told.add(node)
                    yield found[0], _text(name) or found[1]
            case ast.Attribute(value=held, attr=looking) if looking in _LOOKING and _held(held):
                told.add(held)
            case ast.keyword(arg=None, value=held) if _held(held):
                told.add(held)
            case ast.Dict(keys=keys, values=values):
                told.update(held for key, held in zip(keys, values, strict=True) if key is None and _held(held))
            case ast.Call(func=ast.Name(id=reading), args=args) if reading in _READING_NAMES:
                told.update(filter(_held, args))
            case ast.Compare(ops=ops, comparators=values):
                told.update(held for op, held in zip(ops, values, strict=True) if isinstance(op, ast.In | ast.NotIn))
            case ast.For(iter=held) | ast.comprehension(iter=held):
                told.add(held)
        if node not in told:
            yield from _otherwise(node)


def _otherwise(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What is given where a word that gives is used in a way that does not tell the attribute."""
    found = _held(node)
    if found:
        yield found
        return
    if isinstance(node, ast.Name) and node.id in ("setattr", "delattr"):
        yield "", ANYTHING
    match _read(node):
        case _, "setattr" | "delattr" | "__setattr__" | "__delattr__":
            yield "", ANYTHING
        case whose, "__setstate__":
            yield whose, ANYTHING
        case whose, name if name in _ADDING:
            yield whose, _ADDING[name]
        case _, "set_submodule":  # a path leads into any module
            yield "", ANY_MODULE


def _held(node: ast.AST) -> tuple[str, str] | None:
    """Whose attributes a mapping holds, and which; None of other nodes."""
    match node:
        case ast.Call(func=ast.Name(id="vars") | ast.Attribute(attr="vars"), args=[value]):
            return ast.unparse(value), ANYTHING
        case (
            ast.Subscript(value=outer, slice=key)
            | ast.Call(func=ast.Attribute(value=outer, attr="get"), args=[key, *_])
        ) if (found := _held(outer)) and found[1] == ANYTHING:  # an element may be such a mapping itself
            name = _text(key)
            if name is None:
                return found
            return (found[0], _HOLDING[name]) if name in _HOLDING else None
    match _read(node):
        case whose, name if name in _HOLDING:
            return whose, _HOLDING[name]
    return None


def _read(node: ast.AST) -> tuple[str, str] | None:
    """Whose attribute an expression is, and which."""
    match node:
        case ast.Attribute(value=value, attr=name):
            return ast.unparse(value), name
        case ast.Call(func=ast.Name(id="getattr") | ast.Attribute(attr="getattr"), args=[value, name, *_]):
            text = _text(name)
            return (ast.unparse(value), text) if text else None
    return None


def _name_given(call: ast.Call) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == "name"), call.args[0] if call.args else None)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
