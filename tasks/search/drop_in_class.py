"""The class that a drop-in file adds. Its text is copied into the file: it uses nothing of this project.

What is not defined here stands for what the file has: Reference, Fast, FORMS, NAMED_FORMS, APART (the numbers of the
tensors among the arguments, one that was given twice having its first; None where that is of no account), TRAINING,
DEVICE, JUDGED, CLASSES (what the file's classes had when it had been read), AGAIN (what the fast class has for calls
that are known, as known_calls.py says; None for most). Where the constructors of both classes make the same, what runs
and remembers one is left out, and _made_alike stands for _made.
"""

# ruff: noqa: F821, B006, B008
# mypy: ignore-errors

import contextlib
import copy
import enum
import functools
import gc
import hashlib
import itertools
import numbers
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
    _fast = None

    @functools.wraps(Reference.__init__)
    def __init__(self, *arguments, **options):
        made_from = _kept(arguments, options) if type(self) is DropIn else None  # before anything can change them
        super().__init__(*arguments, **options)
        vars(self).update(_made_from=made_from, _fast=None)  # past a __setattr__ of the class

    @functools.wraps(Reference.forward)
    def forward(self, *inputs, **named):
        if (
            torch.is_grad_enabled()
            or type(self) is not DropIn
            or (TRAINING is not None and self.training is not TRAINING)
            or torch.compiler.is_compiling()
        ):
            return super().forward(*inputs, **named)
        twin, seen = self._fast, _GivenUp
        if twin is not None and twin.served() is self:
            seen, fast = twin.seen, twin.fast
            if seen.before and (known := seen.known_as(self, fast, inputs, named)):
                outputs = fast.forward(*inputs, **named) if AGAIN is None else AGAIN(fast, known, *inputs, **named)
                if len(self.__dict__) != seen.own_count:
                    twin.remember_set(self)
                return outputs
        if _is_usual():
            before = seen.note(self, inputs, named)  # not after it is compared: what changes meanwhile would be missed
            if (
                (call := _as_judged(inputs, named)) is not None
                and (APART is None or _are_apart(call))
                and (fast := self._as_fast()) is not None
            ):
                twin = self._fast
                if torch.is_inference_mode_enabled() in twin.has_run:
                    if before is not None and twin.seen is seen:
                        seen.keep(before)
                    inputs, named = call
                    outputs = fast.forward(*inputs, **named) if AGAIN is None else AGAIN(fast, None, *inputs, **named)
                    if len(self.__dict__) != twin.seen.own_count:
                        twin.remember_set(self)
                    return outputs
                return twin.run_first(fast, *call, functools.partial(super().forward, *inputs, **named))
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
        """This module as one of the fast class, the same at every call; None where it is not what was judged."""
        twin = self._fast
        if twin is None or twin.served() is not self:  # it may have a copy of another module's attributes
            if "_is_replica" in vars(self):  # of torch.nn.DataParallel, made for one call
                return None
            with _Twin.making:
                if self._fast is twin:  # or another thread was here first
                    for name in twin.added if twin else ():
                        vars(self).pop(name, None)
                    vars(self)["_fast"] = _Twin(self)
            twin = self._fast
        seen = twin.seen
        if not (seen.is_judged if seen.is_still(self) else twin.look(self)):
            twin.tell()
            return None
        fast = twin.fast
        if fast.__dict__ is not self.__dict__:
            object.__setattr__(fast, "__dict__", self.__dict__)
        return fast


class _Forward:
    """The forward of a class whose parameters torch.fx can only tell from the function itself."""

    def __init__(self, function):
        self.function = function

    def __get__(self, served, kind=None):
        if served is not None:
            return self.function.__get__(served)
        return super(DropIn, kind).forward if torch.fx._symbolic_trace.is_fx_symbolic_tracing() else self.function


class _Lock:
    """A lock that is another one in a copy of the class that has it."""

    def __init__(self):
        self._lock = threading.RLock()

    def __reduce__(self):
        return type(self), ()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


