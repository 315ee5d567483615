import shutil
from pathlib import Path

import pytest

from flows.workspace import changes_of, make_workspace
from tasks.errors import MachineError, ParamsError
from tasks.params import AdapterParams, load_params


def test_a_workspace_has_its_own_params_and_all_the_code(tmp_path):
    folder = make_workspace(tmp_path / "copy", changes={"sft.steps": 3, "seed": 5, "sft.packing": True})
    params = load_params(folder / "params.yaml")
    assert (params.seed, params.sft.steps, params.sft.packing) == (5, 3, True)
    assert (folder / "flows" / "sft.py").exists()
    assert (folder / "tasks" / "judge" / "verdict.py").exists()
    assert any((folder / "data" / "problems").rglob("*.py"))


def test_making_it_again_keeps_what_was_computed_there(tmp_path):
    folder = make_workspace(tmp_path / "copy")
    (folder / "data" / "sft").mkdir()
    (folder / "data" / "sft" / "metrics.json").write_text("{}")
    make_workspace(tmp_path / "copy", changes={"seed": 1})
    assert (folder / "data" / "sft" / "metrics.json").exists()
    assert load_params(folder / "params.yaml").seed == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"sft.step": 3}, r"sft\.step: unknown key", id="unknown key"),
        pytest.param({"stf.steps": 3}, "stf: unknown key", id="unknown section"),
        pytest.param(
            {"engine.procesess": 2}, r"engine\.procesess: unknown key", id="unknown key of a section not there"
        ),
        pytest.param({"seed.x": 3}, r"seed\.x cannot be set: seed is 0, which has no keys$", id="no section"),
        pytest.param({"profiles.tiny": {}}, "a workspace has no profiles", id="profiles"),
        pytest.param({"sft.steps": 0}, "greater than 0", id="refused value"),
    ],
)
def test_a_change_that_params_refuse_is_refused(tmp_path, changes, said):
    with pytest.raises(ParamsError, match=said):
        make_workspace(tmp_path / "copy", changes=changes)


def test_a_section_that_needs_no_entry_can_be_set(tmp_path):
    folder = make_workspace(tmp_path / "copy", changes={"engine.processes": 2, "engine.zero_stage": 2})
    engine = load_params(folder / "params.yaml").engine
    assert (engine.processes, engine.zero_stage) == (2, 2)


def test_what_is_null_is_set_whole(tmp_path):
    with pytest.raises(ParamsError) as caught:
        make_workspace(tmp_path / "copy", profile="cluster", changes={"policy.adapter.rank": 8})
    said = (
        'policy.adapter.rank cannot be set: policy.adapter is null, which has no keys. Set it whole: policy.adapter={"'
    )
    assert said in str(caught.value)
    changes = changes_of(['policy.adapter={"rank":8,"alpha":16}'])
    folder = make_workspace(tmp_path / "copy", profile="cluster", changes=changes)
    assert load_params(folder / "params.yaml").policy.adapter == AdapterParams(rank=8, alpha=16)


def test_a_model_in_a_folder_here_is_that_folder_in_the_workspace_too(tmp_path, monkeypatch):
    project = Path.cwd()
    (tmp_path / "models" / "x").mkdir(parents=True)
    for part in ("params.yaml", "flows", "tasks", "data", "dvc.yaml", "pyproject.toml", ".dvcignore"):
        (tmp_path / part).symlink_to(project / part)
    monkeypatch.chdir(tmp_path)
    for given, written in {"models/x": str(tmp_path / "models" / "x"), "owner/name": "owner/name"}.items():
        folder = make_workspace(tmp_path / "work" / "copy", changes={"policy.model": given})
        assert load_params(folder / "params.yaml").policy.model == written


def files_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["tasks/mine.txt", "pyproject.toml", "notes.txt", ".dvc/config"])
def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(MachineError, match=f"is no workspace and holds {name.split('/')[0]}"):
        make_workspace(tmp_path)
    assert files_of(tmp_path) == {name: "mine"}


def test_a_folder_with_much_in_it_is_refused_by_the_first_of_it(tmp_path):
    for name in "dcba":
        (tmp_path / name).touch()
    with pytest.raises(MachineError, match=r"holds a, b, c, \.\.\.;"):
        make_workspace(tmp_path)


@pytest.mark.parametrize("place", [".", "tasks", "tasks/x", "data/problems/x", "dvc.yaml", "work/../flows/x"])
def test_the_project_itself_is_no_place_for_a_workspace(tmp_path, monkeypatch, place):
    copy = make_workspace(tmp_path / "copy")
    shutil.copy("params.yaml", copy)
    monkeypatch.chdir(copy)
    before = files_of(copy)
    with pytest.raises(MachineError, match="belongs to the project itself"):
        make_workspace(Path(place), profile="tiny")
    assert files_of(copy) == before


def test_a_file_is_no_place_for_a_workspace(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(MachineError, match="is a file"):
        make_workspace(tmp_path / "file")
    with pytest.raises(MachineError, match="no workspace can be made in"):
        make_workspace(tmp_path / "file" / "within")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_workspace_may_be_around_those_of_the_benchmarks(tmp_path, monkeypatch):
    monkeypatch.chdir(make_workspace(tmp_path / "copy"))
    make_workspace(Path("work/bench/tiny/seed-0"))
    assert make_workspace(Path("work/bench")).samefile("work/bench")
    Path("work/mine/tasks").mkdir(parents=True)
    with pytest.raises(MachineError, match="holds tasks;"):
        make_workspace(Path("work/mine"))


def test_a_refused_change_does_not_make_the_folder_somebody_elses(tmp_path):
    with pytest.raises(ParamsError):
        make_workspace(tmp_path / "copy", changes={"sft.step": 3})
    assert load_params(make_workspace(tmp_path / "copy") / "params.yaml") == load_params()


def test_changes_are_given_as_texts():
    given = [
        "sft.steps=3",
        "sft.learning_rate=1e-3",
        "problems.folders=[/data/a b, c]",
        "policy.model=null",
        "checker.base_url=http://a?b=c",
    ]
    assert changes_of(given) == {
        "sft.steps": 3,
        "sft.learning_rate": 0.001,
        "problems.folders": ["/data/a b", "c"],
        "policy.model": None,
        "checker.base_url": "http://a?b=c",
    }


@pytest.mark.parametrize("text", ["sft.steps", "=3", "sft.steps=[3"])
def test_a_text_that_is_no_change_is_named(text):
    with pytest.raises(ParamsError) as caught:
        changes_of([text])
    assert repr(text) in str(caught.value)
