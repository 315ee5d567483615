"""The rewrite that replays a forward as a CUDA graph, honestly: inputs are copied in, outputs are copied out."""

import random
import re
from ast import literal_eval
from string import Template

import libcst as cst

from tasks.variants.capture import CAPTURED, COPIED, TIMED, named
from tasks.variants.names import defined_names, exchanged, names_besides, names_bound_in, renamed, walk
from tasks.variants.rewrites.constants import with_constants_filled
from tasks.variants.rewrites.forward import find_class, find_method
from tasks.variants.rewrites.graph import compiled
from tasks.variants.rewrites.reading import code_of
from tasks.variants.rewrites.triton import COMPUTED
from tasks.variants.rewrites.triton_program import CHOOSING, has_functions
from tasks.variants.rewriting import ENTRY, rewrite
from tasks.variants.scopes import own_name
from tasks.variants.text import parsed

CAPTURE = "capture"
"""The group of what wraps all that was made before it: nothing else applies to its text."""
_PREFIX = "graph"
_PLAIN = "PlainModel"
_COMPILATION = re.compile(r"torch\.compile(\(|$)")
_DECORATORS = frozenset({"torch.no_grad()", "torch.inference_mode()", "benchmarked", "copied"})
"""Of forward, besides compilers: what leaves arguments as they come."""
_HAS_COMPILED = re.compile(r"torch\.compile\b|ctypes")
_IMPORTS = "import functools\nimport random\nimport time\nimport weakref\nimport torch\nimport torch.nn as nn\n"
# The same in every candidate, so that a policy learns it once. What forward may read and somebody may replace are
# tensors, numbers and modes by their places; a forward that replaces one itself, draws random numbers or writes to its
# inputs is not captured, and the fastest way of all is taken.
_HELPERS = """

GRAPHS = weakref.WeakKeyDictionary()
MOST_CAPTURES = 8
PLAIN_KINDS = (bool, int, float, str, type(None))


def graph_form(module, inputs):
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return None
    form, device, with_gradients = [], None, torch.is_grad_enabled()
    for item in inputs:
        kind = type(item)
        if kind is torch.Tensor:
            if not item.is_cuda or (with_gradients and item.requires_grad):
                return None
            if device is None:
                device = torch.cuda.current_device()
            if item.get_device() != device:
                return None
            form += (item.shape, item.stride(), item.dtype)
        elif kind in PLAIN_KINDS:
            form += (kind, item)
        else:
            return None
    if device is None or torch.cuda.is_current_stream_capturing():
        return None
    if with_gradients and any(item.requires_grad for item in module.parameters()):
        return None
    autocast = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda")
    stream = torch._C._cuda_getCurrentRawStream(device)  # torch.cuda.current_stream takes as long as a small operator
    return (*form, device, stream, autocast, module.training)


def graph_members(module):
    members = []
    for part in module.modules():
        own = {} if type(part).__module__.startswith("torch.nn.") else vars(part)
        places = [(vars(part), "training", part.training)]
        for names in (own, part._parameters, part._buffers, part._modules):
            places += [(names, *item) for item in names.items()]
        for names, name, value in places:
            if isinstance(value, torch.Tensor):
                members.append((names, name, value, value.data_ptr()))
            elif isinstance(value, (nn.Module, *PLAIN_KINDS)):
                members.append((names, name, value, None))
    return members


def graph_fits(members):
    for names, name, value, address in members:
        if names.get(name) is not value or (address is not None and value.data_ptr() != address):
            return False
    return True


def graph_random_states():
    return random.getstate(), torch.get_rng_state().tolist(), torch.cuda.get_rng_state().tolist()


def graph_draws_again():
    # A capture that failed leaves the generator of random numbers thinking that it is still being captured.
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    fresh = torch.Generator(generator.device)
    fresh.set_state(generator.get_state())
    generator.graphsafe_set_state(fresh)


def graph_called(way, module, inputs):
    # Else a weight that autocast has cast for the call before would be found, which a later one has to cast itself.
    torch.clear_autocast_cache()
    return way(module, *inputs)


def graph_watched(call, module, inputs, members):
    # What is looked at before every call counts.
    graph_form(module, inputs)
    graph_fits(members)
    return call()


def graph_replayed(captured, inputs):
    graph, static, outputs = captured
    for place, item in zip(static, inputs):
        if isinstance(place, torch.Tensor):
            place.copy_(item)
    graph.replay()
    return graph_copied(outputs)
"""
_ENTRANCE = """
    def forward(self, *inputs, **named):
        form = None if named else graph_form(self, inputs)
        if form is None:
            return super().forward(*inputs, **named)
"""
# Where arguments may be named: whatever is captured takes them by position, and a call as they come.
_NAMED_ENTRANCE = Template("""
    def forward($signature):
        return $own.graph_forward($row)

    def graph_forward(self, *inputs):
        form = graph_form(self, inputs)
        if form is None:
            return PlainModel.forward(self, *inputs)
""")
_IN_A_ROW = Template("""

def graph_plain($own, $row):
    return PlainModel.forward($own, $given)
""")
_CLASS = """

class ModelNew(PlainModel):ENTRANCE
        graphs = GRAPHS.get(self)
        if graphs is None:
            graphs = GRAPHS[self] = {"captures": 0}
        made = graphs.get(form)
        if made is None or not graph_fits(made[0]):
            is_compiled = made is UNTIMED
            graphs["captures"] += not is_compiled
            is_known = is_compiled or graphs["captures"] <= MOST_CAPTURES
            made = graphs[form] = self.graph_made(inputs, is_compiled) if is_known else ([], None, None)
        _, way, captured = made
        if captured is not None:
            return graph_replayed(captured, inputs)
        return PLAINLY if way is None else way(self, *inputs)

    def graph_made(self, inputs, is_compiled):
        members = graph_members(self)
        of_tensors = [each for each in members if each[3] is not None]
        tensors = [value for _, _, value, _ in of_tensors]
        elsewhere = [each for each in of_tensors if not each[2].is_cuda or each[2].is_inference()]
        if elsewhere:
            # Until they are others, such as what forward moves to the device in its first call.
            return (elsewhere, None, None) if is_compiled else UNTIMED
        made, draws = ([], None, None), random.getstate()
        fork = torch.random.fork_rng([torch.cuda.current_device()])
        with fork, torch.inference_mode(False), torch.no_grad():
            before = [tensor.clone() for tensor in tensors]
            try:
                if self.graph_repeats(inputs, members, PlainModel.forward if is_compiled else graph_untimed):
                    made = self.graph_fastest(inputs, members) if is_compiled else self.graph_tried(inputs)
            except RuntimeError:
                graph_draws_again()
            finally:
                for names, name, value, _ in members:
                    names[name] = value
                for tensor, value in zip(tensors, before):
                    tensor.copy_(value)
                random.setstate(draws)
        return made

    def graph_repeats(self, inputs, members, plain):
        static = [graph_copied(item) for item in inputs]
        states = graph_random_states()
        outputs = torch.utils._pytree.tree_leaves(plain(self, *static))
        return (
            graph_fits(members)
            and len(graph_members(self)) == len(members)
            and states == graph_random_states()
            and all(item._version == 0 for item in static if isinstance(item, torch.Tensor))
            and all(item.is_cuda if type(item) is torch.Tensor else isinstance(item, PLAIN_KINDS) for item in outputs)
        )

    def graph_tried(self, inputs):
        static = [graph_copied(item) for item in inputs]
        for way in [COMPILED]:
            try:
                graph_called(way, self, static)
            except RuntimeError:
                graph_draws_again()
        return UNTIMED

    def graph_fastest(self, inputs, members):
        static, made, replayed = [graph_copied(item) for item in inputs], [], []
        for way in [WAYS]:
            call = functools.partial(graph_called, way, self, static)
            watched = call if way is PlainModel.forward else functools.partial(graph_watched, call, self, static, [])
            try:
                call()
                made.append((watched, ([], way, None)))
                captured = self.graph_captured(way, inputs)
            except RuntimeError:  # such as for want of memory, which another way may do without
                graph_draws_again()
                continue
            replay = functools.partial(graph_replayed, captured, static)
            watched = functools.partial(graph_watched, replay, self, static, members)
            replayed.append((watched, (members, None, captured)))
        made += replayed
        if len(made) < 2:
            return [], None, None
        best_ms, _ = graph_best_ms([call for call, _ in made])
        found = made[best_ms.index(min(best_ms))][1]
        if found[1] is PlainModel.forward and replayed:
            ModelNew.ENTERED = PlainModel.forward  # from now on nothing is looked at, which takes time too
            SETTLED
        return found
"""