class _Twin:
    """How the fast class serves a module: as which object, what it added, and whether the module is what was judged.

    There is no fast object before it is. Nothing else here keeps the module or the mapping of its attributes; that
    object has this mapping, which has what is here: they are parted where the module ends, or wait for the collector.
    """

    making = _Lock()

    def __init__(self, served):
        self.served = weakref.ref(served)
        self.fast = None
        weakref.finalize(served, _part, weakref.ref(self)).atexit = False
        self.added = ()
        self.has_run = set()  # in which of inference mode and not: what one has made, the other may not write to
        self._set_by_calls = set()
        self.seen = self._untold = None
        if not self.look(served):
            words = "it was judged with other arguments, attributes, modes, dtypes or devices, or by other versions"
            self._untold = self._untold or words

    def __deepcopy__(self, _):
        """Only what tells which of the copied attributes are not for a copy: those that were added."""
        copied = object.__new__(_Twin)
        copied.served, copied.added = type(None), self.added
        return copied

    def __reduce__(self):
        return type(None), ()

    def look(self, served):
        """See what the module is, and tell whether that was judged; where it is for the first time, make it fast."""
        with self.making:
            try:
                seen = _Seen(served, {*self.added, *self._set_by_calls})
                if seen.is_judged and self.fast is None:
                    self.fast, self.added = _made(served)
                self.seen = seen
            except Exception as error:  # noqa: BLE001 - whatever it is, the module has to serve
                self._give_up(error)
            return self.seen.is_judged

    def run_first(self, fast, inputs, named, reference):
        """Answer by the fast module, which may have to compile; where it fails and the reference does not, for good."""
        before = {*vars(fast)}
        try:
            outputs = fast.forward(*inputs, **named)
        except BaseException as error:
            for name in vars(fast).keys() - before:  # set by the call, and half done
                vars(fast).pop(name, None)
            if not isinstance(error, Exception):  # but Ctrl-C, which says nothing of either
                raise
            reason = str(error)  # not the error itself, which keeps all that the call has allocated
        else:
            self.has_run.add(torch.is_inference_mode_enabled())
            self.remember_set(fast)
            return outputs
        outputs = reference()
        self._give_up(reason)
        self.tell()
        return outputs

    def remember_set(self, fast):
        """Which attributes a call has set that were not there when the module was looked at."""
        names = vars(fast).keys() - self.seen.own_keys
        hiding = (name for name in names if hasattr(Reference, name))  # a method, say
        names -= {name for name in hiding if not isinstance(getattr(Reference, name), functools.cached_property)}
        self._set_by_calls |= names

    def _give_up(self, reason):
        self.seen, self._untold = _GivenUp, str(reason)

    def tell(self):
        """Warn once of why the module stays slow, as of the line that called it."""
        reason, self._untold = self._untold, None
        if reason is not None:
            warnings.warn(f"{DropIn.__name__} stays as slow as it was: {reason}", stacklevel=6)


def _part(twin):
    """Let go of the fast object of a module that has ended."""
    twin = twin()
    if twin is not None:
        twin.fast = None


class _GivenUp:
    """Instead of what was seen: nothing is looked at again."""

    is_judged, own_count, own_keys, before = False, 0, (), ()

    @staticmethod
    def is_still(_):
        return True

    @staticmethod
    def note(*_):
        return None


def _version():
    """A function of torch's whose number for a mapping is another one after every change; None where that is not so.

    It is a private one, as are the guards of tensors that go with it, which have to compare autocast too.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # there are no locks around those numbers
        return None
    try:
        mapping, version = {1: 1, 2: 2}, torch._C._dynamo.guards.dict_version
        versions, setting = [version(mapping)], functools.partial(mapping.update, {1: 3})
        for change in (setting, functools.partial(mapping.pop, 1), setting, mapping.popitem, mapping.clear):
            change()
            versions.append(version(mapping))
        is_told = version(mapping) == versions[-1] and len({*versions}) == len(versions)
        tensor = torch.empty(1, device="cpu")
        fits = _fitting([tensor])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            is_told = is_told and not fits(tensor)
        return version if is_told and fits(tensor) else None
    except Exception:  # noqa: BLE001 - whatever another version of torch does
        return None


def _fitting(tensors):
    """A function of torch's that tells whether tensors are like these, and autocast is as it is."""
    return torch._C._dynamo.guards.TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


class _Before:
    """A call in numbers of torch's that are others after any change, to tell at once that another one is like it.

    Made before the call is compared in full, which says whether fast code will do for it and all that are like it.
    Nothing here keeps arguments or weights.
    """

    def __init__(self, inputs, named, weights, mappings, own, version):
        values, forms = [*inputs, *named.values()], [*FORMS, *NAMED_FORMS.values()]
        self.is_inference, self.has_held = torch.is_inference_mode_enabled(), False
        self.kinds = [*map(type, values)]
        self.is_tensor = [kind is torch.Tensor for kind in self.kinds]
        self.is_other = [not each for each in self.is_tensor]
        self.forms = [*itertools.compress(forms, self.is_other)]
        others = [*itertools.compress(values, self.is_other)]
        self.others = others if all(map(_is_told_by_equality, others)) else None
        tensors = [*itertools.compress(values, self.is_tensor), *weights]
        if not all(map(_is_plainly_stored, tensors)):  # of others torch may end the process to say how they lie
            raise TypeError("a tensor that is stored in another way")
        self.fits, self.is_usual = _fitting(tensors), _is_direct if tensors else _is_usual
        self.versions, self.own_version = [*map(version, mappings)], version(own)

    def has_others(self, values):
        """Whether arguments that are no tensors, and of the types that they were, are as judged."""
        others = [*itertools.compress(values, self.is_other)]
        return others == self.others or all(map(_same_form, others, self.forms))


