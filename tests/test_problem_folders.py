"""Problems of others become a folder to train on, in which near-duplicates are of one family."""

from pathlib import Path

import pytest
from kernelbench_builders import reference, released, write_lines

from flows.cli import main
from tasks.errors import ProblemError
from tasks.params import ProblemsParams
from tasks.problems.catalogue import load_problems
from tasks.problems.families import FAMILIES, OTHER, family_of
from tasks.problems.folders import write_folder
from tasks.problems.problem import Problem, Split
from tests.program_builders import problem

CONVOLUTION = problem(
    "return torch.relu(self.conv(x))", "torch.rand(1, 3, 8, 8)", init="self.conv = nn.Conv2d(3, 3, 3)"
)


@pytest.mark.parametrize(
    ("source", "family"),
    [
        pytest.param(CONVOLUTION, "convolutions_2d", id="a layer"),
        pytest.param(CONVOLUTION.replace("relu", "softmax"), "convolutions_2d", id="a near-duplicate"),
        pytest.param(problem("return F.conv2d(x, x)", "torch.rand(1, 1, 3, 3)"), "convolutions_2d", id="a function"),
        pytest.param(problem("return torch.sum(x @ x.T, dim=1)", "torch.rand(4, 4)"), "products", id="an operator"),
        pytest.param(problem("return F.linear(x, x)", "torch.rand(4, 4)"), "products", id="a layer that is a product"),
        pytest.param(problem("return F.layer_norm(x, (4,))", "torch.rand(4, 4)"), "reductions", id="a norm"),
        pytest.param(
            problem("return x / torch.sqrt(torch.mean(x ** 2, dim=1))", "torch.rand(4, 4)"),
            "reductions",
            id="written out",
        ),
        pytest.param(f"\ufeff{CONVOLUTION}", "convolutions_2d", id="with a byte order mark"),
        pytest.param(problem("return x.cumsum(1)", "torch.rand(4, 4)"), "scans", id="a method"),
        pytest.param(problem("return x * 2", "torch.rand(4, 4).cumsum(0)"), OTHER, id="not by its inputs"),
    ],
)
def test_a_problem_is_of_the_family_of_its_heaviest_operator(source: str, family: str) -> None:
    assert family_of(source) == family


def test_no_operator_is_of_two_families() -> None:
    operators = [name for family in FAMILIES.values() for name in family]
    assert len(operators) == len(set(operators))


def test_the_command_writes_a_folder_that_stages_can_train_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    convolutions = [CONVOLUTION, CONVOLUTION.replace("relu", "tanh")]
    lines = [released(1), *(released(2 + n, level=2, ref=text) for n, text in enumerate(convolutions)), "{}"]
    write_lines(tmp_path / "lines.json", *lines)
    assert main(["problems", "--from", "lines.json", "--to", "made/here"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "level1/1  products",
        "level2/2  convolutions_2d",
        "level2/3  convolutions_2d",
    ]
    assert "1 item(s) left out" in said.err
    assert "convolutions_2d 2" in said.err
    assert f"problems.folders: [{tmp_path / 'made/here'}]" in said.err

    params = ProblemsParams(folders=("made/here",), held_out_families=("convolutions_2d",), limit=None)
    problems = load_problems(params)
    assert {name: one.split for name, one in problems.items()} == {
        "level1/1": Split.TRAIN,
        "level2/2": Split.HELD_OUT,
        "level2/3": Split.HELD_OUT,
    }
    assert problems["level2/2"].source == CONVOLUTION


def test_a_name_that_would_lead_elsewhere_is_left_out(tmp_path: Path) -> None:
    names = [
        "../stolen",
        "level1/../../stolen",
        f"level1/{'x' * 300}",
        "level1/deep/er",
        "level1/.hidden",
        "level1/",
        "level1/1_Square_matrix.x y",
    ]
    problems = [
        Problem(problem_id=name, level=1, family=name, split=Split.HELD_OUT, source=reference()) for name in names
    ]
    written = write_folder(tmp_path / "made", problems)
    assert list(written.families) == [names[-1]]
    assert [mistake.split("'")[1] for mistake in written.mistakes] == names[:-1]
    assert sorted(path.name for path in tmp_path.rglob("*.py")) == ["1_Square_matrix.x y.py"]


def test_where_no_name_fits_nothing_is_written(tmp_path: Path) -> None:
    lost = Problem(problem_id="level1/deep/er", level=1, family="f", split=Split.HELD_OUT, source=reference())
    with pytest.raises(ProblemError, match="no problem to write"):
        write_folder(tmp_path / "made", [lost])
    assert not (tmp_path / "made").exists()


def test_a_folder_in_use_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    found = Problem(problem_id="level1/a", level=1, family="f", split=Split.HELD_OUT, source=reference())
    with pytest.raises(ProblemError, match="not empty"):
        write_folder(tmp_path, [found])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_folder_belongs_to_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["problems", "--to", "somewhere"])
    assert ended.value.code == 2
    assert "--to belongs to --from" in capsys.readouterr().err
