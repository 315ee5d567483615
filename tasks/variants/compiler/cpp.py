"""Inductor's C++ as the native part of a candidate: one text for all kernels, built by g++ when the program is run.

Most plain loops are built in a fifth of a second, because what they need of torch's headers is written here. Loops over
vectors need the headers themselves, which g++ finds beside torch and reads for a second and a half.
"""

import re
from collections.abc import Collection, Sequence

from tasks.variants.compiler.emission import NotSelfContainedError, Variation
from tasks.variants.compiler.wrapper import Kernel

COMPILER = "g++"
_LOOPS, _VECTORS = {"cpp.simdlen": 1}, {"cpp.simdlen": 512}
_UNFUSED = {"max_fusion_size": 1}
VARIATIONS: tuple[Variation, ...] = (
    Variation(name="loops", options=_LOOPS),
    Variation(name="vectors", options=_VECTORS),
    Variation(name="half_vectors", options={"cpp.simdlen": 256}),
    Variation(name="unfused_loops", options={**_LOOPS, **_UNFUSED}),
    Variation(name="unfused_vectors", options={**_VECTORS, **_UNFUSED}),
)

_INCLUDE = "#include <torch/csrc/inductor/cpp_prefix.h>\n"
# Divisions by zero are then told by an exception where they happen.
_BOOKKEEPING = re.compile(r"^ *(?:std::atomic<int> )?inductor_cpu_(?:integer_div|throw_if)\w*.*;\n", re.MULTILINE)
_HEAD = re.compile(r'extern "C"\s+void\s+kernel\(([^)]*)\)\s*\{')
_FLAGS = "-O3 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off"

# __FAST_MATH__ alone makes glibc declare its vector functions; -ffast-math itself would also forget about NaN.
_PLAIN_FLAGS = f"{_FLAGS} -std=c++17 -D__FAST_MATH__ -include math.h"
_PLAIN = """#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
"""
# What plain loops use of Inductor's and torch's headers, as those define it.
_HELPERS = {
    "max_propagate_nan": """
template <typename T>
T max_propagate_nan(T a, T b) { return std::isnan(a) || a > b ? a : b; }
""",
    "min_propagate_nan": """
template <typename T>
T min_propagate_nan(T a, T b) { return std::isnan(a) || a < b ? a : b; }
""",
    "c10::convert": """
namespace c10 {
template <typename To, typename From>
To convert(From value) { return static_cast<To>(value); }
}
""",
    "c10::div_floor_integer": """
namespace c10 {
template <typename T>
T div_floor_integer(T a, T b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
}
""",
    "TORCH_CHECK": """
#define TORCH_CHECK(condition, ...) if (!(condition)) throw 1
""",
}
_TORCH_TYPE = re.compile(r"\bat::|\bc10::complex\b")
_CALLED = re.compile(r"(?<![\w.:>])[A-Za-z_][\w:]*(?=\s*[(<])")
_PLAIN_NAME = re.compile(
    r"std::\w+(::\w+)*|(tmp|x|buf_|in_|out_)\w*|for|if|try|catch|static_cast|decltype|\w+_t|int|long|float|double|bool"
)

_PROLOGUE = """import ctypes
import os
import subprocess
import tempfile

import torch


def build(source):
    flags = "{flags}"
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/kernels.so"
        command = ["g++", *flags.split(), "-shared", "-fPIC", "-x", "c++", "-", "-o", path{torch}]
        subprocess.run(command, input=source, text=True, check=True)
        return ctypes.CDLL(path)


def run(kernel, *tensors):
    if kernel(*[ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]):
        raise IndexError("index out of range")


"""
_TORCH = (
    ', "-I" + os.path.dirname(torch.__file__) + "/include"'
    ', "-L" + os.path.dirname(torch.__file__) + "/lib", "-ltorch_cpu", "-lc10"'
)
# What Inductor calls an instruction set: what ATen's headers call it, and those machines that have it.
_CAPABILITIES = {"avx512": ("AVX512", ("AVX512",)), "avx2": ("AVX2", ("AVX2", "AVX512"))}


class CppEmitter:
    """Writes the native part of a candidate for the CPU."""

    device = "cpu"
    compiler = COMPILER
    variations = VARIATIONS

    def native(self, kernels: Sequence[Kernel], *, vector_isa: str) -> str:
        """Python text that defines `run` and `library`; the latter is false where the machine lacks the instructions.

        Raises:
            NotSelfContainedError: if a kernel is of another kind than C++ with tensors for parameters.
        """
        text = "\n".join(_function(kernel) for kernel in kernels)
        if '"""' in text or "\\" in text:
            raise NotSelfContainedError("a kernel's text holds what cannot be quoted")
        helpers = _helpers(text, {kernel.name for kernel in kernels})
        if helpers is not None:
            return _text(_PLAIN_FLAGS, f"{_PLAIN}{helpers}\n{text}")
        if not vector_isa:
            flags = f"{_FLAGS} -std=c++20 -DCPU_CAPABILITY=DEFAULT -DCPU_CAPABILITY_DEFAULT"
            return _text(flags, f"{_INCLUDE}\n{text}", torch=_TORCH)
        if vector_isa not in _CAPABILITIES:
            raise NotSelfContainedError(f"loops over vectors of {vector_isa} are not supported")
        name, machines = _CAPABILITIES[vector_isa]
        flags = f"{_FLAGS} -std=c++20 -DCPU_CAPABILITY={name} -DCPU_CAPABILITY_{name}"
        condition = f"torch.backends.cpu.get_cpu_capability() in {machines} and "
        return _text(flags, f"{_INCLUDE}\n{text}", torch=_TORCH, condition=condition)


def _text(flags: str, source: str, *, torch: str = "", condition: str = "") -> str:
    return _PROLOGUE.format(flags=flags, torch=torch) + f'library = {condition}build("""\n{source}""")\n'


def _function(kernel: Kernel) -> str:
    """A kernel under its name, which returns 0, or 1 after an exception: ctypes would let that end the process."""
    if kernel.maker != "cpp_pybinding" or not all(each.endswith("*") for each in kernel.parameters):
        raise NotSelfContainedError(f"kernel {kernel.name} is no C++ function of tensors alone")
    text = _BOOKKEEPING.sub("", kernel.source.replace(_INCLUDE, "")).strip()
    head = _HEAD.search(text)
    if head is None or not text.endswith("}"):
        raise NotSelfContainedError(f"kernel {kernel.name} is not written as expected")
    parameters = re.sub(r"\s+", " ", head[1])
    before, body = text[: head.start()], text[head.end() : -1]
    return (
        f'{before}extern "C" int {kernel.name}({parameters}) try {{{body}    return 0;\n}} catch (...) {{\n'
        "    return 1;\n}\n"
    )


def _helpers(text: str, kernels: Collection[str]) -> str | None:
    """What plain loops need besides the standard library, or None where something needs torch's headers."""
    called = {name for name in _CALLED.findall(text) if not _PLAIN_NAME.fullmatch(name)}.difference(kernels)
    if not called <= set(_HELPERS) or _TORCH_TYPE.search(text):
        return None
    return "".join(helper for name, helper in _HELPERS.items() if name in called)
