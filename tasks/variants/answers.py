"""The code in an answer that reasons first: thinking, three sections, and fenced blocks of which one is meant."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What ends a turn in the chat formats of Qwen, DeepSeek, Llama, Mistral and our own tokenizer. Whatever follows is no
# longer the answer.
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|end_of_text|end|pad)\|>|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>"
)
# Templates of thinking models open the first one in the prompt, so that an answer may hold only the closing tag.
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", flags=re.DOTALL | re.IGNORECASE)
_UNFINISHED_THOUGHT = re.compile(r"<think(?:ing)?>", flags=re.IGNORECASE)
_HEADING = re.compile(r"[\s#*_\d.)]*(?:section\s+\d+\s*[:.]?\s*)?code\s+implementation\b", flags=re.IGNORECASE)
_FENCE = re.compile(r"(?P<indent>\s*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)\Z")
_CANDIDATE = re.compile(r"^\s*class\s+ModelNew\b", flags=re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    text: str
    number: int
    is_under_heading: bool
    """Whether "Code Implementation" is the heading above it, or one before."""
    is_complete: bool
    """Whether its fence is closed; an answer cut off at its longest length ends in one that is not."""

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        return (self.is_under_heading, _CANDIDATE.search(self.text) is not None, self.is_complete, self.number)


def code_of(answer: str) -> str:
    """The code that the answer gives, or the whole answer where it gives none.

    Thoughts are not searched: drafts in them are no answer. Of several blocks those under the heading "Code
    Implementation" come first, among these those that define a ModelNew, among these the closed ones; then the last one
    counts. Usage examples and shell commands after the module are passed over so.
    """
    text = _THOUGHT.sub("", answer)
    if thought := _UNFINISHED_THOUGHT.search(text):
        text = text[: thought.start()]
    if end := _END_OF_TURN.search(text):
        text = text[: end.start()]
    blocks = list(_blocks(text))
    return max(blocks, key=lambda block: block.rank).text if blocks else text


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.split("\n")
    is_under_heading, number, position = False, 0, 0
    while position < len(lines):
        fence = _FENCE.match(lines[position])
        is_under_heading |= _HEADING.match(lines[position]) is not None
        position += 1
        if fence:
            body, is_complete = _body(lines[position:], fence["marks"])
            position += len(body)
            text = "\n".join(line.removeprefix(fence["indent"]) for line in body)
            yield _Block(
                text=text.removesuffix(fence["marks"]) if is_complete else text,
                number=number,
                is_under_heading=is_under_heading,
                is_complete=is_complete,
            )
            number += 1


def _body(lines: list[str], marks: str) -> tuple[list[str], bool]:
    """The lines of a block, the one that closes it included, and whether there is such a one."""
    for number, line in enumerate(lines, start=1):
        # Some models close a fence at the end of the last line of code.
        if line.rstrip().endswith(marks):
            return [*lines[: number - 1], line.rstrip()], True
    return lines, False
