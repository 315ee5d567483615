"""Methods of ModelNew besides forward: whether a call of the model can depend on them."""

import ast
from collections.abc import Mapping

from tasks.variants.attributes import attributes_given
from tasks.variants.names import words

_CALLED_BY_OTHERS = words(
    "train eval to cpu cuda float double half bfloat16 apply "
    "_apply _call_impl _wrapped_call_impl _slow_forward _get_name _load_from_state_dict _save_to_state_dict "
    "_named_members _replicate_for_data_parallel"
)
"""Methods of torch's modules that whoever makes, runs, moves or copies a model calls, or torch itself then."""
_LOOKING = words(
    "isinstance hasattr getattr len range zip enumerate min max int float list tuple print "
    "modules named_modules children named_children parameters named_parameters size dim numel items values no_grad"
)
_FILLING = words("zero_ fill_ normal_ uniform_ trunc_normal_ copy_ mul_ div_ add_ sub_ clamp_ requires_grad_")
"""What at most puts other numbers into weights."""


def matters_to_nobody(method: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether no call of the model comes to the method, and whoever else calls it finds the model as it was."""
    name = method.name
    if name.startswith("__") or name in _CALLED_BY_OTHERS or _names(methods["forward"], name):
        return False
    if any(attributes_given(method)):
        return False
    init = methods.get("__init__")
    return init is None or not _names(init, name) or (_only_calls(init, name) and _at_most_fills_weights(method))


def _names(method: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(method))


def _only_calls(init: ast.FunctionDef, name: str) -> bool:
    """Whether a constructor names a method only to have it called: by statements of its own, or for all modules."""
    times = sum(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(init))
    calls = [ast.unparse(node) for node in ast.walk(init) if isinstance(node, ast.Expr)]
    return times == sum(each == f"self.apply(self.{name})" or each.startswith(f"self.{name}(") for each in calls)


def _at_most_fills_weights(method: ast.FunctionDef) -> bool:
    for node in ast.walk(method):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            last = called.rpartition(".")[2]
            if not called.startswith(("nn.init.", "torch.nn.init.", "math.")) and last not in _LOOKING | _FILLING:
                return False
    return True
