"""The program within a language model's answer. Never raises: what comes out is the judge's to refuse."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tasks.problems.parsing import parsed

# Every pattern here takes linear time, since an answer may be anything.
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)")
_NEW_MODEL = re.compile(r"^[ \t]*class[ \t]+ModelNew\b|^[ \t]*ModelNew[ \t]*=", flags=re.MULTILINE)
# What servers that do not strip their model's end token leave at the end of an answer.
_END_TOKENS = re.compile(r"(?:\s*<(?:\|[a-z_]{1,24}\||/?s|eos|pad|end_of_turn)>)+\s*\Z")
_TAIL = 256
_THINKING, _THOUGHT = "<think>", "</think>"


class Form(StrEnum):
    """What an answer is, as text."""

    PROGRAM = "program"
    """It holds a program that defines ModelNew, whole as far as one can see."""
    TRUNCATED = "truncated"
    """It was cut off before its program was whole."""
    EMPTY = "empty"
    NO_PROGRAM = "no_program"
    """Nothing in it defines ModelNew: a refusal, a question, prose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How an answer was read."""

    form: Form
    source: str
    """The program, or for other forms what there is: a candidate that the judge refuses for what it lacks."""


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    is_closed: bool


def read_program(content: str, *, prompt: str, finish_reason: str) -> Reading:
    """The last fenced block that defines ModelNew; whole blocks go before one that was cut off.

    The model's thinking is no part of its answer, nor is the prompt where a server repeats it. An answer without any
    fence is a program if it parses as one.
    """
    said = content.removeprefix(prompt).lstrip()
    text = _spoken(said)
    if not text:
        was_thinking = finish_reason == "length" or said.startswith(_THINKING)
        return Reading(form=Form.TRUNCATED if was_thinking else Form.EMPTY, source="\n")
    blocks = list(_blocks(text))
    programs = [block for block in blocks if _NEW_MODEL.search(block.text)]
    whole = [block for block in programs if block.is_closed]
    if whole:
        return _read(Form.PROGRAM, whole[-1].text)
    if programs:
        is_program = finish_reason != "length" and _parses(programs[-1].text)
        return _read(Form.PROGRAM if is_program else Form.TRUNCATED, programs[-1].text)
    if not blocks and _NEW_MODEL.search(text) and _parses(text):
        return _read(Form.PROGRAM, text)
    return _read(Form.TRUNCATED if finish_reason == "length" else Form.NO_PROGRAM, text)


def _read(form: Form, text: str) -> Reading:
    return Reading(form=form, source=text.strip() + "\n")


def _spoken(content: str) -> str:
    """The answer after the model's thinking, without end tokens; nothing of it where the thinking has no end."""
    _, thought, after = content.rpartition(_THOUGHT)
    if not thought and content.startswith(_THINKING):
        return ""
    text = after.rstrip()
    return text[:-_TAIL] + _END_TOKENS.sub("", text[-_TAIL:])


def _blocks(text: str) -> Iterator[_Block]:
    """The fenced blocks in order. A fence is closed by one of its kind that is as long and names no language."""
    fence, lines = "", list[str]()
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line.strip())
        if not fence:
            fence = found[1] if found else ""
        elif found and not found[2] and found[1][0] == fence[0] and len(found[1]) >= len(fence):
            yield _Block("\n".join(lines), True)
            fence, lines = "", []
        else:
            lines.append(line)
    if fence:
        yield _Block("\n".join(lines), False)


def _parses(text: str) -> bool:
    try:
        parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
