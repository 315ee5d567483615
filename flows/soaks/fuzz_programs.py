"""Random candidates for the fuzzing of the judge: texts, programs, forged answers and mutated kernels.

Everything is drawn from a random.Random, so that a seed names a candidate, and hypothesis can drive the same code.
"""

import ast
import io
import json
import random
import struct
import tokenize
from collections.abc import Callable, Sequence
from typing import Any

from tasks.judge.call_frames import MARK
from tasks.training.grammar import Grammar

MAX_DEPTH = 5
MAX_TEXT_BYTES = 400
MUTATIONS = (1, 1, 1, 2, 3, 8)

PROGRAMS = Grammar({
    "program": (
        "import torch\nimport torch.nn as nn\n<top>\n<top>\n<model>\n<top>",
        "import torch\n<model>",
        "import torch\nimport torch.nn as nn\n<model>\n<model>\n<top>",
    ),
    "model": (
        "class ModelNew(nn.Module):\n    def __init__(self, *args):\n        super().__init__()\n        <stmt>\n"
        "        <stmt>\n    def forward(self, x, *args):\n        <stmt>\n        <stmt>\n        return <expr>",
        "class ModelNew(nn.Module):\n    def forward(self, x, *args):\n        <stmt>\n        return <tensor>",
        "class ModelNew(nn.Module):\n    def forward(self, x, *args):\n        return <expr>",
        "class ModelNew(torch.nn.Module):\n    weight = <expr>\n    def forward(self, *x):\n        return <expr>",
        "class ModelNew:\n    def __init__(self, *args, **kwargs): pass\n    def __call__(self, *x): return <expr>\n"
        "    def named_parameters(self, **kwargs): return <expr>\n    def state_dict(self): return <expr>",
        "class ModelNew(<expr>, metaclass=<expr>):\n    forward = <expr>",
        "ModelNew = <expr>",
        "def ModelNew(*args, **kwargs):\n    <stmt>\n    return <expr>",
    ),
    "top": ("<stmt>", "def helper(x, y=<expr>):\n    <stmt>\n    return <expr>", "import <module>", ""),
    "stmt": (
        "pass", "<name> = <expr>", "self.<attr> = <expr>", "<name> <op>= <expr>", "<expr>", "return <expr>",
        "if <expr>:\n    <stmt>\nelse:\n    <stmt>", "for <name> in <expr>:\n    <stmt>\n    break",
        "while <expr>:\n    <stmt>\n    break",
        "try:\n    <stmt>\nexcept BaseException:\n    <stmt>\nfinally:\n    <stmt>",
        "with <expr> as <name>:\n    <stmt>", "raise <expr>", "assert <expr>, <expr>", "del <name>", "global <name>",
        "import <module>", "def forward(self, *args):\n    <stmt>\n    yield <expr>", "print(<expr>)",
        "match <expr>:\n    case <const>: <stmt>\n    case _: <stmt>", "os.write(<int>, <bytes>)", "os._exit(<int>)",
        "sys.stdout.write(<expr>)", "setattr(torch, '<attr>', <expr>)", "torch.set_num_threads(<int>)",
        "class <name>(torch.Tensor):\n    <stmt>",
    ),
    "expr": (
        "x", "x", "x", "self", "args", "<const>", "<tensor>", "<tensor>", "torch.<function>(<expr>)",
        "torch.<function>(<expr>, <expr>)", "(<expr> <op> <expr>)", "(-<expr>)", "(not <expr>)", "(<expr> < <expr>)",
        "<expr>.<attr>", "<expr>.<attr>(<expr>)", "<expr>[<expr>]", "<expr>[<int>:<int>, ...]",
        "(lambda y: <expr>)(<expr>)", "[<expr> for y in <expr>]", "{<expr>: <expr>}", "(<expr>, <expr>)", "[<expr>]",
        "(<expr> if <expr> else <expr>)", "f'{<name>}'", "nn.Linear(<int>, <int>)", "nn.Parameter(<expr>)",
        "type(<const>, (), {})", "getattr(<expr>, '<attr>')", "(<name> := <expr>)", "torch.<dtype>",
    ),
    "tensor": (
        "torch.zeros_like(x)", "torch.full((<int>, <int>), <number>)", "torch.randn(<int>, <int>, dtype=torch.<dtype>)",
        "torch.empty(0)", "torch.tensor(<number>)", "x.to_sparse()", "x.expand(2, *x.shape)", "x.to('meta')",
        "x.to(torch.<dtype>)", "x.requires_grad_()", "x.as_strided((<int>, <int>), (<int>, <int>))", "x.t()",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])", "torch.view_as_complex(torch.ones(4, 2))",
        "torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)", "torch.full_like(x, <number>)", "x.numpy()",
    ),
    "const": ("<number>", "<int>", "None", "True", "'<name>'", "<bytes>", "...", "''", "'\\ud800\\x00'", "1j", "[]"),
    "number": ("0.0", "1.5", "float('nan')", "float('inf')", "-1e38", "1e-45", "<int>"),
    "int": ("0", "1", "2", "3", "-1", "128", "512", "1 << 20", "2 ** 63", "-2 ** 31", "10 ** 30"),
    "bytes": ("b''", "b'{}'", "b'\\xff' * 70000", "b'[' * 5000", "b'{\"id\": 4, \"outputs\": []}'"),
    "op": ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "<<", ">>"),
    "name": ("x", "y", "self", "torch", "nn", "forward", "ModelNew", "Model", "args", "os", "weight"),
    "attr": (
        "shape", "data", "T", "sum", "weight", "forward", "__class__", "__dict__", "dtype", "grad", "untyped_storage",
        "add_", "view", "Tensor", "float", "__call__", "_version", "state_dict",
    ),
    "function": ("relu", "softmax", "matmul", "sum", "stack", "compile", "Tensor", "sort", "empty", "load", "typename"),
    "dtype": ("float32", "float64", "float16", "bfloat16", "int64", "bool", "uint8", "complex64", "float8_e4m3fn"),
    "module": ("os, sys", "json", "gc", "ctypes", "threading", "nowhere", "torch.nowhere", "socket", "signal"),
})  # fmt: skip

