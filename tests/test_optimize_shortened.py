"""What is too long for the line that it stands in is cut after a word, and shows that it was."""

import re
from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.search.foreseen import obstacle, require_name_of_its_own
from tasks.search.survey import survey
from tests.optimize_builders import FACTS, SOURCE, softmax_file

WORDS = " ".join(f"somewhat{number}" for number in range(99))


def shown_of(long: str, said: str) -> str:
    """What a message has of a text that it cuts."""
    found = re.search(rf"{re.escape(long[:20])}.*? \.\.\.", said)
    assert found is not None, said
    return found[0]


def test_a_statement_that_gives_the_name_away(tmp_path: Path) -> None:
    statement = f"Softmax = torch.compile(Softmax, {WORDS.replace(' ', '=1, ')}=1)"
    with pytest.raises(ProblemError) as error:
        require_name_of_its_own(softmax_file(tmp_path, f"{SOURCE}\n{statement}\n"))
    shown = shown_of(statement, str(error.value))
    assert statement.startswith(f"{shown.removesuffix(' ...')} ")
    assert f"{shown}, but a faster class" in str(error.value)


def test_an_error_that_the_file_raises(tmp_path: Path) -> None:
    text = SOURCE.replace(
        "    def forward", f"    def __init_subclass__(cls):\n        raise TypeError('{WORDS}')\n\n    def forward", 1
    )
    said = obstacle(softmax_file(tmp_path, text), FACTS)
    shown = shown_of(f"TypeError: {WORDS}", said or "")
    assert f"TypeError: {WORDS}".startswith(f"{shown.removesuffix(' ...')} ")


def test_a_value_that_does_not_fit_the_constructor(tmp_path: Path) -> None:
    returned = WORDS.split()
    sized = SOURCE.replace(
        "    def forward", "    def __init__(self, size):\n        super().__init__()\n\n    def forward", 1
    )
    file = softmax_file(tmp_path, f"{sized}\n\ndef example_init():\n    return {returned}\n")
    with pytest.raises(ProblemError) as error:
        survey(file)
    shown = shown_of(repr(returned), str(error.value))
    assert repr(returned).startswith(f"{shown.removesuffix(' ...')} ")
