"""One retraining: new problems in, what is out of date reproduced, the new policy compared with the champion.

    python -m flows.retrain         # now; python -m flows.deployment does it on a schedule

Every step may be killed and is made good by the next run: files leave the inbox last, stages and comparisons resume,
and what a promotion does can be done twice.
"""

import argparse
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

# Before prefect is imported: its telemetry only adds errors where there is no network.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger
from prefect.states import Completed, State
from pydantic import Field, TypeAdapter

from flows.engine import DATA, WORK, say
from flows.panels.judges import open_judge
from flows.pipeline import StageFailedError, reproduce, version_history
from flows.retraining.arrivals import forget_arrivals, note_arrival, noted_arrivals
from flows.retraining.champion_params import champion_params
from flows.retraining.comparison import CHALLENGER, CHAMPION, begin_comparison, compare_policies, judging_machine
from flows.retraining.dvc_cache import mend_cache
from flows.retraining.inbox import Arrival, admit_problems, has_arrivals
from flows.retraining.page import Progress, announce, show_arrivals
from flows.retraining.regression import raise_alarm
from flows.retraining.start import first_begun, only_one, why_not_now
from flows.retraining.trial import Trial, conclude_trial, unchanged
from flows.retraining.versioning import push_outputs
from flows.services.server import is_alive
from flows.snapshot import is_versioned
from flows.stages import STAGES
from tasks.errors import CudaL1Error, RetryableError
from tasks.judge.baselines import baseline_candidate
from tasks.judge.batch import changed
from tasks.judge.verdict import Verdict
from tasks.params import Params, RetrainParams, load_params
from tasks.problems.problem import Problem
from tasks.registry import Registry
from tasks.registry_files import keep_latest, policy_digest
from tasks.report.comparison import Decision, decide

CHAMPIONS = WORK / "retrain" / "champions"
CHAMPIONS_KEPT = 3
"""Whoever moves the alias back finds these here."""
POLICY = DATA / "contrastive_rl" / "policy"
DEFAULTS = RetrainParams()
SKIPPED = "Skipped"
"""Name of the state of a run that was missed and is not caught up."""


def _may_help(task: object, run: object, state: State[Any]) -> bool:
    """Whether trying the task again can help."""
    return isinstance(state.result(raise_on_failure=False), RetryableError)


step = task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=3,
    retry_delay_seconds=[10, 60, 300],
    retry_condition_fn=_may_help,
)


@flow(name="retrain", persist_result=False)
def retrain(
    catch_up: bool = DEFAULTS.catch_up,
    tier: Literal["screen", "long"] = DEFAULTS.tier,
    samples_per_problem: Annotated[int, Field(gt=0)] = DEFAULTS.samples_per_problem,
    decided_by: Literal["held_out", "all"] = DEFAULTS.decided_by,
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = DEFAULTS.alpha,
) -> State:
    """Admit new problems, reproduce what is out of date, and promote the new policy if it is measurably better.

    Args:
        catch_up: whether a run that the schedule made, and that could not begin in time, is done late or skipped.
        tier: how each policy's best candidate for a problem is timed; long takes judge.long.window_s for each.
        samples_per_problem: completions of each policy for each problem.
        decided_by: the problems that decide; the others are only reported.
        alpha: probability at most with which a challenger that is no better is promoted.
    """
    params = load_params()
    if words := why_not_now(catch_up=catch_up, late_after_s=params.retrain.late_after_s):
        return Completed(name=SKIPPED, message=words)
    asked = {"tier": tier, "samples_per_problem": samples_per_problem, "decided_by": decided_by, "alpha": alpha}
    params = replace(params, retrain=_checked(params.retrain, asked))  # type: ignore[type-var]
    # dvc starts stages as `python`: that must be ours, also where the virtual environment is not activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with only_one():
        arrivals = admit(params)
        mend()
        for stage in STAGES:
            reproduce(stage)
        try:
            trial = compare(params)
            tell(params, trial, arrivals, conclude(params, trial))
            forget_arrivals()
        except Exception:
            # Whatever became of the comparison and its page, the stages' outputs are made and stand in dvc.lock.
            keep()
            raise
        keep()
    return Completed(name=trial.judgement.decision.value.capitalize(), message=trial.judgement.reason)


