"""What a call leaves besides numbers, as a problem of its own: how outputs are nested, buffers, attributes.

The judge compares the values of outputs. Whoever puts a drop-in in the place of their module relies on more: that it
returns their NamedTuple, and that what its forward counts or keeps is counted and kept.
"""

from dataclasses import replace

import libcst as cst
import libcst.matchers as m

from tasks.problems.problem import Problem
from tasks.search.drop_in import DropIn
from tasks.search.names import all_spelt_out
from tasks.search.texts import ProblemTexts, judged_source
from tasks.search.user_file import UserFile
from tasks.search.wrapping import wrapped_case
from tasks.variants.candidate import Candidate

_ANSWER = """
import copy
import dataclasses

tensors = []

def told(value):
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().clone())
        return "tensor"
    kind = type(value).__name__
    if isinstance(value, float):
        tensors.append(torch.tensor(value, dtype=torch.float64))
    if isinstance(value, dict):
        return f"{kind}({', '.join(f'{key!r}: {told(each)}' for key, each in value.items())})"
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", range(len(value)))
        return f"{kind}({', '.join(f'{name}: {told(each)}' for name, each in zip(names, value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [each.name for each in dataclasses.fields(value)]
        return f"{kind}({', '.join(f'{name}: {told(getattr(value, name))}' for name in fields)})"
    return repr(value) if isinstance(value, (bool, int, str, type(None))) else kind

def copied(value):
    return copy.deepcopy(value.detach()) if hasattr(value, "detach") else value

# what is looked at is put back, but for what lists and objects hold, so that equal calls give equal answers
modules = [*self.inner.modules()]
places = [(module._buffers, name) for module in modules for name in module._buffers]
places += [(vars(module), name) for module in modules for name in watched if name in vars(module)]
before = [(values, name, values[name], copied(values[name])) for values, name in places]
absent = [(vars(module), name) for module in modules for name in watched if name not in vars(module)]
with torch.no_grad():
    words = told(self.inner(*inputs, **named))
    for values, name, value, kept in before:
        words += f"; {name}: {told(values.get(name))}"
        values[name] = value
        if isinstance(value, torch.Tensor):
            value.copy_(kept)
for values, name in absent:
    if name in values:
        words += f"; {name}: {told(values.pop(name))}"
device = next((each.device for each in tensors), None)
return [*tensors, torch.tensor(list(words.encode()), dtype=torch.uint8, device=device)]
"""
ORIGIN = "effects"


def effects_case(file: UserFile, texts: ProblemTexts, made: DropIn) -> tuple[Problem, Candidate]:
    """Reference and drop-in, both returning their outputs, how those are nested, and what a call leaves in the module.

    Looked at are all buffers, and the attributes of self that methods of the file other than constructors assign to. A
    verdict "correct" means that they are equal. "bad_problem" means that the reference's own cannot be compared.
    """
    named = replace(file, source=all_spelt_out(cst.parse_module(file.source)).code)
    reference = replace(texts.judged, source=judged_source(named, texts.prefix))
    answer = f"watched = {tuple(sorted(_assigned(named.source)))!r}\n{_ANSWER}"
    return wrapped_case(reference, texts.as_judged(made.judged), answer=answer, origin=ORIGIN)


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
