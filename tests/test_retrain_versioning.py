"""What a promotion leaves in git and at DVC's remote, and what it does not touch."""

import subprocess
import sys
from pathlib import Path

import pytest

from flows.retraining.trial import _tag
from flows.retraining.versioning import PushError, git_commit, push_outputs, tag_champion
from tasks.registry import PolicyVersion


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable, value in {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}.items():
        monkeypatch.setenv(variable, value)
    git("init", "--quiet", "--initial-branch", "main")
    git("config", "user.name", "someone")
    git("config", "user.email", "someone@example.org")
    (tmp_path / ".gitignore").write_text("/data/*/policy/\n")
    (tmp_path / "dvc.lock").write_text("old")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    return tmp_path


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def version(number: int = 3, digest: str = "0123456789abcdef") -> PolicyVersion:
    return PolicyVersion(version=number, digest=digest, mlflow_run_id="run", created_at=1_790_000_000.0, tags={})


def retrained(repository: Path) -> None:
    (repository / "dvc.lock").write_text("new")
    (repository / "notes.txt").write_text("somebody's own")
    for name in ("problems/level1/new.py", "sft/policy/model.safetensors", "sft/metrics.json"):
        path = repository / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_the_tag_holds_the_state_and_leaves_branch_index_and_files_alone(repository):
    retrained(repository)
    git("add", "notes.txt")
    before = git("rev-parse", "main"), git("status", "--porcelain")
    name = tag_champion(version(), "better in speedup")
    assert name == "retrain/2026-09-21-champion-3"
    assert (git("rev-parse", "main"), git("status", "--porcelain")) == before
    assert git("cat-file", "-t", name) == "tag"
    assert "better in speedup" in git("tag", "--list", "--format=%(contents)", name)
    assert git("rev-parse", f"{name}^{{commit}}~1") == git("rev-parse", "main")
    assert git("show", f"{name}:dvc.lock") == "new"
    held = git("ls-tree", "-r", "--name-only", name).splitlines()
    assert held == [".gitignore", "data/problems/level1/new.py", "data/sft/metrics.json", "dvc.lock"]


def test_a_version_is_tagged_once(repository):
    retrained(repository)
    name = tag_champion(version(), "first try")
    commit = git("rev-parse", name)
    (repository / "dvc.lock").write_text("newer")
    assert tag_champion(version(), "second try") == name
    assert git("rev-parse", name) == commit


def test_another_registrys_version_of_that_number_gets_a_tag_of_its_own(repository):
    tag_champion(version(), "one")
    other = version(digest="fedcba9876543210")
    assert tag_champion(other, "other") == "retrain/2026-09-21-champion-3-fedcba98"
    assert tag_champion(other, "again") == "retrain/2026-09-21-champion-3-fedcba98"


def test_without_git_there_is_no_tag(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit() is None
    assert tag_champion(version(), "why") is None


@pytest.mark.parametrize("ignored", ["/work/", ""], ids=["ignored", "not ignored"])
def test_a_workspace_within_another_repository_gets_no_tag(repository, monkeypatch, ignored):
    with (repository / ".gitignore").open("a") as file:
        file.write(f"{ignored}\n")
    workspace = repository / "work" / "smoke"
    workspace.mkdir(parents=True)
    (workspace / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.chdir(workspace)
    assert tag_champion(version(), "why") is None
    assert git("tag", "--list") == ""


def test_a_tag_that_fails_is_a_warning_and_not_the_end(repository):
    retrained(repository)
    (repository / ".git" / "refs" / "tags" / "retrain").write_text("in the way of a folder")
    (warning,) = _tag(version(), "why").items()
    assert warning[0] == "warning, no git tag"
    assert "git tag" in warning[1]


@pytest.fixture
def versioned(tmp_path, monkeypatch) -> Path:
    """A DVC project without git, with one output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (tmp_path / "dvc.yaml").write_text("stages:\n  sft:\n    cmd: echo policy > policy.txt\n    outs: [policy.txt]\n")
    return tmp_path


def set_remote(project: Path, url: str) -> None:
    with (project / ".dvc" / "config").open("a") as config:
        config.write(f"    remote = store\n['remote \"store\"']\n    url = {url}\n")


def repro() -> None:
    subprocess.run([sys.executable, "-m", "dvc", "repro"], check=True, capture_output=True)


@pytest.mark.slow
def test_outputs_go_to_the_remote_where_there_is_one(versioned):
    repro()
    assert push_outputs() is False
    set_remote(versioned, str(versioned / "store"))
    assert push_outputs() is True
    assert [path.read_text() for path in (versioned / "store").rglob("*") if path.is_file()] == ["policy\n"]
    assert push_outputs() is True


@pytest.mark.slow
def test_a_remote_that_does_not_take_it_is_worth_another_try(versioned):
    repro()
    (versioned / "store").write_text("no folder")
    set_remote(versioned, str(versioned / "store" / "inner"))
    with pytest.raises(PushError, match="dvc push to store failed"):
        push_outputs()
