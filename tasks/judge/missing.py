"""Whether a reference says what becomes of inputs that are no numbers; where none does, programs may differ on it."""

import ast

ASKED = frozenset({"isnan", "isfinite", "isinf", "nan_to_num", "nanmean", "nansum", "nanmedian", "nanquantile"})


def takes_missing(source: str) -> bool:
    r"""Whether Model.forward asks one of its arguments whether it is a number, or leaves out what is none.

    >>> takes_missing("class Model:\n  def forward(self, x): return x.nan_to_num()")
    True
    >>> takes_missing("class Model:\n  def forward(self, x): return torch.nan_to_num(torch.softmax(x, 1))")
    False

    Args:
        source: of a reference, which is trusted.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    functions = [
        node for model in models for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    return any(_asks(node, function) for function in functions for node in ast.walk(function))


def _asks(node: ast.AST, function: ast.FunctionDef) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in ASKED:
        return False
    names = {argument.arg for argument in function.args.args}
    names -= {
        other.id
        for other in ast.walk(function)
        if isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store) and other.lineno < node.lineno
    }
    operands = (node.func.value, *node.args[:1])
    return any(isinstance(operand, ast.Name) and operand.id in names for operand in operands)