class _Seen:
    """What a module was when it was looked at: whether that is what was judged, and whether it still is, at a glance.

    It was where a digest of all that the modules are, but for what their tensors hold, is the same. There is none, and
    fast code would not do, with hooks or another forward inside, tensors elsewhere or of other kinds, functions that
    hold anything, methods that were replaced, or values in slots. Nothing here keeps the module or the mapping of its
    attributes.
    """

    _of_a_module = ("_parameters", "_buffers", "_modules")

    def __init__(self, served, ignored=()):
        self._dtype = torch.get_default_dtype()
        self._others, self._hooks, self._tensors, self._mappings, self._counted = [], [], [], [], []
        self._in_order, self._configurations = [], []
        self._watched, self._places, self._guards, places = ([], []), ([], []), {}, {}
        tree, kinds, numbers, may_serve, configurations = [self._dtype], {}, {}, True, {}
        for path, module in served.named_modules(remove_duplicate=False):
            is_known = id(module) in numbers
            tree.append((path, numbers.setdefault(id(module), len(numbers))))
            if is_known:
                continue
            plain = {name: text for name, text in _plain(module).items() if path or name not in ignored}
            tensors = dict(sorted({**module._parameters, **module._buffers}.items()))
            forms = {name: _form(each) for name, each in tensors.items()}
            may_serve = may_serve and None not in (*plain.values(), *forms.values())
            shared = [numbers.setdefault(id(each), len(numbers)) for each in tensors.values()]
            tree.append((_name(type(module)), sorted(plain.items()), [*forms.items()], shared))
            kinds |= dict.fromkeys(_own_classes(module))
            filled = [name for name in self._of_a_module if vars(module).get(name)]
            names = [*plain, *(filled or ["_parameters"])]  # a constructor that runs again makes any of them anew
            if path:
                self._others.append(module)
                self._hooks += module._forward_hooks, module._forward_pre_hooks
                self._watch(vars(module), names)
            else:
                self._own_names = names
            for name in plain:
                self._watch_configuration(vars(module)[name], configurations)
            self._watch_parts(module, places)
        for kind in kinds:
            here, there = _of_class(vars(kind)), _of_class(CLASSES.get(kind, vars(kind)))
            tree.append((kind.__qualname__, sorted((name, each) for name, each in here.items() if type(each) is str)))
            has_slots = any(isinstance(each, types.MemberDescriptorType) for each in vars(kind).values())
            may_serve = may_serve and _ids(here) == _ids(there) and not has_slots
        self._has_hooks = any(self._hooks)
        may_serve = may_serve and not self._has_hooks
        self.digest = hashlib.sha256(repr(tree).encode()).hexdigest() if may_serve else ""
        self.is_judged = self.digest == JUDGED
        self._remember(served, kinds)

    def _watch(self, mapping, names):
        self._watched[0].extend([mapping] * len(names))
        self._watched[1].extend(names)

    def _watch_configuration(self, value, known):
        if id(value) in known or _spelt(value) is not None:
            return
        known[id(value)] = value
        if isinstance(value, (list, tuple)):
            parts = value
            self._counted.append(value)
            self._in_order.append(value)
        elif isinstance(value, dict):
            parts = value.values()
            self._mappings.append(value)
            self._watch(value, value)
        elif _configuration(value) is not None:
            parts = vars(value).values()
            self._configurations.append((value, vars(value), type(value)))
            self._mappings.append(vars(value))
            self._watch(vars(value), vars(value))
        else:
            return
        for each in parts:
            self._watch_configuration(each, known)

    def _watch_parts(self, module, places):
        if module._modules:
            self._mappings.append(module._modules)
            self._in_order.append(module._modules.values())
        else:
            self._counted.append(module._modules)
        for tensors in (module._parameters, module._buffers):
            missing = [name for name, value in tensors.items() if value is None]
            (self._mappings if missing else self._counted).append(tensors)
            self._watch(tensors, missing)
            for name, tensor in tensors.items():
                if tensor is not None:
                    place = places.setdefault(id(tensor), (tensors, name))
                    if place[0] is not tensors or place[1] != name:  # it is in two
                        self._watch(place[0], [place[1]])
                        self._watch(tensors, [name])
                    else:
                        self._places[0].append(tensors)
                        self._places[1].append(name)
                        self._tensors.append(_kind(tensor))

    def _remember(self, served, kinds):
        own = vars(served)
        self._mappings += map(vars, self._others)
        mappings = {id(each): each for each in (*self._counted, *self._mappings, *self._watched[0], *self._places[0])}
        of_classes = [gc.get_referents(vars(kind)) for kind in kinds]  # what they are views of, one mapping each
        self._full = [*filter(None, mappings.values()), *itertools.chain.from_iterable(of_classes)]
        self._empty = [*itertools.filterfalse(None, mappings.values()), *self._hooks]
        # Others, such as those that can be put in another order, can change in ways that do not count as a version.
        are_told = all(len(each) == 1 for each in of_classes) and all(type(each) is dict for each in (own, *self._full))
        self._version = _version() if self.is_judged and are_told else None
        self._named, self.before, self._in_vain, self._pause = [*NAMED_FORMS], {}, 0, 0
        in_classes = [vars(kind).values() for kind in kinds]
        self._counted += in_classes
        self._in_order += in_classes
        self.own_count, self.own_keys = len(own), [*own]
        self._lengths = [*map(len, self._counted)]
        self._names = [*map(list, self._mappings)]
        self._kinds = [*map(type, self._others)]
        self._own_values = [*map(own.get, self._own_names)]
        self._values = [*map(dict.get, *self._watched)]
        self._ordered = [*itertools.chain.from_iterable(self._in_order)]
        names = itertools.chain(self._own_names, self._watched[1])
        values = itertools.chain(self._own_values, self._values)
        data = [value for name, value in zip(names, values, strict=True) if name not in self._of_a_module]
        self._held = [*zip(*itertools.chain.from_iterable(map(_held, data)), strict=True)]
        self._contents = [*map(_content, *self._held)] if self._held else []
        data += [*self._contents, *self._ordered]
        self._mutable = [value for value in data if _is_mutable(value) and _spelt(value) is not None]
        self._texts = [*map(repr, self._mutable)]
        self._changes_within = bool(self._held or self._mutable or self._configurations)

    def is_still(self, served):
        """Whether nothing shows a change: this is asked at every call."""
        tensors = [*map(dict.get, *self._places)]
        fits = self._guards.get(torch.is_inference_mode_enabled())
        try:  # there are subclasses that say nothing of themselves
            # Asked how the elements of a nested tensor lie, torch would end the process. A missing one counts as that.
            is_nested = map(getattr, tensors, itertools.repeat("is_nested"), itertools.repeat(True))
            is_known = fits is not None and not any(is_nested) and fits(*tensors)
        except Exception:  # noqa: BLE001 - whatever it is, the module has to serve
            is_known = False
        if not is_known and not self._are_still(tensors):
            return False
        return (
            torch.get_default_dtype() is self._dtype
            and any(self._hooks) is self._has_hooks
            and [*map(len, self._counted)] == self._lengths
            and self._owns_the_same(vars(served))
            and [*map(list, self._mappings)] == self._names
            and all(map(operator.is_, map(dict.get, *self._watched), self._values))
            and all(map(operator.is_, itertools.chain.from_iterable(self._in_order), self._ordered))
            and [*map(type, self._others)] == self._kinds
            and (not self._changes_within or self._holds_the_same())
        )

    def _owns_the_same(self, own):
        """Whether the module that is served has the attributes that it had."""
        same_names = [*own] == self.own_keys  # a new one may hide a method
        return same_names and all(map(operator.is_, map(own.get, self._own_names), self._own_values))

    def _holds_the_same(self):
        """Whether what changes without any mapping's doing did not."""
        return (
            (not self._held or _are_held(self._held, self._contents))
            and (not self._mutable or [*map(repr, self._mutable)] == self._texts)
            and (
                not self._configurations
                or all(vars(each) is held and type(each) is kind for each, held, kind in self._configurations)
            )
        )

    def known_as(self, served, fast, inputs, named, is_nested=operator.attrgetter("is_nested")):
        """What shows at once that a call was compared as it is: that none of it is another one than it was.

        None is no answer, and what was changed and changed back is not known. What is known would be as judged if all
        were compared in full: a condition that is added there belongs here, unless it is of what a mapping has.
        """
        before = self.before.get(torch.is_inference_mode_enabled())
        if before is None or len(inputs) != len(FORMS) or [*named] != self._named:
            return None
        values = (*inputs, *named.values()) if named else inputs
        own = served.__dict__
        try:
            if [*map(type, values)] != before.kinds:  # some run code of their own when they are asked anything
                return None
            arguments = itertools.compress(values, before.is_tensor) if before.forms else values
            tensors = [*arguments, *map(dict.get, *self._places)]
            is_same = (
                torch.get_default_dtype() is self._dtype
                and before.is_usual()
                and not any(map(is_nested, tensors))  # such as another one's content may have become
                and before.fits(*tensors)  # which tell of autocast too
                and (not before.forms or before.has_others(values))
                and (APART is None or _are_apart((inputs, named)))
                and fast.__dict__ is own
                and [*map(self._version, self._full)] == before.versions
                and not any(self._empty)
                and (self._version(own) == before.own_version or self._owns_the_same(own))
                and [*map(type, self._others)] == self._kinds
                and (not self._changes_within or self._holds_the_same())
            )
        except Exception:  # noqa: BLE001 - whatever it is, the call is compared in full
            return None
        if not is_same:
            return None
        before.has_held = True
        return before

    def note(self, served, inputs, named):
        """What a call is like, to be kept where it is as judged; None where that cannot be told or was of no use.

        Whoever calls it in another way each time would pay for this each time: after one that no call was like, so
        many more calls pass without any as have passed until then.
        """
        if self._pause > 0 and not self.before:
            self._pause -= 1
            return None
        if self._version is None or len(inputs) != len(FORMS) or [*named] != self._named:
            return None
        last = self.before.pop(torch.is_inference_mode_enabled(), None)
        if last is not None and last.has_held:
            self._in_vain = self._pause = 0
        if self._pause > 0:
            self._pause -= 1
            return None
        self._pause, self._in_vain = 2**self._in_vain - 1, self._in_vain + 1
        try:
            weights = map(dict.get, *self._places)
            return _Before(inputs, named, weights, self._full, vars(served), self._version)
        except Exception:  # noqa: BLE001 - whatever it is, the module has to serve
            return None

    def keep(self, before):
        self.before[before.is_inference] = before

    def _are_still(self, tensors):
        """Whether weights are of the kinds they were; remembered in a form in which torch sees it at once."""
        if [*map(_kind, tensors)] != self._tensors or len({*map(id, tensors)}) < len(tensors):  # one is in two by now
            return False
        if all(strides is not None for *_, strides in self._tensors):
            with contextlib.suppress(AttributeError, TypeError):  # of a version that has none
                self._guards[torch.is_inference_mode_enabled()] = _fitting(tensors)
        return True


