"""Slices x[:, t] that a loop over t takes of a tensor."""

import libcst as cst

from tasks.variants.rewrites.reading import Reader
from tasks.variants.rewrites.terms import Term, leaf


def without_slices(node: cst.BaseExpression, time: str) -> cst.BaseExpression:
    changed = node.visit(_Unslicer(time))
    assert isinstance(changed, cst.BaseExpression)
    return changed


def is_slice(term: Term, time: Term) -> bool:
    whole = Term("slice", (leaf(""),) * 3)
    return term.head == "index" and term.args[1:] == (whole, time)


class _Unslicer(cst.CSTTransformer):
    """Turns x[:, t] into x."""

    def __init__(self, time: str) -> None:
        self.time = leaf(time)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return updated_node.value if is_slice(Reader().read(original_node), self.time) else updated_node