FORGERY = """import os

import torch.nn as nn

FRAMES = {frames!r}


def send():
    for frame in FRAMES:
        os.write(3, frame)


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()
        {when} == "build" and send()

    def forward(self, x, *args):
        {when} == "call" and send()
        return x


{when} == "load" and send()
"""


def random_text(rng: random.Random, sources: Sequence[str]) -> str:
    """Bytes as a file would hold them, or code points; half of the texts stand behind a program."""
    if rng.random() < 0.5:
        text = rng.randbytes(rng.randrange(MAX_TEXT_BYTES)).decode(rng.choice(("latin-1", "utf-8")), "surrogateescape")
    else:
        text = "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(MAX_TEXT_BYTES // 4)))
    return rng.choice(("", "class ModelNew: pass\n#", rng.choice(sources) + "\n")) + text


def random_program(rng: random.Random, sources: Sequence[str]) -> str:
    """A derivation of the grammar: a program that nearly always parses and rarely makes sense."""
    del sources
    return PROGRAMS.derive("program", rng, depth=MAX_DEPTH) + "\n"


def forged_answers(rng: random.Random, sources: Sequence[str]) -> str:
    """A program that sends frames of its own to the referee, most of them nearly right."""
    del sources
    frames = [_frame(rng) for _ in range(rng.randrange(1, 4))]
    return FORGERY.format(frames=frames, when=repr(rng.choice(("load", "build", "call", "call", "call"))))


def mutant(rng: random.Random, sources: Sequence[str]) -> str:
    """The first of the sources with a few changes to its bytes, tokens or syntax tree, with parts of the others."""
    source = sources[0]
    for _ in range(rng.choice(MUTATIONS)):
        source = rng.choice(CHANGES)(source, rng.choice(sources), rng)
    return source


Generator = Callable[[random.Random, Sequence[str]], str]
GENERATORS: dict[str, Generator] = {
    "text": random_text,
    "program": random_program,
    "answers": forged_answers,
    "mutant": mutant,
}


