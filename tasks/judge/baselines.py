"""Ways of running the reference that candidates are measured against, each as a candidate of its own."""

import ast

from tasks.errors import ProblemError
from tasks.judge.screen import CLASS_NAME
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

BASELINES = ("eager", "compile")
_GENERATORS = ("get_inputs", "get_init_inputs")


def baseline_candidate(problem: Problem, baseline: str) -> Candidate:
    """The reference itself as a candidate: as it is ("eager"), or with its forward under torch.compile ("compile").

    Constructor, parameters and state dict stay the reference's.

    Raises:
        ProblemError: if the baseline is unknown or the reference has no forward to compile.
    """
    if baseline not in BASELINES:
        raise ProblemError(f"unknown baseline {baseline!r}; there are: {', '.join(BASELINES)}")
    tree = ast.parse(problem.source)
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in _GENERATORS]
    if baseline == "compile":
        _compile_forward(tree, problem)
    tree = ast.fix_missing_locations(_Renamed().visit(tree))
    return Candidate(problem_id=problem.problem_id, source=ast.unparse(tree) + "\n", origin=f"baseline:{baseline}")


class _Renamed(ast.NodeTransformer):
    """Model becomes ModelNew, in its definition and in calls such as super(Model, self)."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if node.name == "Model":
            node.name = CLASS_NAME
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "Model":
            node.id = CLASS_NAME
        return node


def _compile_forward(tree: ast.Module, problem: Problem) -> None:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    method.decorator_list.insert(0, ast.parse("torch.compile", mode="eval").body)
                    if "torch" not in _imported_names(tree):
                        tree.body.insert(0, ast.parse("import torch").body[0])
                    return
    raise ProblemError(f"the reference of {problem.problem_id} defines no forward of its own to compile")


def _imported_names(tree: ast.Module) -> set[str]:
    return {alias.asname or alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
