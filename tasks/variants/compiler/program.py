"""Puts a candidate together: the reference, what was emitted for it, and a ModelNew that chooses between the two."""

import ast
import re
from collections.abc import Sequence
from textwrap import indent
from typing import Protocol

import libcst as cst

from tasks.problems.parsing import parsed
from tasks.variants.compiler.emission import Emission, NotSelfContainedError, Variation
from tasks.variants.compiler.wrapper import LIBRARY, STRIDED, VIEW, Kernel, read_wrapper
from tasks.variants.layout import laid_out
from tasks.variants.names import defined_names, reachable

REFERENCE = "Model"
_HELPERS = {
    VIEW: """
def view(tensor, size, stride, offset):
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)
""",
    STRIDED: """
def strided(tensor, size, stride):
    if tensor.stride() == stride:
        return tensor
    return torch.empty_strided(size, stride, dtype=tensor.dtype).copy_(tensor)
""",
}
_FITS = """
def fits(model, tensors):
    if {guard}torch.is_autocast_enabled("{device}") or torch.jit.is_tracing():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0:
        return False
    if any({other_mode} for part in model.modules()):
        return False
    for tensor, form in zip(tensors, FORMS):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != "{device}":
            return False
        if (tensor.dtype, tensor.shape, tensor.stride()) != form or tensor.is_neg():
            return False
        if tensor.requires_grad and torch.is_grad_enabled():
            return False
    return True
"""
_MODEL = """
class ModelNew(Model):
{constructor}
    def forward({parameters}):
        tensors = ({places})
        if {condition}:
            return compiled(*tensors)
        return super().forward({call})
"""
_CONSTRUCTOR = """
    def __init__({parameters}):
        super().__init__({call})
        self.is_as_compiled = repr(({values})) == repr(({expected}))
"""


class Emitter(Protocol):
    """What is particular to one kind of native code; loops in C++ on the CPU are one."""

    device: str
    """Where its candidates run."""
    compiler: str
    """The program that must be installed."""
    variations: tuple[Variation, ...]

    def native(self, kernels: tuple[Kernel, ...], *, vector_isa: str) -> str:
        """Python text that defines `run(kernel, *tensors)`, and `library` with the kernels as attributes, or false."""
        ...


def program_of(source: str, emission: Emission, emitter: Emitter) -> str:
    """The text of a candidate.

    Args:
        source: the problem's.
        emission: made from that problem by a variation of the emitter's.

    Raises:
        NotSelfContainedError: if what was emitted cannot stand alone, or the reference cannot be kept beside it.
    """
    reference = cst.parse_module(source.removeprefix("\ufeff"))
    needed = reachable(reference, roots=(REFERENCE,))
    kept = [statement for statement in reference.body if statement in needed or not defined_names(statement)]
    own = cst.parse_module(_emitted(emission, emitter)).body
    taken = _names(kept) & _names(own) - {"torch"}
    if taken:
        raise NotSelfContainedError(f"the reference has a {', '.join(sorted(taken))} of its own")
    model = cst.parse_module(_model(source, emission)).body
    return laid_out(reference.with_changes(body=[*kept, *own, *model])).code


def _names(statements: Sequence[cst.CSTNode]) -> set[str]:
    return {name for statement in statements for name in defined_names(statement)}


def _emitted(emission: Emission, emitter: Emitter) -> str:
    """The kernels, the function `compiled` that calls them, and `fits`."""
    wrapper = read_wrapper(emission.wrapper)
    if len(wrapper.arguments) != len(emission.tensors):
        raise NotSelfContainedError("Inductor's function takes other tensors than the graph")
    body = ast.unparse(ast.Module([*wrapper.body[:-1], _returning(wrapper.body[-1], emission)], []))
    native, guard = "", ""
    if wrapper.kernels:
        native = emitter.native(wrapper.kernels, vector_isa=emission.vector_isa)
        guard = f"not {LIBRARY} or "
    forms = "".join(f"    {form},\n" for form in (*emission.tensors, *emission.looked_at))
    return "\n".join(
        [
            native or "import torch\n",
            *(helper for name, helper in _HELPERS.items() if re.search(rf"\b{name}\(", body)),
            f"def compiled({', '.join(wrapper.arguments)}):\n{indent(body, '    ')}\n",
            f"FORMS = (\n{forms})\n",
            _FITS.format(
                other_mode="not part.training" if emission.is_training else "part.training",
                device=emitter.device,
                guard=guard,
            ),
        ]
    )