def _frame(rng: random.Random) -> bytes:
    """An answer as the wire has it, with anything in any place."""
    kind = rng.random()
    if kind < 0.2:
        return rng.randbytes(rng.randrange(64))
    if kind < 0.5:
        return _short_answer(rng)
    answer = {
        "id": rng.choice((rng.randrange(12), _value(rng, 1))),
        "outputs": rng.choice(([[["float32", [128, 512]]]], _value(rng, 4), [_value(rng, 3)], [[_value(rng, 2)]])),
        "state": _value(rng, 3),
        "compiled_frames": _value(rng, 1),
        "own_kernels": _value(rng, 1),
        "error": rng.choice((None, None, _value(rng, 2), {"kind": _value(rng, 1), "text": _value(rng, 1)})),
    }
    kept = {key: value for key, value in answer.items() if rng.random() < 0.8}
    return json.dumps(kept).encode()[:60_000]


def _short_answer(rng: random.Random) -> bytes:
    """Words as in a short answer to a call, and sometimes a few bytes less or more."""
    words = [rng.choice((MARK, MARK, MARK, 0, 1 << 63)), rng.randrange(12)]
    words += [rng.choice((0, 8, 1 << 40, 1 << 63, rng.getrandbits(47))) for _ in range(rng.choice((0, 1, 1, 1, 2, 32)))]
    frame = struct.pack(f"={len(words)}Q", *words)
    return frame if rng.random() < 0.8 else (frame + bytes(8))[: rng.randrange(len(frame) + 8)]


def _value(rng: random.Random, depth: int) -> Any:
    leaves = (None, True, 0, 3, -1, 1 << 70, 1e400, float("nan"), "", "float32", "\ud800", "parameter", 128, 512, 0.5)
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(leaves)
    values = [_value(rng, depth - 1) for _ in range(rng.randrange(5))]
    return rng.choice((values, values, {str(value)[:9]: value for value in values}, [rng.choice(leaves)] * 300))


def _with_other_bytes(source: str, donor: str, rng: random.Random) -> str:
    start = rng.randrange(len(source) + 1)
    end = min(len(source), start + rng.choice((0, 1, 1, 8, 200)))
    at = rng.randrange(len(donor) + 1)
    return source[:start] + rng.choice(("", chr(rng.randrange(256)), donor[at : at + 30])) + source[end:]


def _with_other_tokens(source: str, donor: str, rng: random.Random) -> str:
    if "\0" in source + donor:  # of which Python 3.12 makes a SystemError
        return _with_other_bytes(source, donor, rng)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        words = [token.string for token in tokenize.generate_tokens(io.StringIO(donor).readline)]
    except (tokenize.TokenError, SyntaxError):  # IndentationError is one
        return _with_other_bytes(source, donor, rng)
    lines = source.splitlines(keepends=True)
    (row, start), (last_row, end) = (token := rng.choice(tokens)).start, token.end
    if row != last_row or not 0 < row <= len(lines):
        return _with_other_bytes(source, donor, rng)
    line = lines[row - 1]
    lines[row - 1] = line[:start] + rng.choice(("", token.string * 2, rng.choice(words))) + line[end:]
    return "".join(lines)


def _with_other_tree(source: str, donor: str, rng: random.Random) -> str:
    """One expression or statement replaced, by nothing or by another of its kind."""
    try:
        tree, other = ast.parse(source), ast.parse(donor)
    except (SyntaxError, ValueError, RecursionError):
        return _with_other_tokens(source, donor, rng)
    kind = rng.choice((ast.expr, ast.stmt))
    places = [
        (node, name, old)
        for node in ast.walk(tree)
        if not isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.MatchValue)
        for name, field in ast.iter_fields(node)
        for old in (field if isinstance(field, list) else [field])
        if isinstance(old, kind) and isinstance(getattr(old, "ctx", ast.Load()), ast.Load)
    ]
    donors = [node for node in ast.walk(other) if isinstance(node, kind)]
    if not places:
        return _with_other_tokens(source, donor, rng)
    node, name, old = rng.choice(places)
    nothing = ast.Pass() if kind is ast.stmt else ast.Constant(rng.choice((0, 1, -1, 2.5, 1 << 40, None, "")))
    new = rng.choice((nothing, rng.choice(donors or [nothing])))
    field = getattr(node, name)
    setattr(node, name, [new if each is old else each for each in field] if isinstance(field, list) else new)
    return ast.unparse(tree) + "\n"


# Most changes are to the tree, because what is changed elsewhere rarely parses.
CHANGES = (_with_other_bytes, _with_other_tokens, _with_other_tree, _with_other_tree, _with_other_tree)