def _made(served):
    """Make a fast module that has all of the served one.

    What only the fast one has is added to the served one, beside the state dict; its names are returned too.
    """
    made_from = vars(served).get("_made_from", "it was not made by its constructor as it is now")
    if isinstance(made_from, _Once):
        made_from = made_from.take()
    if isinstance(made_from, str):
        raise TypeError(made_from)
    arguments, options = _copied(made_from)
    restore = _restoring(served)
    try:
        fast = _undisturbed(lambda: Fast(*arguments, **options), served)
    finally:
        was_changed = restore()
    if was_changed:
        raise TypeError("its fast form's constructor changes parts or weights that are the module's own")
    for name, child in fast._modules.items():
        if type(child) is not type(served._modules.get(name, child)):
            raise TypeError(f"its fast form keeps another kind of module as {name}")
    own = {**vars(fast), **fast._buffers, **fast._modules}
    known = {*vars(served), *served._parameters, *served._buffers, *served._modules}
    if any(name not in known for name in fast._parameters):
        raise TypeError("its fast form has weights of its own")
    added = {name: value for name, value in own.items() if name not in known}
    vars(served).update(added)
    object.__setattr__(fast, "__dict__", vars(served))
    return fast, tuple(added)


def _restoring(served):
    """A function that makes all parts and weights what they are now again, and tells whether they were not."""
    modules = [*served.modules()]
    mappings = [*map(vars, modules[1:])]
    for module in modules:
        mappings += module._modules, module._parameters, module._buffers
    parts = [(mapping, dict(mapping)) for mapping in mappings]
    weights = [(each, _bytes(each)) for each in (*served.parameters(), *served.buffers())]

    def restore():
        others = [(mapping, held) for mapping, held in parts if not _has_same(mapping, held)]
        for mapping, held in others:
            mapping.clear()
            mapping.update(held)
        written = [(each, held) for each, held in weights if not torch.equal(_bytes(each), held)]
        for each, held in written:
            each.data.copy_(held.view(each.dtype).view(each.shape))
        return bool(others or written)

    return restore