def _returning(statement: ast.stmt, emission: Emission) -> ast.Return:
    match statement:
        case ast.Return(value=ast.Tuple(elts=values)) if len(values) == emission.num_returned:
            if emission.returned == "tensor":
                return ast.Return(values[0])
            kind = ast.List if emission.returned == "list" else ast.Tuple
            return ast.Return(kind(values, ast.Load()))
    raise NotSelfContainedError("Inductor's function returns something else than the reference")


def _model(source: str, emission: Emission) -> str:
    methods = _methods(source)
    if "forward" not in methods:
        raise NotSelfContainedError(f"{REFERENCE} has no forward of its own")
    conditions = [f"repr({name}) == {text!r}" for name, text in emission.constants.items()]
    constructor = ""
    if "__init__" in methods:
        parameters, call = _signature(methods["__init__"])
        values = "".join(f"{name}, " for name in emission.constructor)
        expected = "".join(f"{text}, " for text in emission.constructor.values())
        constructor = _CONSTRUCTOR.format(parameters=parameters, call=call, values=values, expected=expected)
        conditions.insert(0, "self.is_as_compiled")
    elif not set(emission.constructor.values()) <= {"()", "{}"}:
        raise NotSelfContainedError(f"{REFERENCE} has no constructor of its own")
    if methods["forward"].args.vararg or methods["forward"].args.kwarg:
        raise NotSelfContainedError("forward takes arguments without names of their own")
    parameters, call = _signature(methods["forward"])
    if {"tensors", "compiled", "fits"} & set(re.findall(r"\w+", parameters)):
        raise NotSelfContainedError("a parameter of forward has a name that is needed")
    places = "".join(f"{form.place}, " for form in emission.tensors)
    others = "".join(f", {form.place}" for form in emission.looked_at)
    condition = " and ".join([*conditions, f"fits(self, (*tensors{others}))" if others else "fits(self, tensors)"])
    return _MODEL.format(constructor=constructor, parameters=parameters, call=call, places=places, condition=condition)


def _methods(source: str) -> dict[str, ast.FunctionDef]:
    for node in parsed(source.removeprefix("\ufeff")).body:
        if isinstance(node, ast.ClassDef) and node.name == REFERENCE:
            return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    raise NotSelfContainedError(f"{REFERENCE} is not a class of the file's top level")


def _signature(method: ast.FunctionDef) -> tuple[str, str]:
    """A method's parameters without annotations, and the arguments that pass them on."""
    parameters = method.args
    if parameters.posonlyargs or method.decorator_list:
        raise NotSelfContainedError(f"{method.name} takes arguments in a way that cannot be passed on")
    if parameters.args[0].arg != "self":
        raise NotSelfContainedError(f"{method.name} does not call its object self")
    all_others = [each for each in (parameters.vararg, parameters.kwarg) if each is not None]
    for each in (*parameters.args, *parameters.kwonlyargs, *all_others):
        each.annotation = None
    passed = [each.arg for each in parameters.args[1:]]
    passed += [f"*{parameters.vararg.arg}"] if parameters.vararg else []
    passed += [f"{each.arg}={each.arg}" for each in parameters.kwonlyargs]
    passed += [f"**{parameters.kwarg.arg}"] if parameters.kwarg else []
    return ast.unparse(parameters), ", ".join(passed)
