"""What a comparison is named by: all that decides its result, so that nothing else's journal is taken for its own."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from flows.retraining.comparison import CHALLENGER, CHAMPION, CODE, begin_comparison, code_digest, judging_machine
from tasks.params import load_params
from tests.retrain_builders import write

PARAMS = load_params()
FORMS = {CHALLENGER: PARAMS.policy, CHAMPION: PARAMS.policy}
MACHINE = {"device": "one", "torch": "2", "python": "3", "driver": None}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("flows.retraining.comparison.FOLDER", tmp_path)
    return tmp_path


def begun(folder: Path, **changes: Any) -> Any:
    asked = {"digests": {CHALLENGER: "a", CHAMPION: "b"}, "forms": FORMS, "machine": MACHINE, "params": PARAMS}
    return begin_comparison(policies={CHALLENGER: folder, CHAMPION: folder}, **asked | changes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"digests": {CHALLENGER: "a", CHAMPION: "c"}}, id="another champion"),
        pytest.param(
            {"forms": FORMS | {CHAMPION: replace(PARAMS.policy, completion_tokens=77)}}, id="another form of it"
        ),
        pytest.param({"params": replace(PARAMS, seed=PARAMS.seed + 1)}, id="another seed"),
        pytest.param({"params": replace(PARAMS, exemplars=replace(PARAMS.exemplars, count=7))}, id="other exemplars"),
        pytest.param({"machine": MACHINE | {"device": "two"}}, id="another device"),
        pytest.param({"machine": MACHINE | {"driver": "600"}}, id="another driver"),
    ],
)
def test_what_decides_a_comparison_makes_it_another_one(folder, changes):
    first = begun(folder)
    write(first.folder, "verdicts.jsonl", "")
    assert begun(folder).run_id == first.run_id
    assert (first.folder / "verdicts.jsonl").exists()
    second = begun(folder, **changes)
    assert second.key != first.key
    assert [path.name for path in second.folder.iterdir()] == ["begun"]
    assert not first.folder.exists()


def test_other_code_makes_it_another_one(folder, monkeypatch):
    first = begun(folder)
    monkeypatch.setattr("flows.retraining.comparison.code_digest", lambda: "other code")
    assert begun(folder).key != first.key


def test_another_version_of_what_writes_makes_it_another_one(folder, monkeypatch):
    first = begun(folder)
    monkeypatch.setattr("flows.retraining.comparison.version", lambda name: f"{version(name)}.1")
    assert begun(folder).key != first.key


@pytest.mark.parametrize(
    "changed", ["flows/parts/sampling.py", "tasks/judge/walls/sandbox.py", "tasks/training/policy.py"]
)
def test_code_that_a_comparison_runs_is_told_from_other_code(tmp_path, changed):
    for part in CODE:
        write(tmp_path, part if part.endswith(".py") else f"{part}/__init__.py", "")
    write(tmp_path, changed, "before = 1")
    first = code_digest(tmp_path)
    write(tmp_path, "flows/soaks/judge.py", "nobody = 1")
    write(tmp_path, "tasks/judge/__pycache__/judge.pyc", "compiled")
    assert code_digest(tmp_path) == first
    write(tmp_path, changed, "after = 1")
    assert code_digest(tmp_path) != first


def test_a_machine_is_named_by_its_device_and_the_versions_that_time():
    machine = judging_machine(PARAMS)
    assert set(machine) == set(MACHINE)
    assert machine["device"]
    assert machine["torch"] == torch.__version__  # with the kind of build, which the package's own version may lack
