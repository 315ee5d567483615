"""Reads the module that Inductor emits: its kernels, and the statements that call them without Inductor's names."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.variants.compiler.emission import NotSelfContainedError

RUN, LIBRARY, VIEW, STRIDED = "run", "library", "view", "strided"
"""What the statements expect the program to define."""
_EXTERN = {"mm", "addmm", "bmm", "baddbmm", "convolution"}
"""Of Inductor's names for torch's functions, those that torch knows under the same name and with the same arguments."""
_KNOWN = {RUN, LIBRARY, VIEW, STRIDED, "torch"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One native function."""

    name: str
    maker: str
    """How Inductor makes it, such as "cpp_pybinding"."""
    parameters: tuple[str, ...]
    """Their types, where the maker is told them."""
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrapper:
    """A module of Inductor's, taken apart."""

    kernels: tuple[Kernel, ...]
    arguments: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    """Of a function of the arguments; it ends by returning a tuple."""


def read_wrapper(text: str) -> Wrapper:
    """Take a module of Inductor's apart.

    Raises:
        NotSelfContainedError: if something in it works only within Inductor.
    """
    tree = ast.parse(text)
    kernels = tuple(_kernels(tree))
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call"), None)
    if call is None:
        raise NotSelfContainedError("Inductor emitted no function call")
    arguments: tuple[str, ...] = ()
    body = list[ast.stmt]()
    for statement in call.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id="args")):
                arguments = tuple(name.id for name in names if isinstance(name, ast.Name))
            case ast.Delete(targets=targets):
                kept = [each for each in targets if not (isinstance(each, ast.Name) and each.id in arguments)]
                body += [ast.Delete(targets=kept)] if kept else []
            case ast.Expr(value=ast.Call(func=function, args=operands)) if _is_check(function, operands):
                continue
            case _:
                body.append(ast.fix_missing_locations(_Freed({kernel.name for kernel in kernels}).visit(statement)))
    _require_known(body, arguments)
    return Wrapper(kernels=kernels, arguments=arguments, body=tuple(body))


def _kernels(tree: ast.Module) -> Iterator[Kernel]:
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="async_compile"), attr=maker), args=operands),
            ):
                *first, source = [ast.literal_eval(operand) for operand in operands]
                parameters = tuple(first[0]) if first and isinstance(first[0], list) else ()
                yield Kernel(name=name, maker=maker, parameters=parameters, source=source)


def _is_check(function: ast.expr, operands: list[ast.expr]) -> bool:
    """Whether a call only empties the list of arguments or looks at inputs, which the candidate does by itself."""
    match function:
        case ast.Attribute(value=ast.Name(id="args"), attr="clear"):
            return True
        case ast.Name(id="assert_size_stride"):
            return isinstance(operands[-1], ast.Constant) and operands[-1].value == "input"
    return isinstance(function, ast.Name) and function.id == "assert_alignment"


class _Freed(ast.NodeTransformer):
    """Replaces Inductor's names by torch's and by the program's own."""

    def __init__(self, kernels: set[str]) -> None:
        self.kernels = kernels

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Name(id="assert_size_stride"), args=[ast.Name(id=name), size, stride, *_]):
                # What another build of the operator may lay out differently is laid out anew instead.
                made = ast.Call(_name(STRIDED), [_name(name), size, stride], [])
                return ast.Assign(targets=[ast.Name(name, ast.Store())], value=made)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Name(id="empty_strided_cpu"):
                size, stride, dtype = node.args
                return ast.Call(_torch("empty_strided"), [size, stride], [ast.keyword("dtype", dtype)])
            case ast.Name(id="reinterpret_tensor"):
                return ast.Call(_name(VIEW), node.args, node.keywords)
            case ast.Name(id=name) if name in self.kernels:
                return ast.Call(_name(RUN), [_attribute(_name(LIBRARY), name), *node.args], node.keywords)
            case ast.Attribute(value=ast.Name(id="extern_kernels"), attr=name) if name in _EXTERN:
                return ast.Call(_torch(name), node.args, node.keywords)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _attribute(_torch("ops"), "aten") if node.id == "aten" else node


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _attribute(value: ast.expr, name: str) -> ast.Attribute:
    return ast.Attribute(value, name, ast.Load())


def _torch(name: str) -> ast.Attribute:
    return _attribute(_name("torch"), name)


def _require_known(body: list[ast.stmt], arguments: tuple[str, ...]) -> None:
    names = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    unknown = {node.id for node in names} - assigned - set(arguments) - _KNOWN
    if unknown:
        raise NotSelfContainedError(f"the emitted code uses Inductor's {', '.join(sorted(unknown))}")
