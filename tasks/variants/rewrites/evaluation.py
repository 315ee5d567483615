"""A program without what does nothing in evaluation mode: dropout, and questions about the mode."""

import libcst as cst

from tasks.variants.names import walk
from tasks.variants.rewrites.reading import code_of, dotted_name

_LAYERS = frozenset(f"{name}{suffix}" for name in ("Dropout", "AlphaDropout") for suffix in ("", "1d", "2d", "3d"))
_FUNCTIONS = frozenset(name.replace("Alpha", "alpha_").lower() for name in _LAYERS)
_IS_OFF = ("self.training", "False")


def in_evaluation(program: cst.Module) -> cst.Module:
    """The program as it computes in evaluation mode. Assumes that it is in no other."""
    body = [
        each.visit(_Evaluation(_dropouts_of(each))) if isinstance(each, cst.ClassDef) else each for each in program.body
    ]
    return program.with_changes(body=body)


def _dropouts_of(owner: cst.ClassDef) -> frozenset[str]:
    """Attributes such as "self.dropout" that hold a layer that only training needs."""
    found = set()
    for node in walk(owner):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)], value=cst.Call(func=made)):
                if (dotted_name(made) or "").rpartition(".")[2] in _LAYERS:
                    found.add(dotted_name(target) or "")
    return frozenset(found - {""})


class _Evaluation(cst.CSTTransformer):
    def __init__(self, dropouts: frozenset[str]) -> None:
        self.dropouts = dropouts

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted_name(original_node.func) or ""
        is_plain = bool(original_node.args) and not original_node.args[0].star and not original_node.args[0].keyword
        if is_plain and name in self.dropouts and len(original_node.args) == 1:
            return updated_node.args[0].value
        if is_plain and name.startswith(("F.", "nn.functional.", "torch.nn.functional.")):
            modes = [code_of(argument.value) for argument in original_node.args[1:]]
            if name.rpartition(".")[2] in _FUNCTIONS and any(mode in _IS_OFF for mode in modes):
                return updated_node.args[0].value
        return updated_node
