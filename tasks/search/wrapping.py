"""The reference and a drop-in in modules that answer with more than outputs, so that the judge compares that too."""

import textwrap
from dataclasses import replace

import libcst as cst

from tasks.problems.problem import Problem
from tasks.search.drop_in import ENTRY
from tasks.search.names import Renaming
from tasks.search.user_file import KERNELBENCH_CLASS
from tasks.variants.candidate import Candidate

_WRAPPER = """

class {name}(__import__("torch").nn.Module):
    def __init__(self, *arguments, **options):
        super().__init__()
        self.inner = {inner}(*arguments, **options)

    def forward(self, *inputs, **named):
        import torch

{answer}
"""


def wrapped_case(reference: Problem, made: Candidate, *, answer: str, origin: str) -> tuple[Problem, Candidate]:
    """Both with the same module around them.

    Args:
        answer: statements that return what is to be compared, with `self.inner`, `inputs`, `named` and `torch`.
    """
    problem = replace(reference, source=_wrapped(reference.source, KERNELBENCH_CLASS, answer))
    source = _wrapped(made.source, ENTRY, answer)
    return problem, Candidate(problem_id=problem.problem_id, source=source, origin=origin)


def _wrapped(source: str, name: str, answer: str) -> str:
    """The program with a module around the one that has this name."""
    inner = f"Plain{name}"
    program = cst.parse_module(source).visit(Renaming({name: inner})).code
    return program + _WRAPPER.format(name=name, inner=inner, answer=textwrap.indent(answer.strip(), " " * 8))
