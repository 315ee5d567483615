"""Which published problem set references belong to, told by their texts and not by what a file calls itself."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files


def reference_hash(source: str) -> str:
    """Identity of a reference's text alone, whatever precision is asked of candidates."""
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:16]


def problem_set_of(sources: Iterable[str], *, otherwise: str) -> str:
    """Name of the newest known set that holds all of the references.

    A part of a set is of that set. References that no set holds together are one of their own: its name ends in a tag
    of its content, so that an edited set is never taken for the published one.

    >>> problem_set_of(["class Model: ..."], otherwise="kernelbench")
    'kernelbench-9747d4'

    Args:
        otherwise: what an unknown set is called before its tag.
    """
    hashes = {reference_hash(source) for source in sources}
    for name, known in reversed(_known_sets().items()):
        if hashes and hashes <= known:
            return name
    tag = hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()[:6]
    return f"{otherwise}-{tag}"


@cache
def _known_sets() -> dict[str, frozenset[str]]:
    """Hashes by set, the oldest set first, as problem_sets.txt lists them."""
    found: dict[str, set[str]] = {}
    for line in files(__package__).joinpath("problem_sets.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, reference = line.split()
            found.setdefault(name, set()).add(reference)
    return {name: frozenset(hashes) for name, hashes in found.items()}
