"""Texts of programs and programs of texts, statement by statement: what two programs share is written and read once."""

from functools import lru_cache

import libcst as cst


@lru_cache(maxsize=64)
def parsed(text: str) -> cst.Module:
    """A text that comes again and again, such as of a helper, as a program: always the same, so known to all caches."""
    return cst.parse_module(text)


def text_of(program: cst.Module) -> str:
    """The text of a program, which has nothing before its first statement or behind its last, as laid_out leaves it."""
    text = "".join(text_of_statement(each, program.default_indent, program.default_newline) for each in program.body)
    return text if program.has_trailing_newline else text.removesuffix(program.default_newline)


@lru_cache(maxsize=4096)
def text_of_statement(statement: cst.CSTNode, indent: str = " " * 4, newline: str = "\n") -> str:
    """The text of a statement of the outermost level, with what stands above it."""
    alone = cst.Module([statement], default_indent=indent, default_newline=newline)  # type: ignore[list-item]
    return alone.code
