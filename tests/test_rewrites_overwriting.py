"""Overwriting leaves alone what is not read: dict literals, and what is computed several times or only perhaps."""

import pytest

from tasks.variants.rewrites import REWRITES
from tasks.variants.rewrites.overwriting import work_in_place, work_in_place_everywhere, write_into_temporary
from tasks.variants.rewriting import Rewrite
from tests.program_builders import MATRIX, problem, rewritten

TEMPORARY = "y = x * 2.0"
NOT_READ = [
    pytest.param(f"{TEMPORARY}\nreturn {{'z': torch.relu(y)}}", id="dict"),
    pytest.param(f"{TEMPORARY}\nreturn torch.stack([torch.relu(y) for _ in range(3)])", id="comprehension"),
    pytest.param(f"{TEMPORARY}\nreturn {{k: torch.relu(y) for k in (1, 2)}}", id="comprehension of a dict"),
    pytest.param(f"{TEMPORARY}\nreturn torch.relu(y) if x.shape[0] > 2 else x", id="conditional"),
    pytest.param(f"{TEMPORARY}\nf = lambda t: torch.relu(y)\nreturn f(x), f(x)", id="lambda"),
    pytest.param(f"{TEMPORARY}\nassert x.shape[0] > 2, f'bad {{torch.relu(y)}}'\nreturn x", id="f-string"),
]


@pytest.mark.parametrize("forward", NOT_READ)
@pytest.mark.parametrize(
    "rewrite", [work_in_place, work_in_place_everywhere, write_into_temporary], ids=lambda each: each.name
)
def test_what_is_not_read_is_not_overwritten(rewrite: Rewrite, forward: str) -> None:
    assert rewritten(problem(forward, MATRIX), rewrite) is None


def test_what_is_read_beside_it_is_overwritten() -> None:
    found = rewritten(problem(f"{TEMPORARY}\nz = torch.relu(y)\nreturn {{'z': torch.tanh(z)}}", MATRIX), work_in_place)
    assert found is not None
    assert "z = y.relu_()" in found
    assert "torch.tanh(z)" in found


@pytest.mark.parametrize("forward", NOT_READ)
def test_no_rewrite_fails_on_what_is_not_read(forward: str) -> None:
    for rewrite in REWRITES:
        rewritten(problem(forward, MATRIX), rewrite)
