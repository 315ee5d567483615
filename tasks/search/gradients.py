"""Gradients as a problem of their own, so that the judge compares those of a drop-in with those of the reference."""

from tasks.problems.problem import Problem
from tasks.search.drop_in import DropIn
from tasks.search.texts import ProblemTexts
from tasks.search.wrapping import wrapped_case
from tasks.variants.candidate import Candidate

_ANSWER = """
with torch.enable_grad():
    leaves = [each for each in (*inputs, *named.values()) if isinstance(each, torch.Tensor)]
    fresh = {id(each): each.detach().clone() for each in leaves}
    wanted = [each.requires_grad_() for each in fresh.values() if each.is_floating_point()]
    outputs = self.inner(
        *[fresh.get(id(each), each) for each in inputs],
        **{name: fresh.get(id(each), each) for name, each in named.items()},
    )
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
    return wrapped_case(texts.judged, texts.as_judged(made.judged), answer=_ANSWER, origin=ORIGIN)
