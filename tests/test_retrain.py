"""A night as it is: a scheduler that starts a run, real stages, a better policy promoted and a worse one refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.retrain_builders import TRAIN, of_size
from tests.retrain_machine import Machine, artifacts_of, ended_run, retraining_machine, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NIGHTLY, ALARM = "retrain/nightly", "policy_regressed/alarm"
NEW_SIZE = 40
POLICY = "data/contrastive_rl/policy"


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Iterator[Machine]:
    with retraining_machine(tmp_path_factory.mktemp("retrain")) as made:
        yield made


@pytest.fixture(scope="module")
def served(machine) -> Iterator[Machine]:
    """The deployments are registered, and their runs are done until the end of the tests."""
    log = machine.root.parent / "served.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.deployment"],
            cwd=machine.root,
            env=machine.environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    wait_for(lambda: "being served" in log.read_text().replace("\n", " ") or process.poll() is not None, limit_s=90)
    assert process.poll() is None, log.read_text()
    yield machine
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def night(served) -> Any:
    """The flow run that the scheduler made and started, with two files in the inbox, once it has ended."""
    inbox = served.root / "data/problems/inbox/level1"
    inbox.mkdir(parents=True)
    (inbox / f"size{NEW_SIZE}.py").write_text(of_size(NEW_SIZE))
    (inbox / "nothing.py").write_text(of_size(NEW_SIZE).replace("* 2.0", "* 0.0"))
    from prefect.client.schemas.schedules import IntervalSchedule

    with served.client() as client:
        nightly = client.read_deployment_by_name(NIGHTLY)
        assert [known.schedule.cron for known in nightly.schedules] == ["0 2 * * *"]
        soon = IntervalSchedule(interval=timedelta(days=1), anchor_date=datetime.now(UTC) + timedelta(seconds=6))
        # What somebody does by clicking.
        client.update_deployment_schedule(nightly.id, nightly.schedules[0].id, schedule=soon)
    return ended_run(served, NIGHTLY)


def test_the_scheduler_itself_made_and_started_the_run(night):
    assert night.auto_scheduled
    assert night.created_by is None or night.created_by.type == "SCHEDULE"
    assert night.state.is_completed(), night.state.message


def test_the_new_problem_is_trained_on_and_the_degenerate_one_is_not(night, machine):
    problems = machine.root / "data" / "problems"
    assert (problems / "level1" / f"size{NEW_SIZE}.py").read_text() == of_size(NEW_SIZE)
    assert f"level1/size{NEW_SIZE}" in (machine.root / "data/filter_variants/verdicts.jsonl").read_text()
    (kept,) = (problems / "quarantine" / "level1").glob("nothing.*.py")
    assert "does not depend on its inputs" in kept.with_name(f"{kept.name}.reason.txt").read_text()
    assert not [path for path in (problems / "inbox").rglob("*") if path.is_file()]


def test_the_better_policy_is_promoted_with_all_that_it_was_made_from(night, machine):
    assert night.state.name == "Promoted", night.state.message
    champion = machine.registry.champion()
    assert champion.version == 2
    from tasks.registry_files import policy_digest

    assert champion.digest == policy_digest(machine.root / POLICY)
    assert champion.tags["cuda_l1.compared_with"] == "version 1"
    assert {"cuda_l1.git_commit", "cuda_l1.dvc_lock_sha256", "cuda_l1.params_sha256"} <= set(champion.tags)
    (tag,) = machine.run("git", "tag", "--list").split()
    assert tag.endswith("-champion-2")
    assert "data/problems/level1/size40.py" in machine.run("git", "ls-tree", "-r", "--name-only", tag)
    weights = (machine.root / POLICY / "model.safetensors").read_bytes()
    assert weights in [path.read_bytes() for path in (machine.root.parent / "store").rglob("*") if path.is_file()]


def test_the_run_page_shows_how_it_was_decided(night, machine):
    found = artifacts_of(machine, night)
    expected = {"arrivals", "decision", "problems", "progress", "speedups"}
    assert {f"retrain-{name}" for name in expected} <= set(found)
    assert "# Promoted" in found["retrain-decision"].data
    assert "-champion-2" in found["retrain-decision"].data
    assert f"size{NEW_SIZE}" in found["retrain-problems"].data
    assert found["retrain-progress"].data == 100.0


@pytest.fixture(scope="module")
def clone(night, machine) -> Path:
    """Another clone, at the champion's tag, with what DVC's remote holds."""
    folder = machine.root.parent / "clone"
    machine.run("git", "clone", "--quiet", str(machine.root), str(folder))
    machine.run("git", "checkout", "--quiet", *machine.run("git", "tag", "--list").split(), folder=folder)
    machine.run("dvc", "pull", "--quiet", folder=folder)
    return folder


def test_at_the_champions_tag_another_clone_has_nothing_to_do(clone, machine):
    from tasks.registry_files import policy_digest

    assert "Data and pipelines are up to date." in machine.run("dvc", "repro", folder=clone)
    assert policy_digest(clone / POLICY) == machine.registry.champion().digest


def test_the_champion_writes_and_knows_the_same_in_another_clone(clone, machine):
    machine.run("dvc", "repro", "--force", "--single-item", "evaluate", folder=clone)
    own, others = evaluated(machine.root), evaluated(clone)
    assert own["completions"] == others["completions"]
    assert own["found"] == others["found"]
    assert len(own["completions"]) == len(own["found"]) > 0
    assert "correct" in {status for *_, status in own["found"]}


def evaluated(project: Path) -> dict[str, list[Any]]:
    """What evaluate had the champion write, and what became of each text; times are another matter."""
    evaluate = project / "data" / "evaluate"
    statuses = {row["candidate_id"]: row["status"] for row in rows(*(project / "data").glob("*/verdicts.jsonl"))}
    # Whether times settle is a matter of times.
    settled = {name: "correct" if status == "unstable" else status for name, status in statuses.items()}
    drawn = sorted((project / "work" / "evaluate").glob("*/draws-contrastive_rl-*.jsonl"))
    return {
        "completions": [row["completion"] for row in rows(*drawn) if "completion" in row],
        "found": [
            (row["problem_id"], row["mode"], row["candidate_id"], row["parsed"], settled[row["candidate_id"]])
            for row in rows(evaluate / "samples.jsonl")
            if row["policy"] == "contrastive_rl"
        ],
    }


def rows(*paths: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def test_a_worse_policy_is_refused_and_raises_the_alarm(night, machine):
    reference = machine.registry.champion()
    shutil.rmtree(machine.root / POLICY)
    shutil.copytree(machine.root.parent / "untrained", machine.root / POLICY)
    machine.run(sys.executable, "-m", "dvc", "commit", "--force", "--quiet")
    with machine.client() as client:
        nightly = client.read_deployment_by_name(NIGHTLY)
        client.create_flow_run_from_deployment(nightly.id)
    run = ended_run(machine, NIGHTLY, number=2)
    assert run.state.name == "Regressed", run.state.message
    assert machine.registry.champion() == reference
    assert len(machine.run("git", "tag", "--list").split()) == 1
    alarm = ended_run(machine, ALARM)
    assert alarm.state.is_failed()
    assert alarm.parameters["reason"] == run.state.message
    assert "worse in share correct" in run.state.message


def test_the_same_night_raises_its_alarm_once(machine):
    from prefect.events.filters import EventFilter, EventNameFilter

    with machine.client() as client:
        nightly = client.read_deployment_by_name(NIGHTLY)
        client.create_flow_run_from_deployment(nightly.id)
        assert ended_run(machine, NIGHTLY, number=3).state.name == "Regressed"
        raised = EventFilter(event=EventNameFilter(name=["cuda-l1.policy.regressed"]))
        assert client.read_events(raised, limit=10).total == 1


def test_the_problems_that_were_there_are_still_there(machine):
    for size in TRAIN:
        assert (machine.root / f"data/problems/level1/size{size}.py").exists()