_COMPILED = """

graph_compiled = COMPILED
"""
_UNTIMED = """

# To compile takes long, and others may be at work meanwhile, so which way is the fastest is timed at the next call.
UNTIMED = [({}, "", "what never fits", None)], graph_untimed, None
"""
_ALL_AT_ONCE = """

graph_untimed = PlainModel.forward
"""
_POSTPONING = """

def graph_untimed(module, *inputs):
    POSTPONED.append(True)
    try:
        return PlainModel.forward(module, *inputs)
    finally:
        POSTPONED.pop()
"""
_ASKING_LESS = """

def graph_without_asking():
    # Nor whether a kernel fits that was found not to pay.
    for number in {key[1] for key in FASTEST if key[0] == "fused"}:
        if not any(chosen[0] for key, chosen in FASTEST.items() if key[:2] == ("fused", number)):
            globals()[f"fused{number}"] = globals()[f"plain{number}"]
"""


@rewrite(CAPTURE)
def replay_as_graph(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Forward is captured once for each form of its inputs and replayed, where that is faster.

    The first call of a form compiles. At the second, the compiled forward and the plain one are both captured, and of
    the four ways the fastest is kept. Where that is the plain one, as for a single small operator, it takes the place
    of all this for good, for all instances and forms; a Triton kernel that did not pay is not asked for any longer
    then. Assumes that forward computes from inputs, parameters, buffers, and attributes that are tensors or numbers,
    and that what it reads besides does not change; that nobody hooks the modules inside; one thread at a time; that
    some hundred calls more at the first two leave nothing behind that a module does not show. It falls back to the
    plain forward on the CPU, where gradients are asked for, where forward draws random numbers, keeps something for the
    next call by replacing an attribute, or writes to its inputs, where capturing fails, and after eight captures of one
    module, such as of ever new shapes.
    """
    forward = find_method(program, "forward")
    if forward is None:
        return None
    compilation = _compilation(program, forward)
    plain = exchanged(program, {forward: forward.with_changes(decorators=[])}) if compilation else program
    taking = _that_takes_arguments(plain) if _may_name_arguments(program) else None
    entrance, entered = (_named_entrance(taking), "graph_forward") if taking else (_ENTRANCE, "forward")
    in_a_row = _in_a_row(taking.params) if taking else ""
    between = _COMPILED.replace("COMPILED", compilation) if compilation else ""
    between += (_POSTPONING if has_functions(program, CHOOSING) else _ALL_AT_ONCE) + _UNTIMED
    settled = "            graph_without_asking()\n" if has_functions(program, COMPUTED) else ""
    between += _ASKING_LESS if settled else ""
    ways = [f"{_PLAIN}.forward", *(["graph_compiled"] if compilation else [])]
    own = _CLASS.replace("WAYS", ", ".join(ways)).replace("COMPILED", ", ".join(ways[1:]))
    own = own.replace("ENTRANCE\n", entrance).replace("ENTERED", entered)
    own = own.replace("            SETTLED\n", settled)
    own = own.replace("PLAINLY", f"{_PLAIN}.forward(self, *inputs)" if taking else "super().forward(*inputs)")
    if in_a_row:
        between, own = (each.replace(f"{_PLAIN}.forward", "graph_plain") for each in (between, own))
    helpers = _HELPERS + named(TIMED + COPIED, _PREFIX) + in_a_row + between
    own_names = {_PLAIN, *names_bound_in(parsed(_IMPORTS + helpers).body)} - {"torch", "nn"}
    if own_names & names_besides(program, _IMPORTS):
        return None
    plain = renamed(with_constants_filled(plain), {ENTRY: _PLAIN})
    added = parsed(helpers + own + named(CAPTURED, _PREFIX)).body
    return plain.with_changes(body=[*parsed(_IMPORTS).body, *plain.body, *added])


def _may_name_arguments(program: cst.Module) -> bool:
    """Whether whoever calls the module may name what it gives: of a list that is written out it is known not to."""
    returned = [
        each.value
        for statement in program.body
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "get_inputs"
        for each in walk(statement)
        if isinstance(each, cst.Return)
    ]
    return not all(isinstance(value, cst.List) for value in returned)


def _that_takes_arguments(program: cst.Module) -> cst.FunctionDef | None:
    """The forward that names the arguments, and whose signature can be written again; None where there is no such.

    Others before it may hand on to it what they get, as where layers have another forward for the time of a call.
    """
    name = ENTRY
    while (forward := _only_forward(program, name)) is not None:
        parameters = forward.params
        if not isinstance(parameters.star_arg, cst.Param) and parameters.star_kwarg is None:
            defaults = (each.default for each in _parameters(parameters) if each.default is not None)
            can_be_written = own_name(forward) and all(map(_is_plain, defaults)) and "graph_forward" not in program.code
            return forward if can_be_written else None
        match find_class(program, name):
            case cst.ClassDef(bases=[cst.Arg(value=cst.Name(base))]) if _hands_on(forward):
                name = base
            case _:
                return None
    return None


def _only_forward(program: cst.Module, name: str) -> cst.FunctionDef | None:
    """The forward of a class, if it has one alone, whose decorators leave arguments as they are."""
    owner, forward = find_class(program, name), find_method(program, "forward", of=name)
    if owner is None or forward is None or sum("forward" in defined_names(each) for each in owner.body.body) > 1:
        return None
    decorators = (code_of(each.decorator) for each in forward.decorators)
    return forward if all(text in _DECORATORS or _COMPILATION.match(text) for text in decorators) else None


def _hands_on(forward: cst.FunctionDef) -> bool:
    """Whether all that it returns is what the forward of its base makes of its arguments as they come."""
    star, stars = forward.params.star_arg, forward.params.star_kwarg
    if not isinstance(star, cst.Param) or stars is None or len(_parameters(forward.params)) != 1:
        return False
    inputs, named = star.name.value, stars.name.value
    returned = [code_of(each.value) for each in walk(forward.body) if isinstance(each, cst.Return) and each.value]
    uses = sum(isinstance(each, cst.Name) and each.value in (inputs, named) for each in walk(forward.body))
    return {*returned} == {f"super().forward(*{inputs}, **{named})"} and uses == 2 * len(returned)


def _is_plain(value: cst.BaseExpression) -> bool:
    """Whether it is the same wherever it is written, and something that a form can have, as a number is."""
    try:
        return isinstance(literal_eval(code_of(value)), bool | int | float | str | None)
    except (ValueError, TypeError, SyntaxError):
        return False


def _parameters(parameters: cst.Parameters) -> list[cst.Param]:
    return [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]


def _named_entrance(forward: cst.FunctionDef) -> str:
    own, *names = (each.name.value for each in _parameters(forward.params))
    bare = {
        kind: [each.with_changes(annotation=None) for each in getattr(forward.params, kind)]
        for kind in ("posonly_params", "params", "kwonly_params")
    }
    signature = cst.Module([]).code_for_node(forward.params.with_changes(**bare))
    return _NAMED_ENTRANCE.substitute(signature=signature, own=own, row=", ".join(names))


def _in_a_row(parameters: cst.Parameters) -> str:
    """The plain forward for what comes by position alone; nothing where it takes that itself."""
    own, *names = (each.name.value for each in _parameters(parameters))
    named = [each.name.value for each in parameters.kwonly_params]
    given = [f"{name}={name}" if name in named else name for name in names]
    return _IN_A_ROW.substitute(own=own, row=", ".join(names), given=", ".join(given)) if named else ""


def _compilation(program: cst.Module, forward: cst.FunctionDef) -> str | None:
    """How the plain forward is compiled, if that is all that its decorators do."""
    texts = [program.code_for_node(decorator.decorator) for decorator in forward.decorators]
    return f"{texts[0]}({_PLAIN}.forward)" if len(texts) == 1 and _COMPILATION.match(texts[0]) else None


@rewrite("graph")
def compile_and_replay(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """What the compiler makes of forward is replayed as replay_as_graph does it, and assumes the same.

    The compiler sees the steps that a Triton kernel replaces; the plain forward has the kernel.
    """
    changed = compiled(program, "torch.compile", unless=_HAS_COMPILED)
    return None if changed is None else replay_as_graph.apply(changed, rng)
