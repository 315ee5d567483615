"""What the PyTorch-level rewrites make of a program computes the same, and they leave alone what they must."""

import ast
import builtins
import random
from pathlib import Path

import pytest
import torch

from tasks.variants.rewrites import REWRITES
from tasks.variants.rewriting import Rewrite, as_candidate_program, render
from tests.program_builders import outputs, rewritten
from tests.rewrite_examples import EXAMPLES
from tests.rewrite_refusals import LEFT_ALONE
from tests.rewrite_texts import one

BY_NAME = {each.name: each for each in REWRITES}
OURS = [each for each in REWRITES if each.group in ("algebra", "fusion", "memory")]
PROBLEMS = sorted(Path("data/problems").glob("level*/*.py"))


def undefined_names(source: str) -> set[str]:
    """Names that a program reads and nothing in it, nor Python, defines."""
    tree = ast.parse(source)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
    return {node.id for node in names} - defined


@pytest.mark.parametrize("each", OURS, ids=lambda each: each.name)
def test_a_rewrite_changes_its_example_and_keeps_what_it_computes(each: Rewrite):
    source = EXAMPLES[each.name]
    candidate = rewritten(source, each)
    assert candidate is not None, "does not apply to its example"
    assert candidate != render(as_candidate_program(source)), "changed nothing"
    for seed in range(2):
        expected, found = outputs(source, candidate, seed=seed)
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_every_example_belongs_to_a_rewrite():
    assert set(EXAMPLES) == {each.name for each in OURS}


def test_every_rewrite_says_what_it_assumes():
    silent = [each.name for each in OURS if "ssumes" not in (each.apply.__doc__ or "")]
    assert not silent


@pytest.mark.parametrize(
    ("name", "source"), [pytest.param(*case[:2], id=f"{case[0]}: {case[2]}") for case in LEFT_ALONE]
)
def test_a_rewrite_leaves_a_program_alone_that(name: str, source: str):
    assert rewritten(source, BY_NAME[name]) is None


def test_a_temporary_read_elsewhere_is_not_computed_twice():
    source = one("y = torch.exp(x)\nz = torch.log(1.0 / y)\nreturn z * y")
    candidate = rewritten(source, BY_NAME["share_common_expression"])
    assert candidate is None or candidate.count("torch.exp") == 1


def test_a_pattern_is_found_across_statements_and_in_any_order():
    source = one("y = torch.sigmoid(x)\nz = 3.0 * y\nreturn z * x")
    candidate = rewritten(source, BY_NAME["call_silu"])
    assert candidate is not None
    assert "F.silu(x)" in candidate
    torch.testing.assert_close(*outputs(source, candidate))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_single_rewrites_of_a_built_in_problem_parse_and_name_what_exists(path: Path):
    program = as_candidate_program(path.read_text())
    texts = set()
    for each in OURS:
        changed = each.apply(program, random.Random(0))
        if changed is not None:
            texts.add(render(changed))
    assert len(texts) >= 2
    for text in texts:
        assert undefined_names(text) == set()