def _has_same(mapping, held):
    return mapping.keys() == held.keys() and all(mapping[name] is value for name, value in held.items())


def _bytes(tensor):
    return tensor.detach().to("cpu", copy=True).reshape(-1).view(torch.uint8)


def _made_alike(served):
    """The same of a class whose constructor makes what the reference's does: it need not run, and adds nothing."""
    fast = object.__new__(Fast if isinstance(Fast, type) else Fast())  # a function where its text failed, which it says
    object.__setattr__(fast, "__dict__", vars(served))
    return fast, ()


def _kept(arguments, options):
    """What a fast module is made from: copies as far as the data are plain; a text that says why there is none."""
    try:
        made_from = _copied((arguments, options))
        if _has_weights(made_from):
            return "it was made with modules or tensors, which its fast form's constructor could write to"
        return _Once(made_from) if _spelt(made_from) is None else made_from
    except RecursionError:
        return "an argument that it was made with contains itself"
    except Exception as error:  # noqa: BLE001 - whatever a class of its own does, the module has to be made
        return f"an argument that it was made with cannot be copied: {error}"


class _Once:
    """Arguments of a constructor that are no plain data: for the first fast call, neither copied nor pickled."""

    def __init__(self, made_from):
        self.made_from = made_from

    def __reduce__(self):
        return str, ("the arguments it was made with are no plain data, which alone is kept in copies",)

    def take(self):
        made_from, self.made_from = self.made_from, self.__reduce__()[1][0]
        return made_from


