"""Random text derived from a grammar."""

import math
import random
import re
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"<([a-z]+)>")


class Grammar:
    """Words and what each may become.

    A word in angle brackets within an alternative is replaced in turn; the lines it becomes are indented as its own is.
    """

    def __init__(self, alternatives: Mapping[str, Sequence[str]]) -> None:
        self._alternatives = alternatives
        # What a word becomes when a text is deep enough.
        self._leaves = {
            word: [text for text in texts if not _WORD.search(text)] or texts[:1]
            for word, texts in alternatives.items()
        }

    def derive(self, word: str, rng: random.Random, *, depth: float = math.inf) -> str:
        """A text for the word.

        After `depth` replacements within one another only alternatives without words are taken, and of a word that has
        none of those its first one, which must lead to an end.
        """
        template = rng.choice((self._alternatives if depth > 0 else self._leaves)[word])
        lines = []
        for line in template.split("\n"):
            text = _WORD.sub(lambda match: self.derive(match[1], rng, depth=depth - 1), line)
            lines.append(text.replace("\n", "\n" + line[: len(line) - len(line.lstrip())]))
        return "\n".join(lines)
