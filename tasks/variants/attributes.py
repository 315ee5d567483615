"""Attributes that a text gives a value or takes away, in whatever words it says so."""

import ast
from collections.abc import Iterator

from tasks.variants.names import words

ANYTHING, ANY_MODULE = "*", "*module"
"""In the place of an attribute's name, where it is computed: of any attribute, and of one that holds a module."""
_ANY_TENSOR = "*tensor"
_HOLDING = {"__dict__": ANYTHING, "_modules": ANY_MODULE, "_parameters": _ANY_TENSOR, "_buffers": _ANY_TENSOR}
_ADDING = {
    **dict.fromkeys(("add_module", "register_module"), ANY_MODULE),
    **dict.fromkeys(("register_parameter", "register_buffer"), _ANY_TENSOR),
}
_LOOKING = words("items values keys get copy")


def attributes_given(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Whose attribute gets a value, and which; nobody's ("") where that is not told.

    What a mapping of attributes is handed to may change it: only looking at it is known to give nothing.
    """
    told = set[ast.AST]()
    for node in ast.walk(tree):  # what holds a node comes before it
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Store() | ast.Del()):
                yield ast.unparse(value), name
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[value, name, *_]):
                told.add(node.func)
                yield ast.unparse(value), _text(name) or ANYTHING
            case ast.Call(func=ast.Attribute(value=value, attr=adding)) if adding in _ADDING:
                told.add(node.func)
                yield ast.unparse(value), _text(_name_given(node)) or _ADDING[adding]
            case ast.Subscript(value=held, slice=name) if found := _held(held):
                told.add(held)
                if not isinstance(node.ctx, ast.Load):
                    yield found[0], _text(name) or found[1]
            case ast.Attribute(value=held, attr=looking) if looking in _LOOKING and _held(held):
                told.add(held)
            case ast.keyword(arg=None, value=held) if _held(held):
                told.add(held)
            case ast.Dict(keys=keys, values=values):
                told.update(held for key, held in zip(keys, values, strict=True) if key is None and _held(held))
        if node not in told:
            yield from _otherwise(node)


def _otherwise(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What is given where a word that gives is used in a way that does not tell the attribute."""
    found = _held(node)
    match node:
        case _ if found:
            yield found
        case ast.Name(id="setattr" | "delattr") | ast.Attribute(attr="__setattr__" | "__delattr__"):
            yield "", ANYTHING
        case ast.Attribute(value=value, attr=name) if name in _ADDING:
            yield ast.unparse(value), _ADDING[name]
        case ast.Attribute(attr="set_submodule"):  # a path leads into any module
            yield "", ANY_MODULE


def _held(node: ast.AST) -> tuple[str, str] | None:
    """Whose attributes a mapping holds, and which; None of other nodes."""
    match node:
        case ast.Attribute(value=value, attr=name) if name in _HOLDING:
            return ast.unparse(value), _HOLDING[name]
        case ast.Call(func=ast.Name(id="vars"), args=[value]):
            return ast.unparse(value), ANYTHING
    return None


def _name_given(call: ast.Call) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == "name"), call.args[0] if call.args else None)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
