"""Ways of running the reference that candidates are measured against, each as a candidate of its own.

So each is checked and timed under the very protocol that candidates are. All keep the reference's constructor,
parameters and state dict; what they hand out is never written again.
"""

import ast
from collections.abc import Sequence

from tasks.errors import MachineError, ProblemError
from tasks.problems.parsing import parsed
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.capture import CAPTURED, COPIED, named

_SUBCLASS = {
    "eager": """

class ModelNew(Model):
    pass
""",
    "compile": """

class ModelNew(Model):
    forward = torch.compile(Model.forward)
""",
    "compile_reduce_overhead": """

class ModelNew(Model):
    _baseline_compiled = torch.compile(Model.forward, mode="reduce-overhead")

    def forward(self, *inputs, **named):
        torch.compiler.cudagraph_mark_step_begin()
        return _baseline_copied(self._baseline_compiled(*inputs, **named))
""",
    "cuda_graph": '''

_BASELINE_PLAIN = {bool, int, float, str, type(None)}


def _baseline_form(value, row):
    # What has to be alike for a graph to be replayed; tensors and plain values go into the row. It costs at every call.
    kind = type(value)
    if kind is torch.Tensor:
        row.append(value)
        return value.shape, value.dtype
    if kind is tuple or kind is list:
        return (kind, *[_baseline_form(each, row) for each in value])
    if kind is dict:
        return (kind, tuple(value), *[_baseline_form(each, row) for each in value.values()])
    if kind not in _BASELINE_PLAIN:
        leaves, spec = torch.utils._pytree.tree_flatten(value)
        if len(leaves) != 1 or leaves[0] is not value:
            return (spec, *[_baseline_form(each, row) for each in leaves])
    row.append(value)
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else (kind, value)


def _baseline_given(form, row):
    kind, *parts = form
    if kind is tuple or kind is list:
        return kind([_baseline_given(each, row) for each in parts])
    if kind is dict:
        names, *parts = parts
        return dict(zip(names, [_baseline_given(each, row) for each in parts]))
    if isinstance(kind, torch.utils._pytree.TreeSpec):
        return torch.utils._pytree.tree_unflatten([_baseline_given(each, row) for each in parts], kind)
    return next(row)


def _baseline_called(model, form, row):
    inputs, named = form
    inputs = [_baseline_given(each, row) for each in inputs]
    return Model.forward(model, *inputs, **{name: _baseline_given(each, row) for name, each in named})


class ModelNew(Model):
    """Captured once for every form of inputs, and replayed: inputs are copied in, outputs copied out."""

    def forward(self, *inputs, **named):
        row = []
        form = tuple([_baseline_form(each, row) for each in inputs])
        form = form, tuple([(name, _baseline_form(each, row)) for name, each in named.items()]) if named else ()
        graphs = self.__dict__.setdefault("_baseline_graphs", {})
        if form not in graphs:
            graphs[form] = self._baseline_captured(lambda model, *row: _baseline_called(model, form, iter(row)), row)
        graph, static, outputs = graphs[form]
        for place, item in zip(static, row):
            if isinstance(place, torch.Tensor):
                place.copy_(item)
        graph.replay()
        return _baseline_copied(outputs)
'''
    + named(CAPTURED, "_baseline"),
}
_COPIED = named(COPIED, "_baseline")
BASELINES = tuple(_SUBCLASS)
NEED_CUDA = ("compile_reduce_overhead", "cuda_graph")
"""On a processor there are no graphs to capture: these would be timed as something else under their name."""
_GENERATORS = ("get_inputs", "get_init_inputs")


def baseline_candidate(problem: Problem, baseline: str) -> Candidate:
    """The reference itself as a candidate: as it is ("eager"), under torch.compile, or replayed as a CUDA graph.

    Raises:
        ProblemError: if the baseline is unknown.
    """
    _require_known(baseline)
    tree = parsed(problem.source.removeprefix("\ufeff"))
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in _GENERATORS]
    if "torch" not in _imported_names(tree):
        tree.body.insert(_first_place(tree), ast.parse("import torch").body[0])
    subclass = _SUBCLASS[baseline]
    source = f"{ast.unparse(tree)}\n{_COPIED if '_baseline_copied(' in subclass else ''}{subclass}"
    return Candidate(problem_id=problem.problem_id, source=source, origin=f"baseline:{baseline}")


def usable_baselines(device: str, asked: Sequence[str] | None = None) -> tuple[str, ...]:
    """Those that were asked for, or all that there are on a device such as "cpu" or "cuda:0".

    Raises:
        ProblemError: if one that was asked for is unknown.
        MachineError: if one that was asked for needs CUDA and the device is another.
    """
    for name in asked or ():
        _require_known(name)
    cannot = () if device.startswith("cuda") else NEED_CUDA
    if refused := [name for name in asked or () if name in cannot]:
        raise MachineError(f"{', '.join(refused)} cannot be timed on {device}: it needs CUDA; leave it out")
    return tuple(name for name in BASELINES if name not in cannot and (asked is None or name in asked))


def _require_known(baseline: str) -> None:
    if baseline not in BASELINES:
        raise ProblemError(f"unknown baseline {baseline!r}; there are: {', '.join(BASELINES)}")


def _first_place(tree: ast.Module) -> int:
    """Behind the docstring and what must come first."""
    later = (i for i, node in enumerate(tree.body) if not isinstance(node, ast.Expr | ast.ImportFrom))
    return next(later, len(tree.body))


def _imported_names(tree: ast.Module) -> set[str]:
    return {alias.asname or alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
