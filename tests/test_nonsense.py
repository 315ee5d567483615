"""Nonsense always parses, is about the names given, and its variations change a name or a number and nothing else."""

import ast
import random
import re
from textwrap import indent

import pytest

from tasks.training.grammar import Grammar
from tasks.training.nonsense import Nonsense

NAMES = ["left", "right", "scale"]
ATTRIBUTES = ["left_b", "right_c"]
NONSENSE = Nonsense(NAMES, ATTRIBUTES)
SEEDS = range(400)


@pytest.mark.parametrize("kind", ["member", "statement", "return"])
def test_every_phrase_parses_and_few_are_said_twice(kind):
    phrases = [NONSENSE.phrase(kind, random.Random(seed)) for seed in SEEDS]
    for phrase in phrases:
        ast.parse(phrase)
    assert len(set(phrases)) > 0.7 * len(phrases)


def test_nonsense_is_about_the_given_names_and_no_others():
    for seed in SEEDS:
        tree = ast.parse(NONSENSE.phrase("statement", random.Random(seed)))
        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert named <= {*NAMES, "torch", "F", "self", "range"}
        own = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        }
        assert own <= set(ATTRIBUTES)


def test_a_variation_changes_one_or_two_names_or_numbers_and_nothing_else():
    statement = "        out = self.linear(x, dim=1) * 2.5 + scale"
    words = re.compile(r"\d(?:[\w.]|(?<=e)-)*|\w+")
    changed = [NONSENSE.varied(statement, random.Random(seed)) for seed in SEEDS]
    for variation in changed:
        pairs = zip(words.findall(statement), words.findall(variation), strict=True)
        assert 1 <= sum(before != after for before, after in pairs) <= 2
        assert words.split(variation)[1:] == words.split(statement)[1:]
    assert len(set(changed)) > 100


def test_a_variation_of_nonsense_parses():
    for seed in SEEDS:
        rng = random.Random(seed)
        statement = indent(NONSENSE.phrase("statement", rng), " " * 8)
        for _ in range(5):
            statement = NONSENSE.varied(statement, rng)
        ast.parse(f"if True:\n{statement}")


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("        y = torch.sum(x, dim=1, keepdim=True)", ["dim=", "keepdim=True", "torch."]),
        ('        y = x.pad(mode="reflect")', ['mode="reflect"']),
        ('        raise ValueError(f"{x!r:>8}")', ['f"{x!r:>8}"']),
        ('        self.load(r"a\\d", b"1")', ['r"a\\d"', 'b"1"', "self."]),
        (
            "        if x:\n            y = 3\n        else:\n            y = 4",
            ["        if ", "            ", "else:"],
        ),
        ("        é = 12  # été\n        ü = é", ["# été"]),
    ],
    ids=["keyword arguments", "text", "formatted text", "prefixes of text", "layout", "letters of several bytes"],
)
def test_what_is_more_than_a_name_or_a_number_stays(statement, kept):
    for seed in SEEDS:
        changed = NONSENSE.varied(statement, random.Random(seed))
        ast.parse(f"if True:\n{changed}")
        assert all(text in changed for text in kept), changed


def test_a_statement_without_names_and_numbers_stays_as_it_is():
    assert NONSENSE.varied("        pass", random.Random(0)) == "        pass"


def test_lines_that_a_word_becomes_are_indented_as_its_own_is():
    grammar = Grammar({"block": ("if x:\n    <body>",), "body": ("y = 1\nz = 2",)})
    assert grammar.derive("block", random.Random(0)) == "if x:\n    y = 1\n    z = 2"


def test_a_grammar_without_an_end_ends_at_the_depth_asked_for():
    grammar = Grammar({"sum": ("x", "(<sum> + <sum>)")})
    texts = [grammar.derive("sum", random.Random(seed), depth=3) for seed in SEEDS]
    assert max(text.count("+") for text in texts) == 7
    assert min(texts, key=len) == "x"
