"""C text of expressions, with parentheses only where they are needed."""

import re
from collections.abc import Iterable

from tasks.variants.kernels.nodes import Node, Number, Op

_LOOSE, _SUM, _PRODUCT, _ATOM = range(4)


class Text:
    """An operand in a C template: "{0}" is safe anywhere, "{0:1}" may be a sum, "{0:2}" a product, "{0:0}" anything."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __format__(self, least: str) -> str:
        return self.text if _binding(self.text) >= int(least or _ATOM) else f"({self.text})"


def number(node: Number) -> str:
    if node.value in (float("inf"), float("-inf")):
        return "INFINITY" if node.value > 0 else "-INFINITY"
    return f"{node.value!r}f"


def times_used(node: Op, argument: int) -> int:
    return len(re.findall(rf"\{{{argument}[:}}]", node.template))


def calls_function(node: Node) -> bool:
    """Whether an operation costs more than a few cycles."""
    return isinstance(node, Op) and re.search(r"\b(exp|tanh|log|erf|pow|sin|cos)\w*\(", node.template) is not None


def mentioned(names: Iterable[str], text: str) -> list[str]:
    return [name for name in names if re.search(rf"\b{name}\b", text)]


def _binding(text: str) -> int:
    """How tightly the loosest operator outside all parentheses binds."""
    outside, depth = "", 0
    for character in re.sub(r"e[-+]\d+f", "", text):
        depth -= character in ")]"
        outside += "" if depth else character
        depth += character in "(["
    if re.search(r"[?<>=&|]", outside):
        return _LOOSE
    if re.search(r" [-+] ", outside):
        return _SUM
    return _PRODUCT if re.search(r"[*/%]", outside) else _ATOM
