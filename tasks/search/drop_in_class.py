"""The class that a drop-in file adds. Its text is copied into the file: it uses nothing of this project.

What is not defined here stands for what the file has: Reference, Fast, FORMS, NAMED_FORMS, TRAINING, DEVICE.
"""

# ruff: noqa: F821
# mypy: ignore-errors

import functools
import warnings

import torch


class DropIn(Reference):
    _made_from = None
    _fast = None

    @functools.wraps(Reference.__init__)
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._made_from = (arguments, options)

    @functools.wraps(Reference.forward)
    def forward(self, *inputs, **named):
        if (
            not torch.is_grad_enabled()
            and type(self) is DropIn
            and (TRAINING is None or self.training is TRAINING)
            and _same_form(inputs, FORMS)
            and _same_form(named, NAMED_FORMS)
            and not torch.is_autocast_enabled(DEVICE)
            and not torch.compiler.is_compiling()
            and self._is_fast()
        ):
            return self._fast.module.forward(*inputs, **named)
        return super().forward(*inputs, **named)

    def __getstate__(self):
        """Without the fast module, which is made again where it is needed."""
        own = self._fast.added if self._fast else ()
        return {name: value for name, value in super().__getstate__().items() if name != "_fast" and name not in own}

    def _is_fast(self):
        if self._fast is None and self._made_from is not None:
            self._fast = _Twin(self, *self._made_from)
        return self._fast is not None and self._fast.fits()


class _Twin:
    """The fast module: another class with the attributes, modules and weights of the module it serves."""

    def __init__(self, served, arguments, options):
        self.module = None
        self.added = ()
        self._modules, self._tensors = [], []
        try:
            with torch.random.fork_rng(devices=[]):
                fast = Fast(*arguments, **options)
            self._watch(served)
            self.added = self._shared(fast, served)
            self.module = fast
        except Exception as error:  # noqa: BLE001 - whatever it is, the module has to serve
            warnings.warn(f"{type(served).__name__} stays as slow as it was: {error}", stacklevel=5)

    def fits(self):
        """Whether the modules and weights are those that were there first, of the same form, without hooks."""
        if self.module is None:
            return False
        for module, children, count, is_inner in self._modules:
            if [*module._modules.values()] != children or len(module._parameters) + len(module._buffers) != count:
                return False
            if is_inner and (module._forward_hooks or module._forward_pre_hooks):
                return False
        for tensors, name, dtype, shape, device in self._tensors:
            tensor = tensors.get(name)
            if tensor is None or tensor.dtype is not dtype or tensor.shape != shape or tensor.device != device:
                return False
        return True

    def _watch(self, module, is_inner=False):
        children = [*module._modules.values()]
        self._modules.append((module, children, len(module._parameters) + len(module._buffers), is_inner))
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    self._tensors.append((tensors, name, tensor.dtype, tensor.shape, tensor.device))
        for child in children:
            if child is not None:
                self._watch(child, is_inner=True)

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
            and value.shape == rest[0]
            and value.stride() == rest[1]
            and value.device.type == DEVICE
        )
    return type(value) is what if kind == "type" else type(value) is type(what) and value == what
