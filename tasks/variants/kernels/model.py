"""ModelNew as the kernels see it: what its attributes and its inputs are, and the statements of its forward."""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tasks.variants.attributes import ANY_MODULE, ANYTHING, attributes_given, made_by_torch
from tasks.variants.kernels.calls import layer_made
from tasks.variants.kernels.inputs import assign_all, read_inputs, returned, returns_all
from tasks.variants.kernels.methods import matters_to_nobody
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.statements import names_of, names_stored, one_by_one, settled
from tasks.variants.kernels.values import Layer, Tensor, is_size
from tasks.variants.names import words

OUT_SHAPE = "out_shape"
_CONTAINERS = ("Sequential", "ModuleList")
_HOOKS_OF_TENSORS = ("register_hook", "register_post_accumulate_grad_hook")
_OF_NO_ACCOUNT = words("data grad requires_grad training")
"""Attributes, of weights and modules, that change neither what a layer is nor the shapes of its weights."""


@dataclass(frozen=True, slots=True)
class Model:
    forward: ast.FunctionDef
    """With the branches that its arguments decide by being None or not as assertions that they are."""
    shapes: Shapes
    """Values of the attributes and of forward's arguments, which are what they are by default where none is given."""
    arguments: tuple[str, ...]
    """Names of forward's arguments without self."""


def read_model(code: str) -> Model | None:
    """ModelNew of a program that also has get_inputs, or None where the program is not of the usual form."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # some programs are broken on purpose
        return None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    model = classes.get("ModelNew")
    if model is None or "get_inputs" not in functions:
        return None
    methods = {node.name: node for node in model.body if isinstance(node, ast.FunctionDef)}
    forward = methods.get("forward")
    others = [method for name, method in methods.items() if name not in ("__init__", "forward")]
    if forward is None or not all(matters_to_nobody(each, methods) for each in others):
        return None
    constants = Shapes({})
    assign_all(tree.body, constants)
    inputs = read_inputs(forward, functions["get_inputs"], constants)
    if inputs is None:
        return None
    forward = ast.FunctionDef(
        forward.name, forward.args, settled(forward.body, dict(inputs.is_none)), forward.decorator_list
    )
    if _has_effects(forward):
        return None
    values = inputs.values | dict(_results(functions.values(), constants))
    if "__init__" in methods:
        initial = returned(functions["get_init_inputs"], constants) if "get_init_inputs" in functions else ()
        is_known = "get_init_inputs" not in functions or returns_all(functions["get_init_inputs"])
        names = [argument.arg for argument in methods["__init__"].args.args[1:]]
        defaults = _defaults(methods["__init__"], constants) if is_known else {}
        given = dict(zip(names, initial, strict=False)) if is_known else {}
        scope = Shapes({**constants.values, **dict.fromkeys(names), **defaults, **given})
        values |= dict(_attributes(methods["__init__"], scope, constants, classes))
    return Model(forward, Shapes(values), inputs.names)


def settings(code: str) -> dict[str, object]:
    """Values that the constructor of ModelNew gives attributes by literals, and those of modules inside likewise."""
    classes = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)}
    init = next((each for each in classes["ModelNew"].body if _is_constructor(each)), None)
    return dict(_attributes(init, Shapes({}), Shapes({}), classes)) if isinstance(init, ast.FunctionDef) else {}


def handed_on(init: ast.AST) -> Iterator[str]:
    """Attributes of self that are given to a call which may make other modules of them, or are given hooks.

    ANYTHING stands for all of them, where the text does not tell which.
    """
    yield from (name for name in hooked(init) if name)
    statements = {node.value for node in ast.walk(init) if isinstance(node, ast.Expr)}
    for node in ast.walk(init):
        if not isinstance(node, ast.Call) or layer_made(node) in _CONTAINERS:
            continue
        for each in (*node.args, *(word.value for word in node.keywords)):
            if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
                yield each.attr
            elif node in statements and not _is_about_weights(node, each) and (owner := _attribute_of_self(each)):
                yield owner


def _is_about_weights(call: ast.Call, given: ast.expr) -> bool:
    """Whether a call is given what is within a module only to fill it, as nn.init.zeros_ is."""
    return ast.unparse(call.func).endswith("_") or getattr(given, "attr", "") in ("weight", "bias")


def hooked(tree: ast.AST) -> Iterator[str]:
    """Attributes of self that hooks are registered at, or at what is in them; "" is self, and ANYTHING any of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=name) if name.startswith("register_"):
                whose = _attribute_of_self(value)
                if whose or (name.endswith("hook") and name not in _HOOKS_OF_TENSORS):
                    yield ANYTHING if whose is None else whose


