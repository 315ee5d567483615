"""What a call leaves besides numbers, as a problem of its own: how outputs are nested, buffers, attributes.

The judge compares the values of outputs. Whoever puts a drop-in in the place of their module relies on more: that it
returns their NamedTuple, and that what its forward counts or keeps is counted and kept.
"""

from dataclasses import replace

import libcst as cst
import libcst.matchers as m

from tasks.problems.problem import Problem
from tasks.search.drop_in import ENTRY, DropIn
from tasks.search.texts import ProblemTexts
from tasks.search.user_file import KERNELBENCH_CLASS, UserFile
from tasks.variants.candidate import Candidate
from tasks.variants.names import renamed

_EFFECTS = '''


class {name}(__import__("torch").nn.Module):
    def __init__(self, *arguments, **options):
        super().__init__()
        self.inner = {inner}(*arguments, **options)

    def forward(self, *inputs, **named):
        """All is put back afterwards, so that equal calls give equal answers."""
        import torch

        tensors = []

        def told(value):
            if isinstance(value, torch.Tensor):
                tensors.append(value.detach().clone())
                return "tensor"
            kind = type(value).__name__
            if isinstance(value, float):
                tensors.append(torch.tensor(value, dtype=torch.float64))
            if isinstance(value, dict):
                return f"{{kind}}({{', '.join(f'{{key!r}}: {{told(each)}}' for key, each in value.items())}})"
            if isinstance(value, (list, tuple)):
                names = getattr(value, "_fields", range(len(value)))
                return f"{{kind}}({{', '.join(f'{{name}}: {{told(each)}}' for name, each in zip(names, value))}})"
            return repr(value) if isinstance(value, (bool, int, str, type(None))) else kind

        modules = [*self.inner.modules()]
        places = [(module._buffers, name) for module in modules for name in module._buffers]
        places += [(vars(module), name) for module in modules for name in {watched!r} if name in vars(module)]
        before = [(values, name, values[name], _copied(values[name])) for values, name in places]
        absent = [(vars(module), name) for module in modules for name in {watched!r} if name not in vars(module)]
        with torch.no_grad():
            words = told(self.inner(*inputs, **named))
            for values, name, value, copy in before:
                words += f"; {{name}}: {{told(values.get(name))}}"
                values[name] = value
                if isinstance(value, torch.Tensor):
                    value.copy_(copy)
        for values, name in absent:
            if name in values:
                words += f"; {{name}}: {{told(values.pop(name))}}"
        device = next((each.device for each in tensors), None)
        return [*tensors, torch.tensor(list(words.encode()), dtype=torch.uint8, device=device)]


def _copied(value):
    import copy

    return copy.deepcopy(value.detach()) if hasattr(value, "detach") else value
'''
ORIGIN = "effects"


def effects_case(file: UserFile, texts: ProblemTexts, made: DropIn) -> tuple[Problem, Candidate]:
    """Reference and drop-in, both returning their outputs, how those are nested, and what a call leaves in the module.

    Looked at are all buffers, and the attributes that methods of the file assign to after the constructor. A verdict
    "correct" means that they are equal. "bad_problem" means that the reference's own cannot be compared.
    """
    watched = tuple(sorted(_assigned(file.source)))
    problem = replace(texts.judged, source=_wrapped(texts.judged.source, KERNELBENCH_CLASS, watched))
    source = _wrapped(texts.as_judged(made.judged).source, ENTRY, watched)
    return problem, Candidate(problem_id=problem.problem_id, source=source, origin=ORIGIN)


def _wrapped(source: str, name: str, watched: tuple[str, ...]) -> str:
    """The program with a module around the one that has this name."""
    inner = f"Plain{name}"
    program = renamed(cst.parse_module(source), {name: inner}).code
    return program + _EFFECTS.format(name=name, inner=inner, watched=watched)


def _assigned(source: str) -> set[str]:
    """Attributes of self that methods other than constructors assign to."""
    assigned: set[str] = set()
    constructor = m.FunctionDef(name=m.Name("__init__"))
    for method in m.findall(cst.parse_module(source), m.FunctionDef()):
        if not m.matches(method, constructor):
            found = m.findall(method, m.AssignTarget() | m.AugAssign() | m.AnnAssign())
            attributes = [each for target in found for each in m.findall(target.target, _OF_SELF)]  # type: ignore[attr-defined]
            assigned |= {attribute.attr.value for attribute in attributes}  # type: ignore[attr-defined]
    return assigned


_OF_SELF = m.Attribute(value=m.Name("self"), attr=m.Name())
