"""A table in a terminal, however narrow that is: cells break between words, and numbers that do not fit come below."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

    from tasks.report.tables import TextTable

LONG_WORD = 12
"""Characters of a word that is not broken; of a longer one, what ends in an underscore or a slash is not."""


class Fitted:
    """The table as wide as its cells, or as the terminal: then numbers take two lines before labels do."""

    def __init__(self, table: "TextTable") -> None:
        self.table = table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Table | Text]:
        parts = list(self._parts(options.max_width))
        for place, columns in enumerate(parts):
            if place:
                yield Text("")
            drawn = Table(
                title=Text(self.table.title) if place == 0 else None,
                caption=Text(self.table.note) if place == len(parts) - 1 else None,
                title_justify="left",
                caption_justify="left",
                box=SIMPLE_HEAD,
                show_edge=False,
                pad_edge=False,
                padding=0,
            )
            for index, width in columns:
                name = Text(_broken(self.table.header[index], width))
                is_label = index < self.table.labels
                drawn.add_column(name, justify="left" if is_label else "right", overflow="fold", max_width=width)
            for row in self.table.rows:
                drawn.add_row(*(Text(_broken(row[index], width)) for index, width in columns))
            yield drawn

    def _parts(self, room: int) -> Iterator[list[tuple[int, int]]]:
        """Columns that stand side by side, each with its width: all, or the labels with as many numbers as fit."""
        columns = [_Column(index, [row[index] for row in self._rows()]) for index in range(len(self.table.header))]
        labels, numbers = columns[: self.table.labels], columns[self.table.labels :]
        ways = [[least(each) for each in labels] for least in (_Column.whole, _Column.by_word, _Column.by_part)]
        for floors in ways:
            if _needed([*floors, *(each.by_part() for each in numbers)]) <= room:
                yield _narrowed(columns, floors, room)
                return
        widest = max((each.by_part() for each in numbers), default=0)
        floors = next((each for each in ways if _needed([*each, widest]) <= room), ways[-1])
        while _needed([*floors, widest]) > room and max(floors, default=0) > 1:  # labels break before numbers do
            floors[floors.index(max(floors))] -= 1
        while True:
            taken = len(numbers)
            while taken > 1 and _needed([*floors, *(each.by_part() for each in numbers[:taken])]) > room:
                taken -= 1
            yield _narrowed([*labels, *numbers[:taken]], floors, room)
            numbers = numbers[taken:]
            if not numbers:
                return

    def _rows(self) -> tuple[tuple[str, ...], ...]:
        return (self.table.header, *self.table.rows)


@dataclass(frozen=True, slots=True)
class _Column:
    index: int
    texts: Sequence[str]

    def whole(self) -> int:
        """The width at which nothing breaks."""
        return max(map(cell_len, self.texts))

    def by_word(self) -> int:
        """The width at which texts break between words only."""
        return max(cell_len(word) for text in self.texts for word in (*text.split(), ""))

    def by_part(self) -> int:
        """The width at which long words break too, where they have an underscore or a slash."""
        parts = (part for text in self.texts for word in text.split() for part in _parts_of(word))
        return max(map(cell_len, parts), default=0)


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + len(widths) - 1


def _narrowed(columns: Sequence[_Column], floors: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Columns as wide as their texts, but for the widest, which give way: numbers first, then labels, to the floors."""
    widths = [each.whole() for each in columns]
    numbers = [each.by_part() for each in columns[len(floors) :]]
    for least in ([*widths[: len(floors)], *numbers], [*floors, *numbers]):
        while _needed(widths) > room:
            spare = [width if width > floor else 0 for width, floor in zip(widths, least, strict=True)]
            if not any(spare):
                break
            widths[spare.index(max(spare))] -= 1
    return [(each.index, width) for each, width in zip(columns, widths, strict=True)]


def _broken(text: str, width: int) -> str:
    """The text in lines that are no wider, as far as it has places to break at."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        elif cell_len(word) <= width:
            lines.append(word)
        else:
            parts = _parts_of(word)
            lines.append(parts[0])
            for part in parts[1:]:
                if cell_len(lines[-1] + part) <= width:
                    lines[-1] += part
                else:
                    lines.append(part)
    return "\n".join(lines)


def _parts_of(word: str) -> list[str]:
    return [word] if cell_len(word) <= LONG_WORD else re.findall(r"[^_/]*[_/]+|[^_/]+", word)
