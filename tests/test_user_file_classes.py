"""Which class of a user's file is meant, told from its text alone, and what is said where that cannot be told."""

from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.search.user_file import read_user_file

HEAD = "import enum\nimport torch\nfrom torch import nn\nfrom near import Base\n"
INPUTS = "\ndef example_inputs():\n    return torch.rand(2)\n"
FORWARD = "    def forward(self, x):\n        return x\n"
PART = f"class Part(nn.Module):\n{FORWARD}"
WHOLE = f"class Whole(nn.Module):\n    def __init__(self, kind='a'):\n        self.part = {{made}}\n{FORWARD}"
SEQUENCE = "class Sequence(nn.Sequential):\n    def __init__(self):\n        super().__init__(Part())\n"
HEIR = "class Heir(Base):\n    def __init__(self):\n        super().__init__(3)\n"


def whole(made: str) -> str:
    return WHOLE.format(made=made)


def chosen(folder: Path, *parts: str, asked: str | None = None) -> str:
    path = folder / "mine.py"
    path.write_text("\n".join([HEAD, *parts, INPUTS]))
    return read_user_file(path, asked).class_name


def refusal(folder: Path, *parts: str, asked: str | None = None) -> str:
    """What is said of the file without its place."""
    with pytest.raises(ProblemError) as refused:
        chosen(folder, *parts, asked=asked)
    return str(refused.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([PART, SEQUENCE, whole("Sequence()")], id="a class that inherits its forward"),
        pytest.param([PART, "class Maker:\n    make = Part\n", whole("Maker.make()")], id="a class that is no module"),
        pytest.param([PART, "def made(kind):\n    return Part()\n", whole("made(kind)")], id="a function"),
        pytest.param(
            [PART, "def made():\n    return Part()\n", "def some():\n    return [made()]\n", whole("some()")],
            id="a function that another calls",
        ),
        pytest.param([PART, "def made(kind=Part):\n    return kind()\n", whole("made()")], id="a default"),
        pytest.param([PART, "KINDS = {'a': Part}\n", whole("KINDS[kind]()")], id="a mapping"),
        pytest.param(["def _made():\n    return Part()\n", PART, f"made = _made\n{whole('made()')}"], id="a name"),
    ],
)
def test_a_module_that_another_uses_through_something_is_not_meant(tmp_path: Path, parts: list[str]) -> None:
    assert chosen(tmp_path, *parts) == "Whole"


def test_a_name_that_a_method_has_of_its_own_is_no_use_of_another(tmp_path: Path) -> None:
    part = PART.replace("return x", "made = x\n        return made")
    assert chosen(tmp_path, part, whole("Part()"), "def made():\n    return Whole()\n") == "Whole"


def test_a_factory_that_the_part_calls_too_does_not_make_the_choice_harder(tmp_path: Path) -> None:
    part = PART.replace("return x", "return made() or x")
    assert chosen(tmp_path, part, "def made():\n    return Part() or Whole()\n", whole("Part()")) == "Whole"


def test_a_class_that_inherits_from_elsewhere_and_runs_a_module_is_not_meant(tmp_path: Path) -> None:
    assert chosen(tmp_path, PART, HEIR.replace("3", "Part()")) == "Part"


def test_only_modules_in_question_are_named(tmp_path: Path) -> None:
    other = whole("Part()").replace("Whole", "Other")
    assert refusal(tmp_path, PART, whole("Part()"), other) == (
        "mine.py has several modules: Whole, Other; say which, as in mine.py:Other"
    )


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        pytest.param([PART, SEQUENCE], "Sequence", id="from torch"),
        pytest.param([SEQUENCE, "class Whole(Sequence):\n    pass\n"], "Whole", id="from one that inherits it itself"),
        pytest.param(["class Kind(enum.Enum):\n    A = 1\n", HEIR], "Heir", id="from elsewhere"),
        pytest.param([HEIR.replace("Base", "Base[int]")], "Heir", id="from a generic class"),
    ],
)
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_class_whose_forward_is_in_no_text_of_the_file_is_told_to_have_one(
    tmp_path: Path, parts: list[str], name: str, *, is_asked: bool
) -> None:
    assert refusal(tmp_path, *parts, asked=name if is_asked else None) == (
        f"{name} of mine.py has no forward of its own, and only what stands there is made faster: add one with the "
        f"steps of the inherited one (return super().forward(x) would hide them)"
    )


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param("    forward = nn.Sequential.forward\n", id="by another name"),
        pytest.param("    if enum:\n        def forward(self, x):\n            return x\n", id="in a branch"),
    ],
)
def test_a_forward_may_be_given_in_other_ways(tmp_path: Path, forward: str) -> None:
    assert chosen(tmp_path, f"class Sequence(nn.Sequential):\n{forward}") == "Sequence"


def test_a_forward_may_be_that_of_another_class_of_the_file(tmp_path: Path) -> None:
    assert chosen(tmp_path, PART, "class Whole(Part):\n    pass\n") == "Whole"


def test_a_variable_called_forward_is_no_forward(tmp_path: Path) -> None:
    words = refusal(tmp_path, "class Sequence(nn.Sequential):\n    def turned(self, x):\n        forward = x\n")
    assert "Sequence of mine.py has no forward of its own" in words


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("class Other(ValueError):\n    pass\n", id="of Python"),
        pytest.param("class Other(enum.Enum):\n    A = 1\n", id="of its library"),
        pytest.param("class Other:\n    pass\n", id="of nothing"),
    ],
)
def test_a_class_that_cannot_be_a_module_is_none(tmp_path: Path, other: str) -> None:
    assert refusal(tmp_path, other, PART, asked="Other") == "mine.py defines no module Other; it has: Part"
