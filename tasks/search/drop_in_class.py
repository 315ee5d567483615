"""The class that a drop-in file adds. Its text is copied into the file: it uses nothing of this project.

What is not defined here stands for what the file has: Reference, Fast, FORMS, NAMED_FORMS, TRAINING, DEVICE, JUDGED,
ALIKE (the constructors of both classes make the same), CLASSES (what the file's classes had when it had been read).
"""

# ruff: noqa: F821, B008
# mypy: ignore-errors

import contextlib
import functools
import hashlib
import itertools
import operator
import random
import sys
import threading
import types
import warnings
import weakref

import torch


class DropIn(Reference):
    __doc__ = Reference.__doc__
    _made_from = None
    _fast = None

    @functools.wraps(Reference.__init__)
    def __init__(self, *arguments, **options):
        made_from = _kept(arguments, options)  # before anything can change them
        super().__init__(*arguments, **options)
        self._made_from = made_from
        self._fast = None

    @functools.wraps(Reference.forward)
    def forward(self, *inputs, **named):
        if (
            not torch.is_grad_enabled()
            and type(self) is DropIn
            and (TRAINING is None or self.training is TRAINING)
            and not torch.compiler.is_compiling()
            and _is_usual()
            and (call := _as_judged(inputs, named)) is not None
            and (fast := self._as_fast()) is not None
        ):
            if torch.is_inference_mode_enabled() in self._fast.has_run:
                return fast.forward(*call[0], **call[1])
            return self._fast.run_first(fast, *call, lambda: super(DropIn, self).forward(*inputs, **named))
        return super().forward(*inputs, **named)

    def __getstate__(self):
        """Without the fast module, which is made again where it is needed."""
        own, added = vars(self), self._fast.added if self._fast else ()
        state = super().__getstate__()
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name not in added}
            return state | {"_fast": None} if "_fast" in state else state
        hidden = {name: own.pop(name) for name in added if name in own}
        try:
            state = super().__getstate__() if hidden else state
            return tuple(dict(own) if each is own else each for each in state) if type(state) is tuple else state
        finally:
            own.update(hidden)

    def _as_fast(self):
        """This module as one of the fast class, for one call; None where it is not what was judged.

        Nothing keeps it: it would be kept by its own attributes, and both would wait for the garbage collector.
        """
        twin = self._fast
        if self._made_from is not None and (twin is None or (twin.module is None and not twin.fits(self))):
            with _Twin.making:
                if self._fast is twin:  # or another thread was here first
                    self._fast = _Twin(self)
            twin = self._fast
        # A replica has a copy of another module's attributes, the twin included, which watches the other's weights.
        if twin is None or twin.module is None or twin.served() is not self or not twin.fits(self):
            return None
        fast = object.__new__(twin.module)
        object.__setattr__(fast, "__dict__", vars(self))
        return fast


class _Forward:
    """The forward of a class whose parameters torch.fx can only tell from the function itself."""

    def __init__(self, function):
        self.function = function

    def __get__(self, served, kind=None):
        if served is not None:
            return self.function.__get__(served)
        return super(DropIn, kind).forward if torch.fx._symbolic_trace._is_fx_tracing_flag else self.function


class _Once:
    """Arguments of a constructor that are no plain data: for the first fast call, neither copied nor pickled."""

    def __init__(self, made_from):
        self.made_from = made_from

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        return str, ("the arguments it was made with are no plain data, which alone is kept in copies",)

    def take(self):
        made_from, self.made_from = self.made_from, self.__reduce__()[1][0]
        return made_from


