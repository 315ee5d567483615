"""The class that a drop-in file adds. Its text is copied into the file: it uses nothing of this project.

What is not defined here stands for what the file has: Reference, Fast, FORMS, NAMED_FORMS, TRAINING, DEVICE, JUDGED.
"""

# ruff: noqa: F821, B008
# mypy: ignore-errors

import functools
import hashlib
import warnings

import torch


class DropIn(Reference):
    __doc__ = Reference.__doc__
    _made_from = None
    _fast = None

    @functools.wraps(Reference.__init__)
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._made_from = (arguments, options)
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
            and self._is_fast()
        ):
            if self._fast.has_run:
                return self._fast.module.forward(*call[0], **call[1])
            return self._fast.run_first(*call, lambda: super(DropIn, self).forward(*inputs, **named))
        return super().forward(*inputs, **named)

    def __getstate__(self):
        """Without the fast module, which is made again where it is needed."""
        own = self._fast.added if self._fast else ()
        state = {name: value for name, value in super().__getstate__().items() if name not in own}
        return state | {"_fast": None} if "_fast" in state else state

    def _is_fast(self):
        twin = self._fast
        if self._made_from is not None and (twin is None or (twin.module is None and not twin.fits())):
            twin = self._fast = _Twin(self, *self._made_from)
        # A replica has a copy of another module's attributes, the fast module included, whose weights are the other's.
        return twin is not None and twin.module is not None and vars(twin.module) is vars(self) and twin.fits()


class _Twin:
    """The fast module: another class with the attributes, modules and weights of the module it serves.

    There is none as long as that is not what was judged.
    """

    def __init__(self, served, arguments, options):
        self.module = None
        self.has_run = False
        self.added = ()
        self._modules = [*served.modules()]
        self._tensors, self._absent = [], []
        self._first = None
        self._dtype = torch.get_default_dtype()
        try:
            is_judged = _described(served) == JUDGED
            if not is_judged:
                words = "it was judged with other arguments, attributes, modes, dtypes or devices, or by other versions"
                warnings.warn(f"{type(served).__name__} stays as slow as it was: {words}", stacklevel=5)
            else:
                with torch.random.fork_rng(devices=[]):
                    fast = Fast(*arguments, **options)
                self.added = self._shared(fast, served)
            self._watch()
            self.module = fast if is_judged else None
        except Exception as error:  # noqa: BLE001 - whatever it is, the module has to serve
            self._give_up(type(served).__name__, error)

    def run_first(self, inputs, named, reference):
        """Answer by the fast module, which may have to compile; where it fails and the reference does not, for good."""
        try:
            outputs = self.module.forward(*inputs, **named)
        except Exception as error:  # noqa: BLE001 - as above
            reason = str(error)  # not the error itself, which keeps all that the call has allocated
        else:
            self.has_run = True
            return outputs
        outputs = reference()
        self._give_up(DropIn.__name__, reason)
        return outputs

    def _give_up(self, name, reason):
        warnings.warn(f"{name} stays as slow as it was: {reason}", stacklevel=6)
        self.module = None
        self._modules, self._tensors, self._absent = [], [], []  # nothing to watch: it is not tried again
        self._first = self._dtype = None
        self._look()

    def fits(self):
        """Whether all is as it was when this was made: modules, their hooks and attributes, the forms of weights."""
        if self._dtype not in (None, torch.get_default_dtype()):
            return False
        for tensors, name, kind, dtype, shape, device, is_plain in self._tensors:
            tensor = tensors.get(name)
            if (
                type(tensor) is not kind
                or tensor.dtype is not dtype
                or tensor.shape != shape
                or tensor.device != device
                or _is_plainly_stored(tensor) is not is_plain
            ):
                return False
        if any(tensors.get(name) is not None for tensors, name in self._absent):
            return False
        if self._glance() != self._seen:
            self._look()
        return self._is_same

    def _watch(self):
        for module in self._modules:
            for tensors in (module._parameters, module._buffers):
                for name, tensor in tensors.items():
                    if tensor is None:
                        self._absent.append((tensors, name))
                    else:
                        form = type(tensor), tensor.dtype, tensor.shape, tensor.device, _is_plainly_stored(tensor)
                        self._tensors.append((tensors, name, *form))
        self._look()

    def _look(self):
        """Compare all but the tensors with what was there first, and remember where a change of it would show."""
        owners, names, state = [], [], []
        self._counted = []
        for module in self._modules:
            plain, children = _plain(vars(module)), module._modules
            if module is self._modules[0]:
                plain = {name: text for name, text in plain.items() if not self._is_fast_ones(name)}
            tensors = module._parameters, module._buffers
            hooks = (module._forward_hooks, module._forward_pre_hooks) if module is not self._modules[0] else ()
            owners += [vars(module)] * len(plain) + [children] * len(children)
            names += [*plain, *children]
            self._counted += [vars(module), children, *tensors, *hooks]
            state.append((plain, [*map(id, children.values())], [*map(list, tensors)], [*map(len, hooks)]))
        self._first = self._first or state
        self._is_same = state == self._first
        self._watched = owners, names
        self._values = [*map(dict.get, owners, names)]  # kept, so that nothing else gets their ids
        self._mutable = [value for value in self._values if _is_mutable(value)]
        self._seen = self._glance()

    def _is_fast_ones(self, name):
        """Whether it is an attribute that only the fast module has, which may change it as it likes."""
        known = self._first[0][0] if self._first else ()
        return name in self.added or (self._first and name not in known and not hasattr(Reference, name))

    def _glance(self):
        return [*map(len, self._counted)], [*map(id, map(dict.get, *self._watched))], [*map(repr, self._mutable)]

    def _shared(self, fast, served):
        """Give fast all that the served module has; what only fast has is added there, beside the state dict."""
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
        return tuple(added)