def changed(init: ast.FunctionDef) -> Iterator[str]:
    """Attributes of self that need not be what the first assignment says; ANYTHING where the text does not tell which.

    Those of them that are modules may be handed on or hooked, replaced, or given other attributes.
    """
    yield from handed_on(init)
    local = {name for name in made_by_torch(init) if not name.startswith("self.")}
    times = Counter[str]()
    for whose, name in attributes_given(init):
        match ast.parse(f"[{whose}]", mode="eval").body:
            case ast.List(elts=[node]):  # which may be starred
                owner = _attribute_of_self(node)
            case _:
                owner = None
        if owner == "":
            times[name] += 1
        elif name not in _OF_NO_ACCOUNT and whose not in local:
            yield ANYTHING if owner is None else owner
    yield from (name for name, count in times.items() if count > 1)
    if times[ANYTHING] or times[ANY_MODULE]:
        yield ANYTHING


def _attribute_of_self(node: ast.expr) -> str | None:
    """The first attribute of a path from self; "" for self itself, and None where no such path is told."""
    name: str | None = ""
    while isinstance(node, ast.Attribute | ast.Subscript):
        name = node.attr if isinstance(node, ast.Attribute) and node.attr not in ("_modules", "__dict__") else None
        node = node.value
    return name if ast.unparse(node) in ("self", "super()") else None


def _changed_attributes(init: ast.FunctionDef) -> Iterator[str]:
    """For every assignment to an attribute of self, or to one of that, the name of the former."""
    for node in ast.walk(init):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            owner: ast.expr = node
            while isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self":
                yield owner.attr


def _is_plain(arguments: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    """Whether a call names all that it passes."""
    return not any(isinstance(each, ast.Starred) for each in arguments) and all(word.arg for word in keywords)


def _defaults(function: ast.FunctionDef, scope: Shapes) -> dict[str, object]:
    """Values of the arguments that may be left out."""
    positional = function.args.args[len(function.args.args) - len(function.args.defaults) :]
    given = zip(positional, function.args.defaults, strict=True)
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {argument.arg: scope.of(value) for argument, value in (*given, *named)}


def _is_constructor(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _has_effects(forward: ast.FunctionDef) -> bool:
    """Whether something is changed in place or named within an expression, so that the order of all that matters."""
    for node in ast.walk(forward):
        match node:
            case ast.Attribute(attr=name) if name.endswith("_") and not name.endswith("__"):
                return True
            case ast.keyword(arg="out" | "inplace") | ast.AugAssign() | ast.NamedExpr():
                return True
            case ast.Lambda(args=arguments) if any(
                isinstance(each, ast.arg) and each.arg in names_stored(forward) for each in ast.walk(arguments)
            ):
                return True  # its name would be taken for the variable, which may get another
            case ast.Assign(targets=targets) if any(names_of(target) is None for target in targets):
                return True
    return False


def _is_of_a_rewrite(function: ast.FunctionDef) -> bool:
    return re.fullmatch(r"(fused|product|convolution)\d+", function.name) is not None


def _results(functions: Iterable[ast.FunctionDef], scope: Shapes) -> Iterator[tuple[str, object]]:
    """What functions of earlier rewrites return, who say so in an argument that nobody gives."""
    for function in filter(_is_of_a_rewrite, functions):
        match _defaults(function, scope).get(OUT_SHAPE):
            case tuple() as shape if all(map(is_size, shape)):
                yield f"{function.name}()", Tensor(shape)


def _attributes(
    init: ast.FunctionDef, scope: Shapes, constants: Shapes, classes: Mapping[str, ast.ClassDef]
) -> Iterator[tuple[str, object]]:
    """Attributes of self with their values; a constructor argument kept as it is counts as a number.

    Those of modules inside come as well, where the file has their class. What is assigned anywhere else too, changed
    afterwards, hooked or given another parametrization is not known.
    """
    scope = Shapes({name: value for name, value in scope.values.items() if name not in names_stored(init)})
    changing, unsure = Counter(_changed_attributes(init)), set(changed(init))
    for statement in itertools.chain.from_iterable(map(one_by_one, init.body)):
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]) if changing[name] > 1:
                continue
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                value=ast.Call(func=ast.Name(id=made), args=args, keywords=keywords),
            ) if made in classes and _is_plain(args, keywords):
                inner = next((each for each in classes[made].body if _is_constructor(each)), None)
                if isinstance(inner, ast.FunctionDef):
                    parameters = [argument.arg for argument in inner.args.args[1:]]
                    given = _defaults(inner, constants) | dict(zip(parameters, map(scope.of, args), strict=False))
                    given |= {word.arg: scope.of(word.value) for word in keywords if word.arg}
                    inner_scope = Shapes({**constants.values, **given})
                    for attribute, value in _attributes(inner, inner_scope, constants, classes):
                        yield f"self.{name}.{attribute.removeprefix('self.')}", value
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                found = scope.of(value)
                if not (isinstance(found, Layer) and unsure & {name, ANYTHING}):
                    yield f"self.{name}", found
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=str() as name), value, *_]
                )
            ):
                yield f"self.{name}", scope.of(value)
