"""`cuda-l1 optimize` with a policy on this machine."""

from pathlib import Path

import pytest

from flows.cli import main
from tasks.search.search import SCREEN
from tests.provider_builders import answers_in, make_project, searched, write_params


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of random weights, made from a config."""
    from tasks.training.policy import save_policy
    from tests.training_builders import policy

    folder = tmp_path_factory.mktemp("policy") / "policy"
    save_policy(policy(), folder)
    return folder


SMALL = {"prompt_style": "compact", "context_tokens": 600, "completion_tokens": 24, "threads": 1}


def test_a_policy_proposes_and_is_shown_what_others_found(project: Path, policy: Path) -> None:
    write_params(project, **SMALL)
    folder = project / "found"
    folder.mkdir()
    (folder / "short.py").write_text("ModelNew = 1\n")
    name = f"policy:{policy}"
    outcome = searched(project, "found", name, candidates=9)
    rows = answers_in(project)
    assert {row["writer"] for row in rows} == {name}
    shown = {candidate_id for row in rows for candidate_id in row["exemplar_ids"]}
    by = {each.candidate.candidate_id: each.candidate.origin for each in outcome.progress.at(SCREEN)}
    assert "found" in {by[candidate_id] for candidate_id in shown}
    assert all(by[row["candidate_id"]] == name for row in rows[:4])
    assert outcome.contributions[1].num_judged == 8
    again = searched(project, "found", name, candidates=9)
    assert answers_in(project) == rows
    assert [each.candidate for each in again.progress.at(SCREEN)] != []


def test_a_policy_too_small_for_the_module_ends_and_says_so(project: Path, policy: Path) -> None:
    write_params(project, **(SMALL | {"context_tokens": 128}))
    outcome = searched(project, f"policy:{policy}")
    (reason,) = outcome.progress.failed.values()
    assert "raise policy.context_tokens" in reason


def test_a_policy_needs_a_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "dvc.yaml").unlink()
    assert main(["optimize", "slow.py", "--provider", "policy:x"]) == 1
    assert "needs the section policy of a params.yaml" in capsys.readouterr().err
