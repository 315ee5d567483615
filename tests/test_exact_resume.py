"""Stages that are killed at random moments end with the very weights and losses of one that never was.

KILLS=20 python -m pytest tests/test_exact_resume.py   kills each stage twenty times instead of twice.
"""

import json
import os
import random
import shutil
import signal
from pathlib import Path

import pytest
import yaml

from tests.exact_runs import MOMENTS, run
from tests.stage_runs import candidate_rows, workspace, write_generated, write_problem, write_rows, write_taught
from tests.training_builders import SCALED

KILLS = int(os.environ.get("KILLS", "2"))
SETTINGS = {
    "buckets": {},
    "islands": {
        "exemplars": "islands",
        "islands": 2,
        "island_reset_steps": 2,
        "updates_per_step": 2,
        "kl_beta": 0.05,
        "groups_at_once": 1,
    },
}
SMALL = {"steps": 5, "group_size": 4, "learning_rate": 0.01}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def project(folder: Path, settings: dict[str, object]) -> Path:
    """Everything that sft needs; what it and the next stages make is all the others need."""
    # Nothing is renamed: what is written here is no Python.
    root = workspace(
        folder,
        sft__steps=4,
        sft__copying_steps=3,
        policy__completion_tokens=384,
        sft__renamed_share=0.0,
        self_supervised__steps=3,
    )
    params = yaml.safe_load((root / "params.yaml").read_text())
    params["contrastive_rl"] |= settings
    (root / "params.yaml").write_text(yaml.safe_dump(params))
    for number in (3, 4):
        write_problem(root, f"level1/scaled_by_{number}", SCALED.replace("2.0", f"{number}.0"))
    shutil.copytree(root / "problems", root / "data" / "problems", dirs_exist_ok=True)
    write_generated(root, candidate_rows())
    write_rows(root / "data/filter_variants/verdicts.jsonl", [])
    write_taught(root)
    return root


def losses(root: Path, stage: str) -> list[dict[str, float]]:
    """What the trainers of a stage have logged, step by step, as their newest checkpoints hold it."""
    rows = []
    for state in sorted(root.glob(f"work/{stage}/*/checkpoints*/checkpoint-*/trainer_state.json")):
        rows += [
            {name: row[name] for name in ("step", "loss", "grad_norm", "learning_rate")}
            for row in json.loads(state.read_text())["log_history"]
            if "loss" in row
        ]
    return rows


def outcome(root: Path, stage: str) -> dict[str, object]:
    data = root / "data" / stage
    made = {name: (data / name).read_bytes() for name in ("policy/model.safetensors", "curve.csv")}
    if stage != "sft":
        made["candidates.jsonl"] = (data / "candidates.jsonl").read_bytes()
    return made | {"losses": losses(root, stage)}


def run_with_kills(root: Path, stage: str, *, moments: int, seed: str) -> int:
    """Kill the stage at random moments, each counted from where it was continued, then let it end."""
    rng = random.Random(seed)
    killed = 0
    for _ in range(KILLS):
        killed += run(root, stage, killed_at=rng.randint(1, moments)) == -signal.SIGKILL
    assert run(root, stage) == 0, (root / "log.txt").read_text()[-3000:]
    return killed


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A project whose policy is ready for contrastive_rl, and that was never killed."""
    root = project(tmp_path_factory.mktemp("whole"), {})
    for stage in ("sft", "self_supervised"):
        assert run(root, stage) == 0, (root / "log.txt").read_text()[-3000:]
        shutil.copy(root / MOMENTS, root / f"{stage}-{MOMENTS}")
    return root


@pytest.mark.parametrize("stage", ["sft", "self_supervised"])
def test_supervised_stages_end_as_if_they_had_never_been_killed(trained, tmp_path, stage):
    root = project(tmp_path, {})
    shutil.copytree(trained / "data", root / "data", dirs_exist_ok=True)
    shutil.rmtree(root / "data" / stage)
    assert run_with_kills(root, stage, moments=int((trained / f"{stage}-{MOMENTS}").read_text()), seed=stage) > 0
    assert losses(root, stage)
    assert outcome(root, stage) == outcome(trained, stage)


@pytest.mark.parametrize("name", SETTINGS)
def test_contrastive_rl_ends_as_if_it_had_never_been_killed(trained, tmp_path, name):
    whole, killed = (project(tmp_path / which, SMALL | SETTINGS[name]) for which in ("whole", "killed"))
    for root in (whole, killed):
        shutil.copytree(trained / "data", root / "data", dirs_exist_ok=True)
    assert run(whole, "contrastive_rl") == 0, (whole / "log.txt").read_text()[-3000:]
    assert run_with_kills(killed, "contrastive_rl", moments=int((whole / MOMENTS).read_text()), seed=name) > 0
    assert any(row["grad_norm"] for row in losses(whole, "contrastive_rl"))
    assert outcome(killed, "contrastive_rl") == outcome(whole, "contrastive_rl")