@step
def admit(params: Params) -> list[Arrival]:
    """Move the files of every inbox to where they belong; returns all that nobody was told of yet."""
    everywhere = [Path(folder) for folder in params.problems.folders]
    folders = [folder for folder in everywhere if has_arrivals(folder)]
    if folders:
        with open_judge(changed(params.judge, tier="screen", workers=1)) as judge:

            def examine(problem: Problem) -> Verdict:
                return judge.judge(problem, baseline_candidate(problem, "eager"), seed=params.seed)

            for folder in folders:
                for arrival in admit_problems(
                    folder, examine, beside=[other for other in everywhere if other != folder]
                ):
                    get_run_logger().info(": ".join(filter(None, (arrival.name, arrival.fate.value, arrival.headline))))
                    note_arrival(arrival)
    arrivals = noted_arrivals()
    show_arrivals(arrivals)
    return arrivals


@step
def mend() -> None:
    """Replace what is damaged in DVC's cache, before a stage takes it for its output or the remote gets it."""
    for output in mend_cache():
        get_run_logger().warning("the copy of %s in DVC's cache was damaged and is made anew", output)


@step
def compare(params: Params) -> Trial:
    """Challenger and champion on the same prompts, and what follows from it."""
    registry, digest = Registry(), policy_digest(POLICY)
    champion = registry.champion()
    if champion is not None and champion.digest == digest:
        return unchanged(champion)
    policies, digests, forms = {CHALLENGER: POLICY}, {CHALLENGER: digest}, {CHALLENGER: params.policy}
    if champion is not None:
        forms[CHAMPION] = champion_params(champion)
        policies[CHAMPION] = registry.fetch(champion, CHAMPIONS)
        keep_latest(policies[CHAMPION], count=CHAMPIONS_KEPT)
        digests[CHAMPION] = champion.digest
    comparison = begin_comparison(params, policies, digests, forms, machine=judging_machine(params))
    bouts = compare_policies(comparison, on_progress=Progress().show)
    judgement = decide(
        bouts,
        deciding_splits=params.retrain.deciding_splits,
        alpha=params.retrain.alpha,
        min_share_correct=params.retrain.min_share_correct,
        seed=params.seed,
    )
    return Trial(run_id=comparison.run_id, champion=champion, bouts=bouts, judgement=judgement)


@step
def conclude(params: Params, trial: Trial) -> dict[str, str]:
    """Write the decision down, and move the alias where it says so; where things are, by what they are called."""
    return conclude_trial(params, trial, POLICY)


@step
def tell(params: Params, trial: Trial, arrivals: list[Arrival], links: dict[str, str]) -> None:
    """The run's page, and the alarm where the challenger is worse."""
    announce(trial, arrivals, links)
    if trial.champion is not None and trial.judgement.decision is Decision.REGRESSED:
        facts = {"reason": trial.judgement.reason, "run_id": trial.run_id}
        raise_alarm(trial.champion, facts, begun_at=first_begun(), timezone=params.retrain.timezone)


def keep() -> None:
    """Version the history, where somebody has asked for it, and push."""
    if is_versioned():
        version_history()
    mend()
    push()


@step
def push() -> None:
    """Send the stages' outputs to DVC's remote, those of a challenger that lost as well: dvc.lock names them."""
    if not push_outputs():
        get_run_logger().info("DVC has no default remote: nothing is pushed")


def _checked(params: RetrainParams, asked: dict[str, Any]) -> RetrainParams:
    """The params with what was asked for in the UI, checked like those of a file."""
    return TypeAdapter(RetrainParams).validate_python(asdict(params) | asked)  # type: ignore[call-overload]


def main() -> None:
    """Retrain now, with the parameters of params.yaml."""
    argparse.ArgumentParser(description="Retrain now, with the section retrain of params.yaml.").parse_args()
    url = os.environ.get("PREFECT_API_URL")
    if url and not is_alive(url):
        sys.exit(f"no Prefect server answers at {url}; start it (prefect server start) or unset PREFECT_API_URL")
    try:
        state = retrain(**flow_parameters(load_params().retrain), return_state=True)
        if state.is_failed():
            state.result()
        say(f"{state.name}: {state.message}")
    except (CudaL1Error, StageFailedError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def flow_parameters(params: RetrainParams) -> dict[str, Any]:
    """The section's values that are parameters of the flow."""
    names = ("catch_up", "tier", "samples_per_problem", "decided_by", "alpha")
    return {name: getattr(params, name) for name in names}


if __name__ == "__main__":
    main()
