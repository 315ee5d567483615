"""Gradients as a problem of their own, so that the judge compares those of a drop-in with those of the reference."""

from dataclasses import replace

import libcst as cst

from tasks.problems.problem import Problem
from tasks.search.drop_in import ENTRY, DropIn
from tasks.search.texts import ProblemTexts
from tasks.search.user_file import KERNELBENCH_CLASS
from tasks.variants.candidate import Candidate
from tasks.variants.names import renamed

_GRADIENTS = """


class {name}(__import__("torch").nn.Module):
    def __init__(self, *arguments, **options):
        super().__init__()
        self.inner = {inner}(*arguments, **options)

    def forward(self, *inputs, **named):
        import torch

        with torch.enable_grad():
            leaves = [each for each in (*inputs, *named.values()) if isinstance(each, torch.Tensor)]
            fresh = {{id(each): each.detach().clone() for each in leaves}}
            wanted = [each.requires_grad_() for each in fresh.values() if each.is_floating_point()]
            outputs = self.inner(*[fresh.get(id(each), each) for each in inputs], **{{
                name: fresh.get(id(each), each) for name, each in named.items()
            }})
            wanted += self.inner.parameters()
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            outputs = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
            total = sum((each * torch.cos(each.detach())).sum() for each in outputs)
            gradients = torch.autograd.grad(total, wanted, allow_unused=True)
        return [each.detach() for each in outputs] + [each for each in gradients if each is not None]
"""
ORIGIN = "gradients"


def gradient_case(texts: ProblemTexts, made: DropIn) -> tuple[Problem, Candidate]:
    """Reference and drop-in, both returning their outputs and the gradients of every input and weight.

    A verdict "correct" means that they are equal, also for other inputs and weights. "bad_problem" means that the
    reference itself has none, or none that rounding leaves alone.
    """
    problem = replace(texts.judged, source=_wrapped(texts.judged.source, KERNELBENCH_CLASS))
    source = _wrapped(texts.as_judged(made.judged).source, ENTRY)
    return problem, Candidate(problem_id=problem.problem_id, source=source, origin=ORIGIN)


def _wrapped(source: str, name: str) -> str:
    """The program with a module around the one that has this name."""
    inner = f"Plain{name}"
    return renamed(cst.parse_module(source), {name: inner}).code + _GRADIENTS.format(name=name, inner=inner)
