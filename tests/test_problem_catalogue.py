"""Problem folders are read into problems with a split, or refused with everything that is wrong with them at once."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tasks.errors import ProblemError
from tasks.params import ProblemsParams
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Split

SOURCE = "class Model: ...\n\n\ndef get_inputs(): ...\n\n\ndef get_init_inputs(): ...\n"


def write_problem(folder: Path, problem_id: str, source: str | bytes = SOURCE) -> Path:
    path = folder / f"{problem_id}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path


def write_catalogue(folder: Path, text: str) -> None:
    (folder / "catalogue.yaml").write_text(text)


def params(*folders: Path, held_out: tuple[str, ...] = (), limit: int | None = None) -> ProblemsParams:
    return ProblemsParams(folders=tuple(map(str, folders)), held_out_families=held_out, limit=limit)


def refusal(*folders: Path, held_out: tuple[str, ...] = ()) -> str:
    with pytest.raises(ProblemError) as caught:
        load_problems(params(*folders, held_out=held_out))
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight problems of three families, five on level 1 and three on level 2."""
    for level in (1, 2):
        for family in ("norms", "scans", "losses"):
            write_problem(tmp_path, f"level{level}/{family}_a")
    write_problem(tmp_path, "level1/norms_b")
    write_problem(tmp_path, "level1/scans_b")
    families = {path: path.stem.split("_")[0] for path in tmp_path.rglob("*.py")}
    lines = [f"level{path.parent.name[-1]}/{path.stem}: {{family: {name}}}" for path, name in families.items()]
    write_catalogue(tmp_path, "\n".join(lines))
    return tmp_path


def test_problems_come_with_level_family_and_split_in_order_of_their_ids(folder: Path) -> None:
    problems = load_problems(params(folder, held_out=("losses",)))
    assert list(problems) == sorted(problems)
    assert len(problems) == 8
    problem = problems["level2/losses_a"]
    assert (problem.problem_id, problem.level, problem.family) == ("level2/losses_a", 2, "losses")
    assert problem.split is Split.HELD_OUT
    assert problem.source == SOURCE
    assert problems["level1/norms_b"].split is Split.TRAIN


def test_a_problem_without_an_entry_is_a_family_of_its_own(tmp_path: Path) -> None:
    write_problem(tmp_path, "level1/19_ReLU")
    write_problem(tmp_path, "level1/more/20_Tanh")
    problems = load_problems(params(tmp_path, held_out=("20_Tanh",)))
    assert [problem.family for problem in problems.values()] == ["19_ReLU", "20_Tanh"]
    assert problems["level1/more/20_Tanh"].split is Split.HELD_OUT


def test_all_folders_are_read(tmp_path: Path) -> None:
    write_problem(tmp_path / "ours", "level2/b")
    write_problem(tmp_path / "theirs", "level1/a")
    assert list(load_problems(params(tmp_path / "ours", tmp_path / "theirs"))) == ["level1/a", "level2/b"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("class Model(:\n", "does not parse"),
        ("class Model: ...\n", "lacks get_inputs"),
        ("", "lacks Model"),
        (b"# caf\xe9\n", "'utf-8' codec"),
        ("x = '\0'\n", "does not parse"),
    ],
    ids=["syntax", "missing names", "empty", "not UTF-8", "null byte"],
)
def test_a_malformed_problem_is_refused_with_its_path(tmp_path: Path, source: str | bytes, says: str) -> None:
    path = write_problem(tmp_path, "level1/broken", source)
    message = refusal(tmp_path)
    assert f"{path}: " in message
    assert says in message


@pytest.mark.parametrize(
    ("catalogue", "says"),
    [
        ("level1/a: {family: [", "cannot be read"),
        ("- level1/a", "must map problem ids"),
        ("level1/a: {title: A}", "'level1/a' needs a family"),
        ("level1/a: norms", "'level1/a' needs a family"),
        ("level1/b: {family: norms}", "'level1/b' has no file"),
    ],
    ids=["not YAML", "a list", "no family", "not a mapping", "no such problem"],
)
def test_a_malformed_catalogue_is_refused_with_its_path(tmp_path: Path, catalogue: str, says: str) -> None:
    write_problem(tmp_path, "level1/a")
    write_catalogue(tmp_path, catalogue)
    message = refusal(tmp_path)
    assert f"{tmp_path / 'catalogue.yaml'}: " in message
    assert says in message


def test_every_mistake_in_every_folder_is_said_at_once(tmp_path: Path) -> None:
    good, bad, empty, missing = (tmp_path / name for name in ("good", "bad", "empty", "missing"))
    write_problem(good, "level1/same")
    empty.mkdir()
    twin = write_problem(bad, "level1/same")
    stray = write_problem(bad, "stray")
    unparsed = write_problem(bad, "level2/unparsed", "def")
    message = refusal(good, bad, empty, missing, held_out=("norm",))
    assert "6 mistake(s)" in message
    assert f"{twin}: the id 'level1/same' is taken by {good / 'level1/same.py'}" in message
    assert f"{stray}: is in no level folder" in message
    assert f"{unparsed}: " in message
    assert f"{empty}: holds no problem" in message
    assert f"{missing}: no such folder" in message
    assert "no family 'norm'; there are: same, stray, unparsed" in message


@pytest.mark.parametrize("limit", range(1, 10))
def test_a_limit_spreads_over_levels_and_families_and_keeps_both_splits(folder: Path, limit: int) -> None:
    everything = load_problems(params(folder, held_out=("losses",)))
    problems = load_problems(params(folder, held_out=("losses",), limit=limit))
    assert len(problems) == min(limit, 8)
    assert list(problems) == [problem_id for problem_id in everything if problem_id in problems]
    splits = Counter(problem.split for problem in problems.values())
    if limit > 1:
        assert set(splits) == {Split.TRAIN, Split.HELD_OUT}
    train = [problem for problem in problems.values() if problem.split is Split.TRAIN]
    levels = Counter(problem.level for problem in train)
    assert len({problem.family for problem in train}) == min(len(train), 2)
    if 2 <= len(train) <= 4:  # beyond that level 2 has no more to give
        assert max(levels.values()) - min(levels.values()) <= 1


def test_a_limit_of_one_is_a_problem_to_train_on(folder: Path) -> None:
    (problem,) = load_problems(params(folder, held_out=("losses",), limit=1)).values()
    assert problem.split is Split.TRAIN


def test_reading_problems_does_not_load_torch() -> None:
    code = "import sys, tasks.problems.catalogue; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
