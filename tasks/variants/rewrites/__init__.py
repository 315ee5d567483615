"""Everything the built-in provider can do to a program, in a stable order."""

from types import ModuleType

from tasks.variants.rewrites import (
    activations,
    affine,
    attention,
    cuda_graph,
    cuda_layers,
    dispatch,
    faults,
    graph,
    hoisting,
    kernel,
    loops,
    norms,
    overwriting,
    pointwise,
    products,
    reductions,
    rows,
    series,
    sharing,
    slowdowns,
    storage,
    transposes,
    triton,
    triton_convolutions,
    triton_layers,
    triton_products,
    triton_recurrence,
    windows,
)
from tasks.variants.rewriting import Rewrite

_MODULES: tuple[ModuleType, ...] = (
    products,
    reductions,
    transposes,
    windows,
    loops,
    series,
    hoisting,
    pointwise,
    sharing,
    affine,
    norms,
    activations,
    attention,
    overwriting,
    storage,
    rows,
    graph,
    kernel,
    faults,
    slowdowns,
)

_CUDA_MODULES: tuple[ModuleType, ...] = (
    triton,
    triton_products,
    triton_convolutions,
    triton_layers,
    triton_recurrence,
    dispatch,
    cuda_layers,
    cuda_graph,
)


def _all_of(modules: tuple[ModuleType, ...]) -> tuple[Rewrite, ...]:
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Rewrite))


REWRITES = _all_of(_MODULES)
"""Those for a CPU, of which all but the C kernels do for a GPU."""
CUDA_REWRITES = _all_of(_CUDA_MODULES)


def rewrites_for(device: str) -> tuple[Rewrite, ...]:
    """What may be done to a program for a device such as "cpu" or "cuda:0"."""
    if not device.startswith("cuda"):
        return REWRITES
    return (*(each for each in REWRITES if each.group != kernel.IN_C), *CUDA_REWRITES)
