"""Problems of others are read whatever form they come in, and told apart by what they say."""

import pytest
from kernelbench_builders import CONSTANT, reference, released, write_checkout, write_lines

from flows.cli import main
from tasks.errors import ProblemError
from tasks.problems import problem_sets
from tasks.problems.problem import Split
from tasks.problems.problem_sets import problem_set_of, reference_hash
from tasks.problems.sources import level_and_number, read_problems


@pytest.fixture
def known_sets(monkeypatch):
    """Two published sets that share a problem."""
    sets = {"set-v0": (1, 2, 9), "set-v1": (3, 4, 9)}
    hashes = {name: frozenset(reference_hash(reference(scale)) for scale in of) for name, of in sets.items()}
    monkeypatch.setattr(problem_sets, "_known_sets", lambda: hashes)


def as_data_set(folder):
    """What a download of the data set holds: a Parquet file for every split."""
    import datasets

    (folder / "data").mkdir(parents=True)
    for level, numbers in ((1, (3, 4)), (2, (9,))):
        rows = [{"code": reference(n), "level": level, "name": f"{n}_Relu", "problem_id": n} for n in numbers]
        datasets.Dataset.from_list(rows).to_parquet(folder / "data" / f"level_{level}-00000-of-00001.parquet")
    return folder


def test_a_checkout_a_data_set_and_json_lines_give_the_same_problems(tmp_path, known_sets, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    texts = {"level1__3_Relu": reference(3), "level1__4_Relu": reference(4), "level2__9_Relu": reference(9)}
    sources = [
        write_checkout(tmp_path / "checkout", **texts),
        tmp_path / "checkout" / "KernelBench",
        as_data_set(tmp_path / "data_set"),
        write_lines(tmp_path / "h100.json", released(3), released(4), released(9, level=2)),
    ]
    for source in sources:
        found = read_problems(str(source))
        assert found.problem_set == "set-v1"
        assert found.mistakes == ()
        assert [(one.level, level_and_number(one.problem_id)) for one in found.problems.values()] == [
            (1, (1, 3)),
            (1, (1, 4)),
            (2, (2, 9)),
        ]
        assert [one.source for one in found.problems.values()] == [reference(3), reference(4), reference(9)]
        assert {(one.problem_set, one.split) for one in found.problems.values()} == {("set-v1", Split.HELD_OUT)}


def test_problems_come_in_the_order_of_their_numbers(tmp_path):
    texts = {f"level1__{number}_Relu": reference(number) for number in (10, 9, 100)}
    found = read_problems(str(write_checkout(tmp_path, **texts)))
    assert list(found.problems) == ["level1/9_Relu", "level1/10_Relu", "level1/100_Relu"]


def test_a_part_of_a_published_set_is_of_that_set_and_an_edited_one_is_not(known_sets):
    assert problem_set_of([reference(1)], otherwise="x") == "set-v0"
    assert problem_set_of([reference(9)], otherwise="x") == "set-v1"  # of both: the newest
    edited = problem_set_of([reference(1), reference(7)], otherwise="x")
    assert edited.startswith("x-")
    assert edited == problem_set_of([reference(7), reference(1)], otherwise="x")
    assert edited != problem_set_of([reference(1), reference(8)], otherwise="x")


def test_the_two_published_sets_are_known_and_differ():
    sets = problem_sets._known_sets()
    assert {name: len(hashes) for name, hashes in sets.items()} == {"kernelbench-v0": 270, "kernelbench-v0.1": 273}
    assert len(sets["kernelbench-v0"] & sets["kernelbench-v0.1"]) == 20  # level 4


MALFORMED = [
    pytest.param("not json", "no object with the columns", id="not JSON"),
    pytest.param("[1, 2]", "no object with the columns", id="a list"),
    pytest.param({"level_id": 1, "task_id": 5}, "no object with the columns", id="no reference column"),
    pytest.param(released(5, ref=""), "level1/5 has no reference", id="empty reference"),
    pytest.param({**released(5), "ref_code": None}, "level1/5 has no reference, but None", id="null reference"),
    pytest.param(released(5, ref="class Model:\n  def"), "does not parse", id="does not parse"),
    pytest.param(released(5, ref="class Model: ...\n"), "lacks get_inputs", id="no get_inputs"),
    pytest.param(released(5, level=0), "the level 0 is not a number above 0", id="level 0"),
    pytest.param({**released(5), "level_id": "1"}, "the level '1' is not a number", id="level is text"),
    pytest.param(released(1), "level1/1 was there before", id="twice"),
    pytest.param(released(5, ref="x = " + "(" * 3000 + ")" * 3000), "line 2", id="nested too deep"),
]


@pytest.mark.parametrize(("row", "words"), MALFORMED)
def test_what_is_malformed_is_told_of_and_left_out(tmp_path, row, words):
    found = read_problems(str(write_lines(tmp_path / "lines.json", released(1), row, released(2))))
    assert list(found.problems) == ["level1/1", "level1/2"]
    (mistake,) = found.mistakes
    assert words in mistake
    assert "line 2" in mistake
    assert len(mistake) < 400


def test_a_file_of_a_checkout_that_is_no_text_is_left_out(tmp_path):
    write_checkout(tmp_path, level1__1_Relu=reference(1))
    (tmp_path / "KernelBench/level1/2_Bytes.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "KernelBench/levels").mkdir()
    (tmp_path / "KernelBench/levels/helper.py").write_text("x = 1\n")
    found = read_problems(str(tmp_path))
    assert list(found.problems) == ["level1/1_Relu"]
    assert [mistake.partition(":")[0] for mistake in found.mistakes] == ["level1/2_Bytes.py", "levels/helper.py"]


def test_a_precision_is_asked_of_all_and_does_not_change_the_set(tmp_path, known_sets):
    path = write_lines(tmp_path / "lines.json", released(1), released(2))
    plain, half = read_problems(str(path)), read_problems(str(path), precision="bf16")
    assert plain.problem_set == half.problem_set == "set-v0"
    assert plain.problems["level1/1"].problem_hash != half.problems["level1/1"].problem_hash


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("nowhere", "there is no nowhere; give a folder", id="nothing"),
        pytest.param("empty.json", "holds no problem", id="no problem in it"),
        pytest.param("folder", "the data set folder cannot be loaded", id="a folder of something else"),
    ],
)
def test_a_source_without_problems_is_refused(tmp_path, monkeypatch, source, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text("{}\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProblemError, match=words):
        read_problems(source)


def test_the_command_lists_a_sources_problems_outside_of_any_project(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "lines.json", released(1), "{}", released(2, ref=CONSTANT))
    assert main(["problems", "--from", "lines.json"]) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == ["level1/1", "level1/2"]
    assert "1 item(s) left out" in said.err
    assert "line 2" in said.err
