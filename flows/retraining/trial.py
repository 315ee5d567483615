"""What a comparison came to, and its consequences in the registry; all of it may be done twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired

from flows.retraining.champion_params import as_tag
from flows.retraining.versioning import dvc_lock_digest, provenance, tag_champion
from tasks.errors import MachineError
from tasks.params import Params
from tasks.registry import PolicyVersion, Registry
from tasks.report.comparison import Bout, Decision, Judgement
from tasks.report.comparison_page import comparison_metrics, decision_page, speedup_plot

MAX_TAG = 4000  # MLflow takes no longer values


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One comparison and its judgement."""

    run_id: str
    """What history and MLflow call the comparison; empty where there was nothing to compare."""
    champion: PolicyVersion | None
    """The one the challenger was compared with."""
    bouts: Sequence[Bout]
    judgement: Judgement


def unchanged(champion: PolicyVersion) -> Trial:
    """The trial of a champion against itself."""
    reason = f"the policy is version {champion.version}, which is the champion: nothing it is made from has changed"
    judgement = Judgement(decision=Decision.UNCHANGED, reason=reason)
    return Trial(run_id="", champion=champion, bouts=(), judgement=judgement)


def conclude_trial(params: Params, trial: Trial, policy: Path) -> dict[str, str]:
    """Record a trial, and if its challenger won: register it, make it champion, and tag what it was made from.

    Returns:
        Where things are, by what they are called.
    """
    registry = Registry()
    if trial.judgement.decision is Decision.UNCHANGED:
        assert trial.champion is not None
        links = _version_link(registry, trial.champion, "champion")
        # A kill may have come between its promotion and its tag; but what has changed since is not what it was made of.
        if trial.champion.tags.get("cuda_l1.dvc_lock_sha256") == dvc_lock_digest():
            links |= _tag(trial.champion, trial.champion.tags["cuda_l1.reason"])
        return links
    metrics = comparison_metrics(trial.bouts, trial.judgement)
    facts = provenance(params) | {
        "cuda_l1.decision": trial.judgement.decision.value,
        "cuda_l1.reason": trial.judgement.reason[:MAX_TAG],
        "cuda_l1.compared_with": f"version {trial.champion.version}" if trial.champion else "nobody",
    }
    files = {
        "decision.md": decision_page(trial.judgement, metrics, {}).encode(),
        "speedups.png": speedup_plot(trial.bouts),
    }
    run = registry.record(trial.run_id, tags=facts, metrics=metrics, files=files)
    links = {"comparison": registry.run_page(run) or f"run {run} of MLflow at {registry.uri}"}
    if not trial.judgement.decision.makes_champion:
        return links | (_version_link(registry, trial.champion, "champion") if trial.champion else {})
    numbers = {f"cuda_l1.{name.replace('/', '.')}": f"{value:.4g}" for name, value in metrics.items()}
    version = registry.register(policy, mlflow_run_id=run, tags=facts | numbers | as_tag(params.policy))
    registry.promote(version, over=trial.champion)
    return links | _version_link(registry, version, "new champion") | _tag(version, trial.judgement.reason)


def _tag(version: PolicyVersion, reason: str) -> dict[str, str]:
    try:
        tag = tag_champion(version, reason)
    except (MachineError, OSError, TimeoutExpired) as error:
        # The alias has moved: what lacks its tag is champion all the same.
        return {"warning, no git tag": " ".join(str(error).split())}
    return {"git tag": tag} if tag else {}


def _version_link(registry: Registry, version: PolicyVersion, name: str) -> dict[str, str]:
    return {name: registry.page(version) or f"version {version.version} of the policy at {registry.uri}"}