class _Twin:
    """How the fast class serves a module: what it added to it, and whether the module still is what was judged.

    There is no fast class as long as it is not. Nothing here keeps the module or the mapping of its attributes.
    """

    making = threading.RLock()

    def __init__(self, served):
        self.served = weakref.ref(served)
        self.module = None
        self.has_run = set()  # in which of inference mode and not: what one has made, the other may not write to
        self.added = ()
        self._others = [*served.modules()][1:]
        self._tensors, self._absent = [], []
        self._first = None
        self._dtype = torch.get_default_dtype()
        kind = None
        try:
            if _described(served) != JUDGED:
                words = "it was judged with other arguments, attributes, modes, dtypes or devices, or by other versions"
                warnings.warn(f"{type(served).__name__} stays as slow as it was: {words}", stacklevel=5)
            elif ALIKE and isinstance(Fast, type):
                kind = Fast
            else:  # a function where the candidate is one, or where its text failed, which it says
                kind, self.added = self._shared(served)
            self._watch(served)
            self.module = kind
        except Exception as error:  # noqa: BLE001 - whatever it is, the module has to serve
            self._give_up(served, error)

    def __reduce__(self):
        return type(None), ()

    def run_first(self, fast, inputs, named, reference):
        """Answer by the fast module, which may have to compile; where it fails and the reference does not, for good."""
        try:
            outputs = fast.forward(*inputs, **named)
        except Exception as error:  # noqa: BLE001 - as above
            reason = str(error)  # not the error itself, which keeps all that the call has allocated
        else:
            self.has_run.add(torch.is_inference_mode_enabled())
            return outputs
        outputs = reference()
        self._give_up(self.served(), reason)
        return outputs

    def _give_up(self, served, reason):
        warnings.warn(f"{type(served).__name__} stays as slow as it was: {reason}", stacklevel=6)
        self.module = None
        self._others, self._tensors, self._absent = [], [], []
        self._dtype, self.fits = None, _always  # nothing to watch: it is not tried again

    def fits(self, served):
        """Whether all is as it was when this was made: modules, their hooks and attributes, the forms of weights."""
        if self._dtype not in (None, torch.get_default_dtype()):
            return False
        for tensors, name, kind, dtype, shape, device, strides in self._tensors:
            tensor = tensors.get(name)
            if (
                type(tensor) is not kind
                or tensor.dtype is not dtype
                or tensor.shape != shape
                or tensor.device != device
                or _strides(tensor) != strides
            ):
                return False
        for tensors, name in self._absent:
            if tensors.get(name) is not None:
                return False
        if not self._is_untouched(vars(served)):
            self._look(served)
        return self._is_same

    def _watch(self, served):
        for module in (served, *self._others):
            for tensors in (module._parameters, module._buffers):
                for name, tensor in tensors.items():
                    if tensor is None:
                        self._absent.append((tensors, name))
                    else:
                        form = type(tensor), tensor.dtype, tensor.shape, tensor.device, _strides(tensor)
                        self._tensors.append((tensors, name, *form))
        self._look(served)

    def _look(self, served):
        """Compare all but the tensors with what was there first, and remember where a change of it would show."""
        owners, names, state, kinds = [], [], [], {}
        self._counted = []
        for module in (served, *self._others):
            plain, children = _plain(module), module._modules
            hooks = ()
            if module is served:
                plain = {name: text for name, text in plain.items() if not self._is_fast_ones(name)}
                self._own_names = [*plain]
            else:
                owners += [vars(module)] * len(plain)
                names += plain
                hooks = module._forward_hooks, module._forward_pre_hooks
            owners += [children] * len(children)
            names += children
            tensors = module._parameters, module._buffers
            self._counted += [children, *tensors, *hooks]
            places = [*map(id, children.values())], [*map(type, children.values())]
            state.append((plain, places, [*map(list, tensors)], [*map(len, hooks)]))
            kinds |= dict.fromkeys(_own_classes(module))
        state.append([(id(kind), _of_class(vars(kind))) for kind in kinds])
        self._is_same = self._first is None or state == self._first[0]
        own = vars(served)
        self._watched = owners, names
        self._in_classes = [vars(kind).values() for kind in kinds]
        self._counted += self._in_classes
        self._lengths = [*map(len, self._counted)]
        self._owners = [*map(vars, self._others)]
        self._names = [*own, *itertools.chain.from_iterable(self._owners)]
        self._kinds = [*map(type, self._others)]
        self._own_values = [*map(own.get, self._own_names)]
        self._values = [*map(dict.get, owners, names)]
        self._class_values = [*itertools.chain.from_iterable(self._in_classes)]
        everything = self._own_values, self._values, self._class_values, [*kinds]
        self._first = self._first or (state, everything)  # kept, so that nothing else gets the ids of these
        self._mutable = [value for value in itertools.chain(*everything[:3]) if _is_mutable(value) and _is_plain(value)]
        self._texts = [*map(repr, self._mutable)]

    def _is_fast_ones(self, name):
        """Whether it is an attribute that only the fast module has, which may change it as it likes."""
        known = self._first[0][0][0] if self._first else ()
        return name in self.added or (self._first and name not in known and not hasattr(Reference, name))

    def _is_untouched(self, own):
        """Whether nothing shows a change at a glance: this is asked at every call."""
        return (
            [*map(len, self._counted)] == self._lengths
            and [*own, *itertools.chain.from_iterable(self._owners)] == self._names  # a new one may hide a method
            and [*map(type, self._others)] == self._kinds
            and all(map(operator.is_, map(own.get, self._own_names), self._own_values))
            and all(map(operator.is_, map(dict.get, *self._watched), self._values))
            and all(map(operator.is_, itertools.chain.from_iterable(self._in_classes), self._class_values))
            and (not self._mutable or [*map(repr, self._mutable)] == self._texts)
        )

    def _shared(self, served):
        """Make a fast module that has all of the served one, and tell its class.

        What only the fast one has is added to the served one, beside the state dict; its names are returned too.
        """
        made_from = served._made_from
        if isinstance(made_from, _Once):
            made_from = made_from.take()
        if isinstance(made_from, str):
            raise TypeError(made_from)
        if _has_weights(made_from):
            raise TypeError("it was made with modules or tensors, which its fast form's constructor could write to")
        arguments, options = _copied(made_from)
        fast = _undisturbed(lambda: Fast(*arguments, **options), served)
        for name, child in fast._modules.items():
            if type(child) is not type(served._modules.get(name, child)):
                raise TypeError(f"its fast form keeps another kind of module as {name}")
        own = {**vars(fast), **fast._buffers, **fast._modules}
        known = {*vars(served), *served._parameters, *served._buffers, *served._modules}
        if any(name not in known for name in fast._parameters):
            raise TypeError("its fast form has weights of its own")
        added = {name: value for name, value in own.items() if name not in known}
        vars(served).update(added)
        fast.__dict__ = vars(served)
        return type(fast), tuple(added)


