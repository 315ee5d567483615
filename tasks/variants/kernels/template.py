"""The fixed part of a candidate with a C kernel: how the kernel is built, and where it goes in the program."""

from collections.abc import Sequence

import libcst as cst

# The same in every candidate, so that a policy learns it once. __FAST_MATH__ alone makes glibc declare its vector
# functions; -ffast-math itself would also license gcc to forget about NaN.
PROLOGUE = '''import ctypes
import subprocess
import tempfile

import torch
import torch.nn as nn


def build(source):
    flags = "-O3 -march=native -fopenmp -D__FAST_MATH__ -fno-math-errno -fno-trapping-math -include math.h"
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/kernel.so"
        command = ["gcc", *flags.split(), "-shared", "-fPIC", "-x", "c", "-", "-lm", "-o", path]
        subprocess.run(command, input=source, text=True, check=True)
        function = ctypes.CDLL(path).run

    def run(tensors, *sizes):
        tensors = [tensor.contiguous() for tensor in tensors]
        function(*map(ctypes.c_size_t, [tensor.data_ptr() for tensor in tensors] + [*sizes]))

    return run


run = build("""
%s""")
'''


def with_kernel(program: cst.Module, source: str, forward: Sequence[str]) -> cst.Module:
    """The program with a C function `run` and a new body of ModelNew's forward.

    Args:
        program: defines ModelNew, and no `run` or `build` yet.
        source: a C function `void run(...)` whose parameters are pointers and longs.
        forward: lines of Python.
    """
    prologue = cst.parse_module(PROLOGUE % source).body
    body = cst.parse_module("\n".join(forward) + "\n").body
    changed = program.visit(_ForwardReplacer(body))
    assert isinstance(changed, cst.Module)
    at = next(i for i, statement in enumerate(changed.body) if not _is_import(statement))
    return changed.with_changes(body=[*changed.body[:at], *prologue, *changed.body[at:]])


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)


class _ForwardReplacer(cst.CSTTransformer):
    """Replaces the body of ModelNew.forward."""

    def __init__(self, body: Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement]) -> None:
        self.body = body

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return node.name.value == "ModelNew"

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if updated_node.name.value != "forward":
            return updated_node
        return updated_node.with_changes(body=cst.IndentedBlock(body=self.body))
