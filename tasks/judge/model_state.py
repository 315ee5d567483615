"""The weights of a model, and how it is made. Runs inside a worker."""

import inspect
from collections.abc import Iterator
from typing import Any

import torch

UNKNOWN_ITEMS = 1 << 40
MOST_NESTED = 4


def constructor_arguments(returned: Any, model_class: Any) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments, from what get_init_inputs returned.

    A mapping is taken as named arguments. So is the second of a list and a mapping, as some collections of problems
    have it, where the constructor does not take those two as they are.
    """
    if isinstance(returned, dict):
        return [], returned
    positional = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(positional) == 2 and isinstance(positional[0], list | tuple) and isinstance(positional[1], dict):
        try:
            inspect.signature(model_class).bind(*positional)
        except TypeError:
            return list(positional[0]), positional[1]
        except ValueError:  # no signature to be had
            pass
    return positional, {}


def num_other_items(model: Any) -> int:
    """How many numbers a model keeps outside its state dict; UNKNOWN_ITEMS where that cannot be told.

    Some are made at its first call, or kept where only the program itself finds them.
    """
    if not isinstance(model, torch.nn.Module) or any(map(torch.nn.parameter.is_lazy, model.parameters())):
        return UNKNOWN_ITEMS
    usual = vars(torch.nn.Module()).keys()
    own = [value for module in model.modules() for name, value in vars(module).items() if name not in usual]
    return min(UNKNOWN_ITEMS, sum(_num_items(value, MOST_NESTED) for value in own))


def _num_items(value: Any, depth: int) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * (2 if value.is_complex() else 1)
    if value is None or isinstance(value, bool | int | float | complex | str | torch.nn.Module | torch.Size):
        return 0
    if isinstance(value, list | tuple | dict) and depth:
        return sum(_num_items(each, depth - 1) for each in (value.values() if isinstance(value, dict) else value))
    return UNKNOWN_ITEMS


def load(model: Any, new_state: dict[str, torch.Tensor]) -> bool:
    """Overwrite parameters and buffers in place, as training or load_state_dict would.

    What has these values already stays untouched: who looks at the versions of some only must not learn of others.

    Returns:
        Whether the model has a place for all of it.
    """
    try:
        if _loads_each_for_itself(model):
            known = model.state_dict()
            new_state = {
                name: value
                for name, value in new_state.items()
                if name not in known or not _are_same(known[name], value)
            }
        return not model.load_state_dict(new_state, strict=False).unexpected_keys
    except (RuntimeError, AttributeError):  # of another shape, or no module at all
        return False


def _loads_each_for_itself(model: Any) -> bool:
    """Whether nothing of a program's own looks at all of a state that is loaded."""
    return isinstance(model, torch.nn.Module) and all(
        type(module).load_state_dict is torch.nn.Module.load_state_dict
        and not module._load_state_dict_pre_hooks
        and (
            type(module)._load_from_state_dict is torch.nn.Module._load_from_state_dict
            or type(module).__module__.startswith("torch.")
        )
        for module in model.modules()
    )


def _are_same(one: Any, other: torch.Tensor) -> bool:
    if not isinstance(one, torch.Tensor) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other.to(one.device))


def state(model: Any) -> Iterator[tuple[str, torch.Tensor, str]]:
    """Every tensor of the state dict with its name and kind.

    The kinds are "parameter", "frozen" (a parameter that asks for no gradient where another does, such as a mask),
    "statistic" (what a layer of normalisation has gathered) and "buffer".
    """
    if not isinstance(model, torch.nn.Module):
        return
    parameters = dict(model.named_parameters(remove_duplicate=False))
    trains = any(each.requires_grad for each in parameters.values())
    kinds = {name: "frozen" if trains and not each.requires_grad else "parameter" for name, each in parameters.items()}
    statistics = {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, torch.nn.modules.batchnorm._NormBase)
        for name in ("running_mean", "running_var")
    }
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, torch.Tensor) and not torch.nn.parameter.is_lazy(tensor):
            yield name, tensor, kinds.get(name, "statistic" if name in statistics else "buffer")


def first_alike(model: Any) -> list[int]:
    """For each tensor of the state dict the first that lies in the same memory in the same form; maybe itself."""
    tensors = [tensor for _, tensor, _ in state(model)]  # held, so that no memory is handed out twice
    firsts: dict[Any, int] = {}
    return [
        firsts.setdefault((each.data_ptr(), each.dtype, each.shape, each.stride()) if each.numel() else index, index)
        for index, each in enumerate(tensors)
    ]
