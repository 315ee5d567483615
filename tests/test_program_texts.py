"""Texts of programs, of which most of the work is remembered: what comes out is what libcst writes."""

import pytest

from tasks.variants.names import renamed
from tasks.variants.rewriting import as_candidate_program
from tasks.variants.text import parsed, text_of
from tests.program_builders import problem

FORWARD = problem("y = (x + 1)  # one\nif x.ndim > 2:\n    y = -y\nreturn y", "torch.randn(3, 4)")


@pytest.mark.parametrize(
    "source",
    [FORWARD, FORWARD.replace("    ", "  "), FORWARD.replace("\n", "\r\n"), FORWARD.rstrip("\n")],
    ids=["as usual", "two spaces", "the line ends of Windows", "no line end at the end"],
)
def test_the_text_is_the_one_that_libcst_writes(source):
    program = as_candidate_program(source)
    assert text_of(program) == program.code


def test_a_program_that_shares_statements_with_another_has_its_own_text():
    one = as_candidate_program(FORWARD)
    other = renamed(one, {"get_inputs": "others"})
    assert [a is b for a, b in zip(one.body, other.body, strict=True)].count(False) == 1
    assert text_of(other) == text_of(one).replace("get_inputs", "others")


def test_a_text_that_was_read_before_gives_the_same_statements():
    assert parsed("import math\n").body[0] is parsed("import math\n").body[0]
