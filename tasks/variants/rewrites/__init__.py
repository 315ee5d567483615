"""Everything the built-in provider can do to a program, in a stable order."""

from types import ModuleType

from tasks.variants.rewrites import fusion
from tasks.variants.rewriting import Rewrite

_MODULES: tuple[ModuleType, ...] = (fusion,)

REWRITES: tuple[Rewrite, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Rewrite)
)
