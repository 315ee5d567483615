"""The registry of policies: what is registered, who is champion, and that doing it twice changes nothing."""

import errno
import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.errors import MachineError, PolicyError, RetryableError
from tasks.registry import DIGEST_TAG, MODEL, PAGES_VARIABLE, ChampionChangedError, PolicyVersion, Registry
from tasks.registry_errors import RegistryError, registry_error
from tasks.registry_files import keep_latest, policy_digest
from tasks.registry_lock import one_promotion

pytestmark = pytest.mark.slow


def write_policy(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """An empty store, migrated once; its copies are ready at once."""
    from mlflow import MlflowClient

    folder = tmp_path_factory.mktemp("store")
    MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
    return folder / "mlflow.db"


@pytest.fixture
def registry(tmp_path, monkeypatch, store) -> Registry:
    (tmp_path / "mlflow.db").write_bytes(store.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    return Registry()


def answer(code: str) -> Exception:
    from mlflow.exceptions import RestException

    return RestException({"error_code": code, "message": "no"})


def record(registry: Registry, run_id: str, **metrics: float) -> str:
    return registry.record(run_id, tags={"decision": "promoted"}, metrics=metrics, files={"report.md": b"why"})


def three_versions(registry: Registry, folder: Path) -> list[PolicyVersion]:
    run = record(registry, "retrain-1")
    return [
        registry.register(write_policy(folder / name, name.encode()), mlflow_run_id=run, tags={})
        for name in ("first", "second", "third")
    ]


def test_the_first_champion_is_registered_fetched_and_found_again(registry, tmp_path) -> None:
    assert registry.champion() is None
    folder = write_policy(tmp_path / "policy")
    run = record(registry, "retrain-1", p=0.5)
    made = registry.register(folder, mlflow_run_id=run, tags={"git_commit": "abc"})
    registry.promote(made, over=None)
    champion = registry.champion()
    assert champion == made
    assert (champion.version, champion.digest, champion.tags["git_commit"]) == (1, policy_digest(folder), "abc")
    fetched = registry.fetch(champion, tmp_path / "champions")
    assert (fetched / "model.safetensors").read_bytes() == b"weights"
    assert [path.name for path in (tmp_path / "champions").iterdir()] == [champion.digest]


@pytest.mark.parametrize(
    ("pages", "link"),
    [
        pytest.param("", None, id="a database has no pages"),
        pytest.param("http://host:5000/", f"http://host:5000/#/models/{MODEL}/versions/1", id="somebody shows it"),
    ],
)
def test_links_lead_to_where_people_find_the_pages(registry, tmp_path, monkeypatch, pages, link) -> None:
    monkeypatch.setenv(PAGES_VARIABLE, pages)
    linked = Registry()
    run = record(linked, "retrain-1")
    assert linked.page(linked.register(write_policy(tmp_path / "policy"), mlflow_run_id=run, tags={})) == link
    comparison = linked.run_page(run)
    assert comparison is None if link is None else comparison.endswith(f"/runs/{run}")


def test_doing_it_all_twice_changes_nothing(registry, tmp_path) -> None:
    from mlflow import MlflowClient

    folder = write_policy(tmp_path / "policy")
    for _ in range(2):
        run = record(registry, "retrain-1", p=0.5)
        made = registry.register(folder, mlflow_run_id=run, tags={})
        registry.promote(made, over=None)
    client = MlflowClient(registry.uri)
    assert len(client.search_model_versions(f"name = '{MODEL}'")) == 1
    assert len(client.get_metric_history(run, "p")) == 1
    assert [file.path for file in client.list_artifacts(run)] == [made.artifact, "report.md"]


def test_nobody_is_promoted_over_a_champion_it_was_not_compared_with(registry, tmp_path) -> None:
    first, second, third = three_versions(registry, tmp_path)
    registry.promote(first, over=None)
    registry.promote(second, over=first)
    with pytest.raises(ChampionChangedError, match=r"version 2 .* has become champion meanwhile"):
        registry.promote(third, over=first)
    assert registry.champion() == second
    for made, weights in ((first, b"first"), (third, b"third")):
        assert (registry.fetch(made, tmp_path / "champions") / "model.safetensors").read_bytes() == weights


def test_of_two_that_were_compared_with_the_same_champion_one_takes_its_place(registry, tmp_path, monkeypatch) -> None:
    from mlflow import MlflowClient

    first, *rivals = three_versions(registry, tmp_path)
    registry.promote(first, over=None)
    moved, move = [], MlflowClient.set_registered_model_alias
    begin = threading.Barrier(len(rivals))

    def moves_slowly(client, name: str, alias: str, version: str) -> None:
        time.sleep(0.3)
        move(client, name, alias, version)
        moved.append(version)

    monkeypatch.setattr(MlflowClient, "set_registered_model_alias", moves_slowly)

    def promote(rival) -> bool:
        begin.wait()
        try:
            Registry().promote(rival, over=first)
        except ChampionChangedError:
            return False
        return True

    with ThreadPoolExecutor(len(rivals)) as pool:
        won = dict(zip((rival.version for rival in rivals), pool.map(promote, rivals), strict=True))
    (winner,) = (version for version, has_won in won.items() if has_won)
    assert registry.champion().version == winner
    assert moved == [str(winner)]


def test_who_finds_another_in_the_place_that_it_took_has_not_won(registry, tmp_path, monkeypatch) -> None:
    """Where a server is asked: it knows no lock, so the alias is looked at once more."""
    from mlflow import MlflowClient

    first, second, third = three_versions(registry, tmp_path)
    registry.promote(first, over=None)
    elsewhere, move = MlflowClient(registry.uri), MlflowClient.set_registered_model_alias

    def moves_and_is_overtaken(client, name: str, alias: str, version: str) -> None:
        move(client, name, alias, version)
        move(elsewhere, name, alias, str(third.version))

    monkeypatch.setattr(MlflowClient, "set_registered_model_alias", moves_and_is_overtaken)
    with pytest.raises(ChampionChangedError, match=r"version 3 .* has become champion meanwhile; version 2 was not"):
        registry.promote(second, over=first)
    assert registry.champion() == third


def test_a_promotion_that_never_ends_holds_nobody_up_for_ever(registry, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tasks.registry_lock.LIMIT_S", 0.2)
    with (tmp_path / "mlflow.db.promotion").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with (
            pytest.raises(RegistryError, match=r"another promotion has held .*mlflow\.db\.promotion"),
            one_promotion(registry.uri),
        ):
            pass
    with one_promotion(registry.uri):
        pass


def test_the_champions_that_were_fetched_last_are_kept(registry, tmp_path) -> None:
    folder = tmp_path / "champions"
    versions = three_versions(registry, tmp_path)
    for age, version in enumerate(versions):
        os.utime(registry.fetch(version, folder), (age, age))
    latest = registry.fetch(versions[0], folder)  # somebody has moved the alias back
    (folder / ".0123.partial").mkdir()
    (folder / ".0123.partial" / "model.safetensors").write_bytes(b"half")
    keep_latest(latest, count=2)
    assert {path.name for path in folder.iterdir()} == {versions[0].digest, versions[2].digest}


def test_the_champion_of_this_run_is_kept_though_the_clock_was_put_back(registry, tmp_path) -> None:
    folder = tmp_path / "champions"
    versions = three_versions(registry, tmp_path)
    for version in versions[:2]:
        registry.fetch(version, folder)
    latest = registry.fetch(versions[2], folder)
    os.utime(latest, (0, 0))
    keep_latest(latest, count=2)
    assert latest.is_dir()
    assert len(list(folder.iterdir())) == 2


def test_a_champion_whose_files_were_changed_is_refused(registry, tmp_path) -> None:
    run = record(registry, "retrain-1")
    made = registry.register(write_policy(tmp_path / "policy"), mlflow_run_id=run, tags={})
    (stored,) = tmp_path.glob("mlruns/**/model.safetensors")
    stored.write_bytes(b"others")
    with pytest.raises(PolicyError, match="version 1 of cuda-l1-policy is not what was registered"):
        registry.fetch(made, tmp_path / "champions")
    assert not list((tmp_path / "champions").iterdir())


def test_a_pickle_is_not_registered(registry, tmp_path) -> None:
    folder = write_policy(tmp_path / "policy")
    (folder / "training_args.bin").write_bytes(b"\x80\x04")
    with pytest.raises(PolicyError, match="must load without running code"):
        registry.register(folder, mlflow_run_id="none", tags={})


def test_a_champion_that_no_retraining_registered_is_refused_by_name(registry, tmp_path) -> None:
    run = record(registry, "retrain-1")
    made = registry.register(write_policy(tmp_path / "policy"), mlflow_run_id=run, tags={})
    with pytest.raises(
        PolicyError, match=f"version 1 of {MODEL} was not registered here: it lacks the tag {DIGEST_TAG}"
    ):
        registry.fetch(replace(made, digest=""), tmp_path / "champions")


def test_a_version_that_is_there_already_gets_the_tags_it_lacks(registry, tmp_path) -> None:
    folder, run = write_policy(tmp_path / "policy"), record(registry, "retrain-1")
    registry.register(folder, mlflow_run_id=run, tags={"old": "first"})
    again = registry.register(folder, mlflow_run_id=run, tags={"old": "second", "new": "second"})
    assert (again.version, again.tags["old"], again.tags["new"]) == (1, "first", "second")


@pytest.mark.parametrize(
    ("error", "is_worth_a_try"),
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), False, id="disk full"),
        pytest.param(PermissionError(errno.EACCES, "Permission denied"), False, id="no permission"),
        pytest.param(ConnectionResetError(errno.ECONNRESET, "reset"), True, id="connection lost"),
        pytest.param(answer("PERMISSION_DENIED"), False, id="403"),
        pytest.param(answer("UNAUTHENTICATED"), False, id="401"),
        pytest.param(answer("INVALID_PARAMETER_VALUE"), False, id="a wrong request"),
        pytest.param(answer("TEMPORARILY_UNAVAILABLE"), True, id="503"),
    ],
)
def test_only_what_may_pass_is_worth_another_try(error, is_worth_a_try) -> None:
    found = registry_error("http://registry", error)
    assert isinstance(found, RetryableError if is_worth_a_try else MachineError)
    assert "http://registry" in str(found)


def test_no_answer_is_an_error_worth_another_try(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:9"):
        Registry().champion()
