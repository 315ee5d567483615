"""Everything the built-in provider can do to a program, in a stable order."""

from types import ModuleType

from tasks.variants.rewrites import (
    activations,
    affine,
    attention,
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

REWRITES: tuple[Rewrite, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Rewrite)
)
