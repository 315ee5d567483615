"""What an inbox meets on odd nights: files no judge can judge, a second problem folder, catalogues in other forms."""

from pathlib import Path

import pytest
import yaml

from flows.retraining.inbox import Fate, admit_problems
from tasks.errors import WorkerError
from tasks.judge.verdict import Verdict
from tasks.problems.problem import Problem
from tests.retrain_builders import NEW, accept, write
from tests.training_builders import SCALED


@pytest.fixture
def folder(tmp_path) -> Path:
    """A problem folder with one problem."""
    write(tmp_path, "level1/scaled.py", SCALED)
    return tmp_path


@pytest.mark.parametrize("error", [WorkerError("CUDA out of memory"), PermissionError(13, "Permission denied")])
def test_a_file_that_cannot_be_judged_waits_and_the_next_one_is_admitted(folder, error):
    path = write(folder, "inbox/level1/a.py", SCALED.replace("2.0", "5.0"))
    write(folder, "inbox/level1/b.py", NEW)

    def examine(problem: Problem) -> Verdict:
        if problem.problem_id == "level1/a":
            raise error
        return accept(problem)

    first, second = admit_problems(folder, examine)
    assert (first.fate, second.fate) == (Fate.WAITING, Fate.ADMITTED)
    assert first.reason == f"{type(error).__name__}: {error}"
    assert path.exists()


def test_what_another_folder_holds_is_not_new(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    write(other, "level1/taken.py", SCALED.replace("2.0", "5.0"))
    write(folder, "inbox/level1/taken.py", NEW)
    write(folder, "inbox/level1/z.py", SCALED.replace("2.0", "5.0"))
    named, alike = admit_problems(folder, accept, beside=[other])
    assert "another problem is called level1/taken" in named.reason
    assert "is level1/taken once more" in alike.reason


@pytest.mark.parametrize(
    "text",
    [
        "# ours\nlevel1/scaled: {family: scaling}\n",
        "{level1/scaled: {family: scaling}}",
        "level1/scaled: {family: scaling}\n...\n",
    ],
    ids=["block style", "flow style", "end mark"],
)
def test_a_catalogue_of_any_form_takes_another_entry(folder, text):
    (folder / "catalogue.yaml").write_text(text)
    write(folder, "inbox/level2/halved.py", NEW)
    write(folder, "inbox/catalogue.yaml", "level2/halved: {family: halving}\n")
    list(admit_problems(folder, accept))
    longer = (folder / "catalogue.yaml").read_text()
    assert yaml.safe_load(longer) == {"level1/scaled": {"family": "scaling"}, "level2/halved": {"family": "halving"}}
    assert longer.startswith("# ours") == text.startswith("# ours")
