"""A module that takes a mapping by position is shown and judged like any other."""

from pathlib import Path

import pytest

from tasks.search.survey import survey
from tasks.search.texts import problem_texts
from tests.optimize_builders import SOURCE, softmax_file


@pytest.mark.parametrize(
    ("parameters", "inputs"),
    [
        pytest.param("x, given", '[torch.randn(8, 4), {"bias": torch.randn(4)}]', id="beside a tensor"),
        pytest.param("given, x", '({"bias": torch.randn(4)}, torch.randn(8, 4))', id="first"),
    ],
)
def test_a_mapping_by_position_is_shown(tmp_path: Path, parameters: str, inputs: str) -> None:
    text = SOURCE.replace("forward(self, x)", f"forward(self, {parameters})")
    text = text[: text.index("def example_inputs")] + f"def example_inputs():\n    return {inputs}\n"
    file = softmax_file(tmp_path, text)
    shown = problem_texts(file, survey(file), precision="fp32").shown.source
    assert f"def forward(self, {parameters})" in shown
    assert "def get_inputs" in shown
