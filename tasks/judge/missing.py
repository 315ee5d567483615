"""Whether a reference says what becomes of inputs that are no finite numbers; where none does, programs may differ."""

import ast

_ASKS_FOR_MISSING = frozenset(
    {"isnan", "isfinite", "nan_to_num", "nan_to_num_", "nanmean", "nansum", "nanmedian", "nanquantile"}
)
_ASKS_FOR_INFINITE = frozenset({"isinf", "isposinf", "isneginf", "isfinite", "nan_to_num", "nan_to_num_"})


def takes_missing(source: str) -> bool:
    r"""Whether Model.forward asks one of its arguments whether it is a number, or leaves out what is none.

    >>> takes_missing("class Model:\n  def forward(self, x): return x.nan_to_num()")
    True
    >>> takes_missing("class Model:\n  def forward(self, x): return torch.nan_to_num(torch.softmax(x, 1))")
    False
    >>> takes_missing("class Model:\n  def forward(self, x): return torch.where(x != x, 0.0, x)")
    True

    Args:
        source: of a reference, which is trusted.
    """
    return any(
        _is_asked(node, function, _ASKS_FOR_MISSING) or _is_compared_with_itself(node, function)
        for node, function in _forward_nodes(source)
    )


def takes_infinite(source: str) -> bool:
    r"""Whether Model.forward asks one of its arguments whether it is finite.

    >>> takes_infinite("class Model:\n  def forward(self, x): return torch.where(torch.isinf(x), 0.0, x)")
    True
    >>> takes_infinite("class Model:\n  def forward(self, x): return torch.where(torch.isnan(x), 0.0, x)")
    False

    Args:
        source: of a reference, which is trusted.
    """
    return any(_is_asked(node, function, _ASKS_FOR_INFINITE) for node, function in _forward_nodes(source))


def _forward_nodes(source: str) -> list[tuple[ast.AST, ast.FunctionDef]]:
    """Everything in Model.forward, with that function."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    functions = [
        node for model in models for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    return [(node, function) for function in functions for node in ast.walk(function)]


def _is_asked(node: ast.AST, function: ast.FunctionDef, words: frozenset[str]) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in words:
        return False
    names = _untouched_arguments(node, function)
    operands = (node.func.value, *node.args[:1])
    return any(isinstance(operand, ast.Name) and operand.id in names for operand in operands)


def _is_compared_with_itself(node: ast.AST, function: ast.FunctionDef) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return False
    match node.left, node.comparators[0]:
        case ast.Name(id=one), ast.Name(id=other):
            return one == other and one in _untouched_arguments(node, function)
    return False


def _untouched_arguments(node: ast.expr, function: ast.FunctionDef) -> set[str]:
    """Arguments of the function that nothing above the node gives another value."""
    names = {argument.arg for argument in function.args.args}
    return names - {
        other.id
        for other in ast.walk(function)
        if isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store) and other.lineno < node.lineno
    }
