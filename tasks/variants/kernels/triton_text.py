"""Expressions of C, as the kernels' operations are written in, as expressions of Triton."""

import re
from collections.abc import Iterator

# Triton's own exp and log are faster and less exact; those of libdevice are what PyTorch's kernels call.
_FUNCTIONS = {
    "fabsf": "tl.abs",
    "sqrtf": "tl.sqrt_rn",
    **{
        f"{name}f": f"libdevice.{name}"
        for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "erf", "pow")
    },
}
_CONSTANTS = {"NAN": 'float("nan")', "INFINITY": 'float("inf")'}
_FLOAT = re.compile(r"(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)f\b")


def in_triton(text: str) -> str:
    """The expression with C's choices, functions and constants replaced.

    >>> in_triton("(x < 0.0f ? 0.0f : expf(x))")
    '(tl.where(x < 0.0, 0.0, libdevice.exp(x)))'
    """
    condition, _, rest = _cut(text, "?")
    if rest:
        kept, _, other = _cut(rest, ":")
        return f"tl.where({in_triton(condition)}, {in_triton(kept)}, {in_triton(other)})"
    for operator, triton in (("||", "|"), ("&&", "&")):
        left, found, right = _cut(text, operator)
        if found:
            return f"({in_triton(left)}) {triton} ({in_triton(right)})"
    return "".join(_part(part) for part in _parts(text))


def index_in_triton(text: str, values: dict[str, int]) -> str:
    """An index with whole division, and with numbers for some of its names."""
    divided = text.replace(" / ", " // ")
    return re.sub(r"\b[a-z]\w*\b", lambda found: str(values.get(found[0], found[0])), divided)


def _part(part: str) -> str:
    if part.startswith("("):
        return f"({', '.join(in_triton(each.strip()) for each in _arguments(part[1:-1]))})"
    plain = _FLOAT.sub(r"\1", part)
    return re.sub(r"\b[A-Za-z]\w*", lambda found: (_FUNCTIONS | _CONSTANTS).get(found[0], found[0]), plain)


def _parts(text: str) -> Iterator[str]:
    """Runs without parentheses, and what stands in a pair of them with the pair, in turn."""
    start = depth = 0
    for place, character in enumerate(text):
        if character == "(":
            if not depth:
                yield text[start:place]
                start = place
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                yield text[start : place + 1]
                start = place + 1
    yield text[start:]


def _arguments(text: str) -> list[str]:
    first, comma, rest = _cut(text, ",")
    return [first, *(_arguments(rest) if comma else [])]


def _cut(text: str, mark: str) -> tuple[str, str, str]:
    """As str.partition, at the first mark outside of all parentheses and of the choices within a choice."""
    depth = waiting = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth:
            continue
        if text.startswith(mark, place):
            if not (mark == ":" and waiting):
                return text[:place].strip(), mark, text[place + len(mark) :].strip()
            waiting -= 1
        elif mark == ":" and character == "?":
            waiting += 1
    return text, "", ""
