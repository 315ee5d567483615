"""Programs put together from pieces of others and from nonsense, with the candidate that repeats them.

Nobody would run them, and nothing about them can be learnt by heart: the only way to complete one is to copy it from
the prompt. A policy taught real problems alone learns those few by heart instead, and has nothing to say to a new one.
"""

import ast
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent

from tasks.training.nonsense import Kind, Nonsense
from tasks.variants.prompts import Exemplar

# Of all phrases, but for statements like an earlier one; the rest is what real programs say, sometimes twice.
_NONSENSE_SHARE = 0.5
# Statements like an earlier one of their program, but for a name or a number: to go on after such a line, what was
# copied so far must be compared further back than its last few tokens.
_VARIED_SHARE = 0.4
_MAX_STATEMENTS = 6
_MAX_MEMBERS = 4
_INDENTATION = " " * 8
_COMMON_NAMES = {"x", "y", "out"}
_NAMES_OF_SIZES = ("channels", "depth", "features", "hidden", "k", "n", "size", "width")
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwxz", "aeiou"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """What programs are made of: statements with their indentation, and whole functions."""

    names: Sequence[str]
    """Of parameters, and those that nearly every program has: three or more."""
    parameters: Sequence[tuple[str, ...]]
    """Of forward, without self."""
    statements: Sequence[str]
    """Of forward, but for the last."""
    returns: Sequence[str]
    members: Sequence[str]
    """Of __init__, but for the call of super."""
    inputs: Sequence[str]
    """Functions get_inputs."""
    sizes: Sequence[str]
    """Functions get_init_inputs, which not every program has."""


def pieces_of(references: Iterable[str], candidates: Iterable[Exemplar]) -> Pieces:
    """The pieces of references and candidates, each once and in a fixed order."""
    references = list(references)
    classes = [_members(source) for source in [*references, *(candidate.source for candidate in candidates)]]
    functions = [_functions(source) for source in references]
    forwards = [members["forward"] for members in classes if "forward" in members]
    setups = [members["__init__"] for members in classes if "__init__" in members]
    parameters = {names for names, _ in forwards}
    return Pieces(
        names=sorted(_COMMON_NAMES.union(*parameters)),
        parameters=sorted(parameters),
        statements=sorted({statement for _, body in forwards for statement in body[:-1]}),
        returns=sorted({body[-1] for _, body in forwards if body and body[-1].lstrip().startswith("return ")}),
        members=sorted({statement for _, body in setups for statement in body if "super()" not in statement}),
        inputs=sorted({named["get_inputs"] for named in functions if "get_inputs" in named}),
        sizes=sorted({named["get_init_inputs"] for named in functions if "get_init_inputs" in named}),
    )


def invent(pieces: Pieces, rng: random.Random) -> tuple[str, str]:
    """A reference in the format of problems, and the candidate that repeats it."""
    names = rng.sample(pieces.names, k=min(rng.randint(3, 6), len(pieces.names)))
    nonsense = Nonsense(names, [f"{name}_{letter}" for name, letter in zip(names, _CONSONANTS, strict=False)])

    def phrase(kind: Kind, real: Sequence[str]) -> str:
        if real and rng.random() >= _NONSENSE_SHARE:
            return rng.choice(real)
        return indent(nonsense.phrase(kind, rng), _INDENTATION)

    body = ""
    if pieces.members and rng.random() < 0.6:
        sizes = ", ".join(rng.sample(_NAMES_OF_SIZES, k=rng.choice([1, 1, 2])))
        members = [phrase("member", pieces.members) for _ in range(rng.randint(1, _MAX_MEMBERS))]
        body += f"    def __init__(self, {sizes}):\n        super().__init__()\n" + "\n".join([*members, "\n"])
    statements: list[str] = []
    for _ in range(rng.randint(1, _MAX_STATEMENTS)):
        if statements and rng.random() < _VARIED_SHARE:
            statements.append(nonsense.varied(rng.choice(statements), rng))
        else:
            statements.append(phrase("statement", pieces.statements))
    is_real = pieces.parameters and rng.random() >= _NONSENSE_SHARE
    parameters = rng.choice(pieces.parameters) if is_real else rng.sample(names, k=rng.randint(1, 3))
    statements.append(phrase("return", pieces.returns))
    body += f"    def forward({', '.join(['self', *parameters])}):\n" + "\n".join([*statements, ""])
    imports = "import torch\nimport torch.nn as nn\n" + "import torch.nn.functional as F\n" * ("F." in body)
    functions = "".join(f"\n\n{rng.choice(found)}\n" for found in (pieces.inputs, pieces.sizes) if found)
    head = f"{imports}\n\nclass Model"
    return f"{head}(nn.Module):\n{body}{functions}", f"{head}New(nn.Module):\n{body}"


def invented_names(count: int, rng: random.Random) -> list[str]:
    """Names no program has, of one to three syllables, such as "ko", "lemi_a" or "batu3"."""
    names: set[str] = set()
    while len(names) < count:
        syllables = [rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.randint(1, 3))]
        ending = rng.choice(["", "", f"_{rng.choice(_CONSONANTS)}", str(rng.randint(0, 9)), "_in", "_out", "_weight"])
        names.add("".join(syllables) + ending)
    return sorted(names)


def _members(source: str) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """Parameters and statements of each method of the last class, by the method's name."""
    lines = source.splitlines()
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    methods = [node for node in classes[-1].body if isinstance(node, ast.FunctionDef)] if classes else []
    return {
        method.name: (
            tuple(argument.arg for argument in method.args.args[1:]),
            [piece for node in method.body for piece in _piece(lines[node.lineno - 1 : node.end_lineno])],
        )
        for method in methods
    }


def _piece(lines: Sequence[str]) -> Iterator[str]:
    """A statement as it is indented here, unless it then does not parse: its first line is another's last, or such."""
    text = dedent("\n".join(lines))
    try:
        ast.parse(text)
    except SyntaxError:
        return
    yield indent(text, _INDENTATION)


def _functions(source: str) -> dict[str, str]:
    return {
        node.name: ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
