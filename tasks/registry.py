"""Policies in MLflow's model registry: which versions there are, and which of them is the champion.

A version is a folder of safetensors and text; its tags say what it was made from. Doing anything here twice is the same
as doing it once. Beside tasks/tracking.py the only file that imports mlflow, and only within functions.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tasks.errors import CudaL1Error, PolicyError
from tasks.registry_errors import registry_error
from tasks.registry_files import policy_digest
from tasks.registry_lock import one_promotion
from tasks.tracking import EXPERIMENT, RUN_ID_TAG, tracking_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

MODEL = "cuda-l1-policy"
CHAMPION = "champion"
"""The alias of the version that is in use."""
DIGEST_TAG = "cuda_l1.policy_digest"
PAGES_VARIABLE = "CUDA_L1_MLFLOW_PAGES"
"""Where people find MLflow's pages, if that is not where numbers are sent to."""
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}  # its own are minutes each


class ChampionChangedError(CudaL1Error):
    """Another version has become champion since ours was compared with the last one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyVersion:
    """One version of the policy in the registry."""

    version: int
    digest: str
    """Of the files; equal for equal policies."""
    mlflow_run_id: str
    created_at: float
    """Unix time in seconds."""
    tags: Mapping[str, str]

    @property
    def artifact(self) -> str:
        """Where in its run of MLflow its files are."""
        return _artifact(self.digest)


class Registry:
    """The versions of one model. MLFLOW_TRACKING_URI says where, as for everything that is tracked.

    Raises:
        RegistryError: from every method, if MLflow does not answer.
        MachineError: from every method, if it answers that it will not.
    """

    def __init__(self) -> None:
        self.uri = tracking_uri()
        server = self.uri if self.uri.startswith("http") else ""
        self._pages = (os.environ.get(PAGES_VARIABLE) or server).rstrip("/")
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)

    def champion(self) -> PolicyVersion | None:
        """The version that bears the alias, or None where none does."""
        with _answering(self.uri) as client:
            models = client.search_registered_models(f"name = '{MODEL}'")
            number = models[0].aliases.get(CHAMPION) if models else None
            return None if number is None else _policy_version(client.get_model_version(MODEL, number))

    def fetch(self, policy: PolicyVersion, folder: Path) -> Path:
        """The files of a version, downloaded once.

        Args:
            folder: where versions are kept, each under its digest.

        Raises:
            PolicyError: if the registry no longer holds what was registered, or it was not registered here.
        """
        if not policy.digest:
            words = f"version {policy.version} of {MODEL} was not registered here: it lacks the tag {DIGEST_TAG}"
            raise PolicyError(f"{words}; move the alias {CHAMPION!r} to a version that has it")
        target = folder / policy.digest
        if not (target.is_dir() and policy_digest(target) == policy.digest):
            self._download(policy, target)
        os.utime(target)  # says which were used last
        return target

    def record(
        self, run_id: str, *, tags: Mapping[str, str], metrics: Mapping[str, float], files: Mapping[str, bytes]
    ) -> str:
        """Write down a comparison as a run of MLflow, and return what MLflow calls it.

        Args:
            run_id: recorded again under the same name, it replaces what was there.
            files: by name.
        """
        from mlflow.entities import Metric

        with _answering(self.uri) as client:
            mlflow_run_id = _run(client, run_id)
            for name, value in tags.items():
                client.set_tag(mlflow_run_id, name, value)
            known = client.get_run(mlflow_run_id).data.metrics
            fresh = [Metric(name, value, 0, 0) for name, value in metrics.items() if known.get(name) != value]
            client.log_batch(mlflow_run_id, metrics=fresh)
            for name, content in files.items():
                _log_file(client, mlflow_run_id, name, content)
            client.set_terminated(mlflow_run_id)
        return mlflow_run_id

    def register(self, folder: Path, *, mlflow_run_id: str, tags: Mapping[str, str]) -> PolicyVersion:
        """The version that holds the files of a folder: one there already, with the tags it lacks, or a new one."""
        from mlflow.exceptions import MlflowException

        digest = policy_digest(folder)
        with _answering(self.uri) as client:
            if not client.search_registered_models(f"name = '{MODEL}'"):
                try:
                    client.create_registered_model(MODEL, description="The policy that writes faster kernels")
                except MlflowException:
                    client.get_registered_model(MODEL)  # somebody else was first
            # Compared here: a filter would also find versions that were never finished.
            for found in client.search_model_versions(f"name = '{MODEL}'"):
                if found.tags.get(DIGEST_TAG) == digest:
                    for name in tags.keys() - found.tags.keys():
                        client.set_model_version_tag(MODEL, found.version, name, tags[name])
                    return _policy_version(client.get_model_version(MODEL, found.version))
            client.log_artifacts(mlflow_run_id, str(folder), _artifact(digest))
            made = client.create_model_version(
                MODEL,
                source=f"runs:/{mlflow_run_id}/{_artifact(digest)}",
                run_id=mlflow_run_id,
                tags={**tags, DIGEST_TAG: digest},
            )
            return _policy_version(client.get_model_version(MODEL, made.version))

    def promote(self, policy: PolicyVersion, *, over: PolicyVersion | None) -> None:
        """Make a version the champion.

        Args:
            over: the champion that it was compared with; None for the first.

        Raises:
            ChampionChangedError: if somebody has made another version champion meanwhile.
        """
        with one_promotion(self.uri):
            now = self.champion()
            if now is not None and now.version == policy.version:
                return
            if (now and now.version) == (over and over.version):
                with _answering(self.uri) as client:
                    client.set_registered_model_alias(MODEL, CHAMPION, str(policy.version))
                # A server knows no lock: somebody may have moved the alias since it was looked at.
                now = self.champion()
        if now is None or now.version != policy.version:
            raise ChampionChangedError(
                f"version {now and now.version} of {MODEL} has become champion meanwhile; "
                f"version {policy.version} was not compared with it: retrain again"
            )

    def page(self, policy: PolicyVersion) -> str | None:
        """The address of a version in MLflow's own pages, where a server has them."""
        return f"{self._pages}/#/models/{MODEL}/versions/{policy.version}" if self._pages else None

    def run_page(self, mlflow_run_id: str) -> str | None:
        """The address of a run in MLflow's own pages, where a server has them."""
        if not self._pages:
            return None
        with _answering(self.uri) as client:
            experiment_id = client.get_run(mlflow_run_id).info.experiment_id
        return f"{self._pages}/#/experiments/{experiment_id}/runs/{mlflow_run_id}"

    def _download(self, policy: PolicyVersion, target: Path) -> None:
        partial = target.with_name(f".{policy.digest}.{uuid4().hex}.partial")
        partial.mkdir(parents=True)
        try:
            with _answering(self.uri) as client:
                downloaded = Path(client.download_artifacts(policy.mlflow_run_id, policy.artifact, str(partial)))
            if policy_digest(downloaded) != policy.digest:
                raise PolicyError(
                    f"version {policy.version} of {MODEL} is not what was registered: its files have changed at "
                    f"{self.uri}; restore them, or move the alias {CHAMPION!r} to a version that is whole"
                )
            shutil.rmtree(target, ignore_errors=True)
            downloaded.replace(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _answering(uri: str) -> "Iterator[MlflowClient]":
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        yield MlflowClient(uri)
    except (MlflowException, OSError) as error:
        raise registry_error(uri, error) from error


def _artifact(digest: str) -> str:
    return f"policy-{digest}"


def _run(client: "MlflowClient", run_id: str) -> str:
    experiment = client.get_experiment_by_name(EXPERIMENT)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT)
    found = client.search_runs([experiment_id], f"tags.`{RUN_ID_TAG}` = '{run_id}'", max_results=1)
    run = found[0] if found else client.create_run(experiment_id, tags={RUN_ID_TAG: run_id}, run_name="retrain")
    return str(run.info.run_id)


def _log_file(client: "MlflowClient", mlflow_run_id: str, name: str, content: bytes) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        (path := Path(folder) / name).write_bytes(content)
        client.log_artifact(mlflow_run_id, str(path))


def _policy_version(found: "ModelVersion") -> PolicyVersion:
    return PolicyVersion(
        version=int(found.version),
        digest=found.tags.get(DIGEST_TAG, ""),
        mlflow_run_id=found.run_id or "",
        created_at=found.creation_timestamp / 1000,
        tags=dict(found.tags),
    )