def _kept(arguments, options):
    """What a fast module is made from: nothing where it needs no constructor, copies as far as the data are plain."""
    made_from = _copied(((), {}) if ALIKE else (arguments, options))
    return made_from if _is_plain(made_from) else _Once(made_from)


def _copied(value):
    """The same values in other lists and mappings, which a constructor may change."""
    if type(value) is dict:
        return {name: _copied(each) for name, each in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def _has_weights(value):
    if isinstance(value, (dict, list, tuple)):
        return any(map(_has_weights, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (torch.nn.Module, torch.Tensor))


def _undisturbed(make, served):
    """What is made, as outside of inference mode, while all random numbers that come afterwards stay what they were."""
    state, numpy = random.getstate(), sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None
    devices = set()
    if DEVICE in ("cuda", "xpu"):  # others have but one, or none of their own
        devices = {each.device.index for each in (*served.parameters(), *served.buffers())}
        devices.add(torch.get_device_module(DEVICE).current_device())
    try:
        random_states = torch.random.fork_rng(devices=sorted(devices), device_type=DEVICE if devices else "cuda")
        with random_states, torch.inference_mode(False), torch.no_grad():
            return make()
    finally:
        random.setstate(state)
        if numpy:
            numpy.random.set_state(numpy_state)


def _settle():
    """What is to be done when the file has been read.

    What its classes are then is what was judged. Those that inherit from the reference, and modules that are one, were
    meant to be of the class that goes by its name, and are asked whether they are.
    """
    if isinstance(DropIn, type) and issubclass(DropIn, Reference):
        forward = vars(DropIn).get("forward")
        code = getattr(_unwrapped(forward), "__code__", None)
        if isinstance(forward, types.FunctionType) and code and (code.co_kwonlyargcount or code.co_flags & 12):
            DropIn.forward = _Forward(forward)
        for kind in Reference.__subclasses__():
            if kind is not DropIn:
                bases = tuple(DropIn if each is Reference else each for each in kind.__bases__)
                _tried(setattr, kind, "__bases__", bases)
        if "__parameters__" in vars(Reference):  # of a generic class, which a subclass does not inherit
            DropIn.__parameters__ = Reference.__parameters__
        for name, value in [*globals().items()]:
            if value is Reference and name != Reference.__name__:
                globals()[name] = DropIn
            elif isinstance(value, torch.nn.Module):
                _tried(_renew, value)
    for value in [*globals().values()]:
        if isinstance(value, type) and value.__module__ == __name__:
            CLASSES[value] = dict(vars(value))


def _unwrapped(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _renew(module):
    for each in module.modules():
        if type(each) is Reference:
            object.__setattr__(each, "__class__", DropIn)


def _tried(change, *arguments):
    """Make a change that some classes do not allow, or that needs a module whose constructor has run."""
    with contextlib.suppress(TypeError, AttributeError):
        change(*arguments)


def _always(_):
    return True


def _described(served):
    """A digest of what fast code may have built in: all that the modules are, but for what their tensors hold.

    Empty where fast code would not do, or that cannot be said: with hooks or another forward inside, tensors elsewhere
    or of other kinds, functions that hold anything, methods that were replaced.
    """
    tree = [torch.get_default_dtype()]
    kinds = {}
    for path, module in served.named_modules(remove_duplicate=False):
        tensors = {**module._parameters, **module._buffers}
        forms = {
            name: each if each is None else (each.dtype, *each.shape, _strides(each)) for name, each in tensors.items()
        }
        plain = _plain(module)
        tree.append((path, type(module).__qualname__, sorted(plain.items()), sorted(forms.items())))
        kinds |= dict.fromkeys(_own_classes(module))
        held = [each for each in tensors.values() if each is not None]
        known = torch.Tensor, torch.nn.Parameter, torch.nn.Buffer
        if any(each.device.type != DEVICE or type(each) not in known or not _is_plainly_stored(each) for each in held):
            return ""
        if None in plain.values():
            return ""
        if path and (module._forward_hooks or module._forward_pre_hooks):
            return ""
    for kind in kinds:
        here, there = _of_class(vars(kind)), _of_class(CLASSES.get(kind, vars(kind)))
        texts = {name: each for name, each in here.items() if isinstance(each, str)}
        if {name: here[name] for name in here.keys() - texts} != {n: v for n, v in there.items() if type(v) is int}:
            return ""
        tree.append((kind.__qualname__, sorted(texts.items())))
    return hashlib.sha256(repr(tree).encode()).hexdigest()


def _own_classes(module):
    """Classes of this file that a module is of."""
    return [kind for kind in type(module).__mro__ if kind in CLASSES or kind.__module__ == __name__]


def _of_class(attributes):
    """What a class has: plain data as texts, and the ids of functions and whatever else is no mere value."""
    texts = {}
    for name, value in attributes.items():
        if _is_code(value):
            texts[name] = id(value)
        elif not name.startswith("__") and _is_plain(value) and not _is_path(value):
            texts[name] = repr(value)
    return texts


def _is_code(value):
    return callable(value) or hasattr(type(value), "__get__")


def _is_path(value):
    return isinstance(value, str) and value.startswith("/")  # files may lie elsewhere


def _plain(module, others=frozenset({*vars(torch.nn.Module()), "_made_from", "_fast"})):
    """Attributes that can be compared, as texts: plain data, functions and classes. None for what must not be there."""
    texts = {}
    for name, value in vars(module).items():
        if name in others and (name != "training" or TRAINING is None):
            continue
        text = None if name in ("forward", "_call_impl") else _text(value, module)
        if text == "":
            hidden = [vars(kind)[name] for kind in type(module).__mro__ if name in vars(kind)]
            if not hidden:
                continue
            text = None if _is_code(hidden[0]) else type(value).__qualname__
        texts[name] = text
    return texts


def _text(value, module):
    """An attribute of a module as text; empty where it is of a kind that is not compared, None where it must not be."""
    if isinstance(value, (type, type(len))):
        return value.__qualname__
    if isinstance(value, type(_text)):
        return _function(value)
    if isinstance(value, types.MethodType) and value.__self__ is module:
        return f"its {value.__func__.__qualname__}" if isinstance(value.__func__, type(_text)) else ""
    if isinstance(value, functools.partial) and _is_plain((value.args, value.keywords)):
        text = _text(value.func, module)
        return text and f"{text} with {value.args} and {value.keywords}"
    return repr(value) if _is_plain(value) and not _is_path(value) else ""


def _function(value):
    """A function as text: its name, what it holds, and its code where others are called alike; None if not plain."""
    try:
        held = [*(cell.cell_contents for cell in value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
    except ValueError:  # one that is still empty
        return None
    is_one_of_many = "<" in value.__qualname__
    code = (value.__code__.co_code, *filter(_is_plain, value.__code__.co_consts)) if is_one_of_many else ()
    library = value.__module__ if f"{value.__module__}.".startswith("torch.") else ""
    return repr((library, value.__qualname__, held, code)) if _is_plain(held) else None


def _is_plain(value):
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype))


def _as_judged(inputs, named):
    """The arguments of a call, by position and by name as they were judged; None if others were judged."""
    if len(inputs) != len(FORMS):
        order = _parameters()
        by_name = {**dict(zip(order, inputs, strict=False)), **named}
        positional = order[: len(FORMS)]
        if len(by_name) < len(inputs) + len(named) or by_name.keys() != {*positional, *NAMED_FORMS}:
            return None
        inputs, named = [by_name[name] for name in positional], {name: by_name[name] for name in NAMED_FORMS}
    for value, form in zip(inputs, FORMS, strict=True):
        if not _same_form(value, form):
            return None
    return (inputs, named) if not (named or NAMED_FORMS) or _same_form(named, NAMED_FORMS) else None


@functools.lru_cache(maxsize=1)
def _parameters():
    """Names of the forward's parameters that may be given by position and by name, in order; none if nobody knows."""
    forward = Reference.forward
    code = getattr(forward, "__code__", None)
    while code and code.co_argcount < 2 and hasattr(forward, "__wrapped__"):  # a decorator that passes all on
        forward = forward.__wrapped__
        code = getattr(forward, "__code__", None)
    return code.co_varnames[1 : code.co_argcount] if code and code.co_posonlyargcount < 2 else ()


def _is_usual():
    """Whether torch does what it did when this was judged: nothing is traced, transformed or goes through a mode."""
    return (
        not torch.is_autocast_enabled(DEVICE)
        and not torch.jit.is_tracing()
        and not torch.fx._symbolic_trace._is_fx_tracing_flag
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch.autograd.forward_ad._current_level < 0
        and torch._C._len_torch_dispatch_stack() == 0
        and (torch._C._len_torch_function_stack() == 0 or _has_default_device_only())
        and not torch.nn.modules.module._has_any_global_hook()
    )


def _has_default_device_only():
    """Whether the only mode of functions is a default device, of the judged kind."""
    modes = [torch._C._get_function_stack_at(place) for place in range(torch._C._len_torch_function_stack())]
    return all(type(each).__module__ == "torch.utils._device" and each.device.type == DEVICE for each in modes)


def _strides(tensor):
    """Where elements lie, which code that reads weights by address may have built in; None if that is not all."""
    return tensor.stride() if _is_plainly_stored(tensor) else None


def _is_plainly_stored(tensor):
    """Whether its elements lie in memory as they read."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_neg() and not tensor.is_conj()


def _is_mutable(value):
    return isinstance(value, (dict, list)) or (isinstance(value, tuple) and any(map(_is_mutable, value)))


def _same_form(value, form):
    """Whether an argument is as it was when this was judged."""
    if type(form) is tuple:
        kind, what = form[0], form[1]
        if kind == "tensor":
            return (
                type(value) is torch.Tensor
                and value.dtype is what
                and _is_plainly_stored(value)
                and value.shape == form[2]
                and value.stride() == form[3]
                and value.device.type == DEVICE
            )
        return type(value) is what if kind == "type" else type(value) is type(what) and value == what
    if isinstance(form, list):
        return isinstance(value, (list, tuple)) and len(value) == len(form) and all(map(_same_form, value, form))
    return type(value) is dict and value.keys() == form.keys() and all(_same_form(value[k], form[k]) for k in form)