def _described(served):
    """A digest of what fast code may have built in: all that the modules are, but for what their tensors hold.

    Empty where fast code would not do, or that cannot be said: with hooks or another forward inside, tensors elsewhere
    or of other kinds, functions that hold anything.
    """
    tree = [torch.get_default_dtype()]
    for path, module in served.named_modules(remove_duplicate=False):
        tensors = {**module._parameters, **module._buffers}
        forms = {name: each if each is None else (each.dtype, *each.shape) for name, each in tensors.items()}
        plain = _plain(vars(module))
        tree.append((path, type(module).__qualname__, sorted(plain.items()), sorted(forms.items())))
        held = [each for each in tensors.values() if each is not None]
        kinds = torch.Tensor, torch.nn.Parameter, torch.nn.Buffer
        if any(each.device.type != DEVICE or type(each) not in kinds or not _is_plainly_stored(each) for each in held):
            return ""
        if None in plain.values():
            return ""
        if path and (module._forward_hooks or module._forward_pre_hooks):
            return ""
    return hashlib.sha256(repr(tree).encode()).hexdigest()


def _plain(attributes, others=frozenset({*vars(torch.nn.Module()), "_made_from", "_fast"})):
    """Attributes that can be compared, as texts: plain data, functions and classes. None for what must not be there."""
    texts = {}
    for name, value in attributes.items():
        if name in others and (name != "training" or TRAINING is None):
            continue
        if name in ("forward", "_call_impl"):
            texts[name] = None
        elif isinstance(value, (type, type(len))):
            texts[name] = value.__qualname__
        elif isinstance(value, type(_plain)):
            texts[name] = _function(value)
        elif _is_plain(value) and not (isinstance(value, str) and value.startswith("/")):  # files may lie elsewhere
            texts[name] = repr(value)
    return texts


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
    return (inputs, named) if _same_form(inputs, FORMS) and _same_form(named, NAMED_FORMS) else None


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


def _is_plainly_stored(tensor):
    """Whether its elements lie in memory as they read."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_neg() and not tensor.is_conj()


def _is_mutable(value):
    return isinstance(value, (dict, list)) or (isinstance(value, tuple) and any(map(_is_mutable, value)))


def _same_form(value, form):
    """Whether an argument is as it was when this was judged."""
    if isinstance(form, list):
        return isinstance(value, (list, tuple)) and len(value) == len(form) and all(map(_same_form, value, form))
    if isinstance(form, dict):
        return type(value) is dict and value.keys() == form.keys() and all(_same_form(value[k], form[k]) for k in form)
    kind, what, *rest = form
    if kind == "tensor":
        return (
            type(value) is torch.Tensor
            and value.dtype is what
            and _is_plainly_stored(value)
            and value.shape == rest[0]
            and value.stride() == rest[1]
            and value.device.type == DEVICE
        )
    return type(value) is what if kind == "type" else type(value) is type(what) and value == what