def _copied(value):
    """The same values in other lists and mappings of the same kinds, which a constructor may change."""
    if isinstance(value, tuple):
        make = tuple if type(value) is tuple else getattr(value, "_make", None)  # of one whose items have names
        return make(map(_copied, value)) if make else value
    if not isinstance(value, (dict, list, set)):
        return value
    copied = copy.copy(value)
    if copied is value:  # as the class has it of what cannot change
        return value
    if isinstance(value, dict):
        dict.update(copied, {name: _copied(each) for name, each in value.items()})  # a Counter's own would add
    elif isinstance(value, list):
        copied[:] = map(_copied, value)
    return copied


def _has_weights(value):
    if isinstance(value, (dict, list, tuple, set, frozenset)):
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
    meant to be of the class that goes by its name, and are asked whether they are. What both classes have in their
    bodies, but for code, is one object.
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
    own = vars(Fast) if isinstance(Fast, type) else {}
    for name in [each for each in own.keys() & vars(Reference).keys() if not each.startswith(("__", "_abc_"))]:
        value = vars(Reference)[name]
        if not _is_code(value) and _spelt(value) in (None, _spelt(own[name])):
            setattr(Fast, name, value)
    if isinstance(Fast, type) and hasattr(Fast, "__del__"):
        Fast.__del__ = lambda _: None  # the module that it serves has its own end
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


def _own_classes(module):
    """Classes of this file that a module is of."""
    return [kind for kind in type(module).__mro__ if kind in CLASSES or kind.__module__ == __name__]


def _of_class(attributes):
    """What a class has: plain data as texts, and the ids of functions and whatever else is no mere value."""
    texts = {}
    for name, value in attributes.items():
        is_code = _is_code(value)
        if is_code or not name.startswith("__"):
            text = None if is_code or _is_path(value) else _spelt(value)
            texts[name] = id(value) if text is None else text
    return texts


def _ids(attributes):
    return {name: each for name, each in attributes.items() if type(each) is int}


def _is_code(value):
    return callable(value) or hasattr(type(value), "__get__")


def _is_path(value):
    return isinstance(value, str) and value.startswith("/")  # files may lie elsewhere


def _plain(module, others=frozenset({*vars(torch.nn.Module()), "_made_from", "_fast", "_is_torch_compile"})):
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
        return _name(value)
    if isinstance(value, type(_text)):
        return _function(value)
    if isinstance(value, types.MethodType) and value.__self__ is module:
        return f"its {value.__func__.__qualname__}" if isinstance(value.__func__, type(_text)) else ""
    if isinstance(value, functools.partial) and (given := _spelt((value.args, value.keywords))):
        text = _text(value.func, module)
        return text and f"{text} with {given}"
    return "" if _is_path(value) else _spelt(value) or _several(value, module) or _configuration(value) or ""


