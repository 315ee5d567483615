"""What only a later stage can fail at does not end sft: it is said before the training, with the remedy."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flows.engine import Stage, run_stage
from flows.parts.launching import say_unless_apart
from flows.self_supervised import self_supervised
from flows.sft import sft
from tasks.errors import PolicyError, ProblemError
from tasks.params import Params, load_params
from tests.stage_runs import CLOSED, workspace, write_problem, write_taught
from tests.training_builders import SCALED, policy

FIXED = load_params()
MEANWHILE = replace(FIXED, contrastive_rl=replace(FIXED.contrastive_rl, groups_at_once=1))
LONG = SCALED.replace("out = ", "out = " + "0.0 + " * 900)


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def stage_of(params: Params, folder: Path) -> Stage:
    return Stage(name="any", params=params, key="k", folder=folder, run_id="run-1", started_at=1.7e9)


@pytest.mark.parametrize("stage", [sft, self_supervised], ids=lambda stage: stage.__name__)
def test_that_judging_meanwhile_needs_another_machine_is_said_by_stages_that_may_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProblemError):  # it goes on, to what is not there
        stage(stage_of(MEANWHILE, tmp_path))
    said = capsys.readouterr().err
    assert "contrastive_rl would refuse to run on this machine: contrastive_rl.groups_at_once: groups would be" in said
    assert "judged on cpu while others are sampled there; set it to null" in said


def test_nothing_is_said_where_nothing_is_judged_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    say_unless_apart(FIXED)
    assert capsys.readouterr().err == ""


def test_a_held_out_reference_without_room_for_an_answer_is_left_to_evaluate_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = workspace(tmp_path, sft__steps=1, problems__held_out_families=["long"])
    write_taught(root)
    write_problem(root, "level2/long", LONG)
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    run_stage("sft", sft)
    assert Path("data/sft/policy").is_dir()
    said = capsys.readouterr().err
    assert "evaluate would refuse to ask for held-out problems: the reference of level2/long takes " in said
    assert "raise policy.context_tokens" in said


@pytest.mark.parametrize(
    ("first", "examples", "words"),
    [
        pytest.param(
            ["x = 1\n" * 200] * 3,
            ["x"],
            r"none of the 3 examples of copying, of which the shortest takes \d+ tokens, \d+ of them for the program, "
            r"fits policy.context_tokens \(400\) and policy.completion_tokens \(24\); raise these in params.yaml, or "
            r"set sft.copying_steps to 0",
            id="copying",
        ),
        pytest.param(
            [],
            ["x"],
            r"none of the 8 examples of copying that were asked for fits policy.context_tokens \(400\)",
            id="copying of which nothing was left",
        ),
        pytest.param(
            ["x"],
            ["x = 1\n" * 200] * 2,
            r"none of the 2 examples of candidates, of which the shortest takes \d+ tokens, \d+ of them for the "
            r"program, fits policy.context_tokens \(400\) and policy.completion_tokens \(24\); raise these "
            r"in params.yaml$",
            id="candidates",
        ),
    ],
)
def test_examples_of_which_none_fits_are_told_apart(
    tmp_path: Path, first: list[str], examples: list[str], words: str
) -> None:
    from tasks.training.examples import Example
    from tasks.training.sft import train_sft

    given, then = ([Example(prompt="# a\n", completion=text) for text in texts] for texts in (first, examples))
    with pytest.raises(PolicyError, match=words):
        train_sft(
            policy(),
            then,
            steps=4,
            first=given,
            first_steps=2,
            batch_size=4,
            learning_rate=1e-3,
            checkpoints=tmp_path,
            seed=0,
        )
