"""A call in a program, whichever way it is written: torch.relu(x), F.relu(x), x.relu() and nn.ReLU()(x) are one."""

import ast
from dataclasses import dataclass

_FUNCTION_PLACES = {"torch", "F", "torch.nn.functional", "nn.functional", "torch.special"}
_LAYER_PLACES = {"nn", "torch.nn"}


@dataclass(frozen=True, slots=True)
class Call:
    """A function or method of torch by its bare name, the tensor it is called on first among its operands."""

    name: str
    operands: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    is_method: bool

    def argument(self, position: int, keyword: str) -> ast.expr | None:
        """The argument given at a position (the tensor itself is 0) or by keyword."""
        if position < len(self.operands):
            return self.operands[position]
        return self.keywords.get(keyword)


def torch_call(node: ast.expr) -> Call | None:
    """The call of a torch function or of a tensor's method, or None for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    if len(keywords) != len(node.keywords) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    place = ast.unparse(node.func.value)
    if place == "torch.linalg":  # whose norm of a matrix is another than torch.norm's
        return Call(f"linalg.{node.func.attr}", tuple(node.args), keywords, False)
    if place in _FUNCTION_PLACES:
        return Call(node.func.attr, tuple(node.args), keywords, False)
    if place in _LAYER_PLACES or place.split(".")[0] in {"math", "np"} or place == "super()":
        return None
    return Call(node.func.attr, (node.func.value, *node.args), keywords, True)


def layer_made(node: ast.expr) -> str | None:
    """The class of torch.nn that an expression makes an instance of."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr if ast.unparse(node.func.value) in _LAYER_PLACES else None
    return None


def layer_called(node: ast.expr) -> str | None:
    """The attribute, such as "self.linear" or "self.block.linear", that may be called as a layer."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = ast.unparse(node.func)
        return text if text.startswith("self.") else None
    return None