def _configuration(value):
    """An object, all of whose attributes can be compared, as text; None for any other."""
    kind = type(value)
    held = getattr(value, "__dict__", None)
    if type(held) is not dict or "<" in kind.__qualname__ or isinstance(value, (torch.Tensor, torch.nn.Module)):
        return None
    by_itself = ("__reduce_ex__", "__reduce__", "__getstate__", "__get__")  # what has these may hold more than it shows
    if kind is not types.SimpleNamespace:
        if any(getattr(kind, name, None) is not getattr(object, name, None) for name in by_itself):
            return None
        if any(isinstance(each, types.MemberDescriptorType) for base in kind.__mro__ for each in vars(base).values()):
            return None  # it has values in slots
        try:
            object.__reduce_ex__(value, 2)
        except TypeError:  # it is made of more than Python knows
            return None
    texts = {}
    for name, each in held.items():
        if _is_path(each) or isinstance(getattr(kind, name, None), functools.cached_property):
            continue
        texts[name] = _told(each, value)
        if not texts[name]:
            return None
    return f"{_name(kind)} {sorted(texts.items())}"


def _several(value, module):
    """A list, tuple or mapping, whose items can all be compared, as text; None for any other."""
    if type(value) not in (list, tuple, dict):
        return None
    parts = [_told(each, module) for each in ([*value, *value.values()] if type(value) is dict else value)]
    return f"{type(value).__name__} {parts}" if all(parts) else None


def _told(value, module):
    try:
        return _text(value, module)
    except RecursionError:  # of one that contains itself
        return None


def _name(value):
    """What a class or function is called, with the module it is from where that is another one."""
    library = "" if value.__module__ == __name__ else value.__module__
    return f"{library} {value.__qualname__}"


