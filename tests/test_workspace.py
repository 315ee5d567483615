import pytest

from flows.workspace import changes_of, make_workspace
from tasks.errors import ParamsError
from tasks.params import load_params


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
        pytest.param({"stf.steps": 3}, "no section for 'stf.steps'", id="unknown section"),
        pytest.param({"sft.steps": 0}, "greater than 0", id="refused value"),
    ],
)
def test_a_change_that_params_refuse_is_refused(tmp_path, changes, said):
    with pytest.raises(ParamsError, match=said):
        make_workspace(tmp_path / "copy", changes=changes)


def test_changes_are_given_as_texts():
    given = ["sft.steps=3", "problems.folders=[/data/a b, c]", "policy.model=null", "checker.base_url=http://a?b=c"]
    assert changes_of(given) == {
        "sft.steps": 3,
        "problems.folders": ["/data/a b", "c"],
        "policy.model": None,
        "checker.base_url": "http://a?b=c",
    }


@pytest.mark.parametrize("text", ["sft.steps", "=3", "sft.steps=[3"])
def test_a_text_that_is_no_change_is_named(text):
    with pytest.raises(ParamsError) as caught:
        changes_of([text])
    assert repr(text) in str(caught.value)