def _function(value):
    """A function as text: its name, what it holds, and its code where others are called alike; None if not plain."""
    try:
        held = [*(cell.cell_contents for cell in value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
    except ValueError:  # one that is still empty
        return None
    is_one_of_many = "<" in value.__qualname__
    code = _code(value.__code__) if is_one_of_many else ()
    held = _spelt(held)
    return held and repr((_name(value), held, code))


def _held(value):
    """Where a function has what it has besides its code, which can change: in a closure, defaults, given arguments."""
    if isinstance(value, functools.partial):
        return [(value, "args"), (value, "keywords"), *_held(value.func)]
    if isinstance(value, type(_text)):
        cells = [(cell, "cell_contents") for cell in value.__closure__ or ()]
        return [*cells, (value, "__defaults__"), (value, "__kwdefaults__")]
    return []


def _content(holder, name):
    try:
        return getattr(holder, name)
    except ValueError:  # of a cell that is empty by now
        return None


def _are_held(held, contents):
    try:
        return all(map(operator.is_, map(getattr, *held), contents))
    except ValueError:  # of a cell that is empty by now
        return False


def _code(code):
    """What a function does, as plain data."""
    parts = (_code(each) if isinstance(each, types.CodeType) else _spelt(each) for each in code.co_consts)
    return code.co_code, code.co_names, *parts


def _spelt(value, of_torch=(torch.dtype, torch.device, torch.layout, torch.memory_format)):
    """Plain data as a text that is the same in every process; None where it is something else."""
    if isinstance(value, enum.Enum):
        return f"{_name(type(value))} {value.name} {_spelt(value.value)}"  # flags may have no name
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        parts = [*map(_spelt, [*value, *value.values()] if isinstance(value, dict) else value)]
        if None in parts:
            return None
        return f"{type(value).__name__} {sorted(parts) if isinstance(value, (set, frozenset)) else parts}"
    is_plain = value is None or isinstance(value, (numbers.Number, str, bytes, range, slice, *of_torch))
    return repr(value) if is_plain else None


def _as_judged(inputs, named):
    """The arguments of a call, by position and by name as they were judged; None if others were judged."""
    if len(inputs) != len(FORMS):
        order, _ = _signature()
        by_name = {**dict(zip(order, inputs, strict=False)), **named}
        positional = order[: len(FORMS)]
        if len(by_name) < len(inputs) + len(named) or by_name.keys() != {*positional, *NAMED_FORMS}:
            return None
        inputs, named = [by_name.pop(name) for name in positional], by_name
    for value, form in zip(inputs, FORMS, strict=True):
        if not _same_form(value, form):
            return None
    if not named and not NAMED_FORMS:
        return inputs, named
    if named.keys() == NAMED_FORMS.keys() and not _signature()[1]:
        named = {name: named[name] for name in NAMED_FORMS}
    return (inputs, named) if _same_form(named, NAMED_FORMS) else None


def _are_apart(call):
    """Whether those tensors are one that were when this was judged, and no others share memory.

    Which is in doubt where one begins among the elements of another.
    """
    tensors = [*_tensors_in(call)]
    try:
        starts = [each.data_ptr() for each in tensors]
    except RuntimeError:  # of one that has no memory of its own, such as torch.func leaves behind
        return False
    places = sorted({(start, start + _extent(each)) for start, each in zip(starts, tensors, strict=True)})
    has_room = all(end <= start for (_, end), (start, _) in itertools.pairwise(places))
    return has_room and tuple(map(starts.index, starts)) == APART


def _extent(tensor):
    """How many bytes there are from the first element to the end of the last."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (1 + sum((size - 1) * stride for size, stride in steps)) * tensor.element_size()


def _tensors_in(value):
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(each)
    elif isinstance(value, torch.Tensor):
        yield value


def _signature(known=[]):
    """Names of the forward's parameters that may be given by position and by name, in order; none if nobody knows.

    And whether it may tell in which order others were given by name: it takes any, or nobody knows.
    """
    if not known:
        forward = Reference.forward
        code = getattr(forward, "__code__", None)
        while code and code.co_argcount < 2 and hasattr(forward, "__wrapped__"):  # a decorator that passes all on
            forward = forward.__wrapped__
            code = getattr(forward, "__code__", None)
        names = code.co_varnames[1 : code.co_argcount] if code and code.co_posonlyargcount < 2 else ()
        known.append((names, not code or bool(code.co_flags & 8)))
    return known[0]


def _is_usual():
    """Whether torch does what it did when this was judged."""
    try:
        return not torch.is_autocast_enabled(DEVICE) and _is_direct()
    except (AttributeError, TypeError):  # of another version, which cannot be asked
        return False


def _is_direct():
    """Whether nothing is traced, transformed or goes through a mode."""
    return (
        not torch._C._get_deterministic_algorithms()
        and not torch._C._is_tracing()
        and not torch.fx._symbolic_trace.is_fx_symbolic_tracing()
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


def _form(tensor):
    """What is compared of a weight; None where fast code would not do, such as for one elsewhere or of another kind."""
    if tensor is None:
        return ()
    is_usual = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and _is_plainly_stored(tensor)
    return (tensor.dtype, *tensor.shape, tensor.stride()) if is_usual and tensor.device.type == DEVICE else None


def _kind(tensor):
    """What is compared of a weight at every call; little for one that says nothing of itself, as a nested one does.

    Last is where elements lie, which code that reads weights by address may have built in; None if that is not all.
    """
    try:
        strides = tensor.stride() if _is_plainly_stored(tensor) else None
        return type(tensor), tensor.dtype, tensor.shape, tensor.device, strides
    except Exception:  # noqa: BLE001 - as each kind has it
        return type(tensor), None


def _is_plainly_stored(tensor):
    """Whether its elements lie in memory as they read."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_neg() and not tensor.is_conj()


def _is_told_by_equality(value):
    """Whether whatever equals it and is of its type is the same, as zeros with a point are not."""
    return value is None or type(value) in (bool, int, str) or (type(value) is float and value != 0)


def _is_mutable(value):
    return isinstance(value, (dict, list, set)) or (isinstance(value, tuple) and any(map(_is_mutable, value)))


def _names(value):
    """What a tuple is called, and its items, where they have names."""
    return (type(value).__name__, *getattr(value, "_fields", ()))


def _same_forms(values, forms):
    return len(values) == len(forms) and all(map(_same_form, values, forms))


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
        if kind == "tuple":
            is_tuple = isinstance(value, tuple) and _names(value) == what if what else type(value) is tuple
            return is_tuple and _same_forms(value, form[2])
        if kind == "type":
            return type(value) is what
        return type(value) is type(what) and value == what and (value or repr(value) == repr(what))  # -0.0 equals 0.0
    if type(form) is list:
        return type(value) is list and _same_forms(value, form)
    return type(value) is dict and _same_keys(value, form) and all(_same_form(value[k], form[k]) for k in form)


def _same_keys(value, form):
    """Whether a mapping has these keys in this order: True equals 1 and 1.0, but is another key to who reads it."""
    if len(value) == len(form) and all(map(operator.is_, value, form)):
        return True
    return [*value] == [*form] and repr([*value]) == repr([*form])
