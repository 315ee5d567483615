"""The profiles of params.yaml: each is chosen by one command, holds together, and fits the GPUs it is made for."""

import re
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest
import yaml

from flows.parts.sampling import BATCH
from flows.workspace import make_workspace
from tasks.errors import ParamsError
from tasks.judge.baselines import NEED_CUDA
from tasks.params import Params, apply_profile, load_params, read_document
from tasks.params.consistency import BASELINES_OF_GPUS
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Split
from tasks.training.architectures import ARCHITECTURES, Architecture
from tasks.training.footprint import Setup, footprint, sampling_bytes

PROFILES = sorted(read_document(Path("params.yaml"))["profiles"])
GB = 1_000_000_000
# For what hardware docs/training.md offers them: a GPU's memory.
GPU_GB = {"gpu-small": 24, "gpu-7b": 80, "cluster": 141}


@pytest.fixture
def chosen(tmp_path):
    def choose(name: str) -> Params:
        return load_params(make_workspace(tmp_path / name, profile=name) / "params.yaml")

    return choose


def shape_of(params: Params) -> Architecture:
    """The policy's architecture; of one from scratch, with attention in every layer, which takes a little more."""
    if params.policy.model:
        (shape,) = [shape for name, shape in ARCHITECTURES.items() if params.policy.model.endswith(f"{name}-Instruct")]
        return shape
    return Architecture(
        name="scratch",
        source="tasks.training.policy.new_policy",
        hidden=params.policy.hidden_size,
        intermediate=-(-params.policy.hidden_size * 8 // 3 // 64) * 64,
        layers=params.policy.layers,
        heads=params.policy.heads,
        key_value_heads=params.policy.heads,
        head_size=params.policy.hidden_size // params.policy.heads,
        vocab=params.policy.vocab_size + params.policy.line_tokens,
        positions=params.policy.context_tokens,
        is_tied=True,
    )


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_consistent(chosen, name):
    params = chosen(name)
    assert params.policy.completion_tokens < params.policy.context_tokens <= shape_of(params).positions
    assert params.sft.batch_size % (params.sft.micro_batch_size or 1) == 0
    assert params.self_supervised.batch_size % (params.sft.micro_batch_size or 1) == 0
    assert (params.policy.prompt_style == "instruct") == (params.policy.model is not None)
    if name in GPU_GB:
        assert params.judge.device.startswith("cuda")
        gpus = params.engine.size
        assert all(section.batch_size % gpus == 0 for section in (params.sft, params.self_supervised))
        assert params.contrastive_rl.prompts_per_step % gpus == 0


def peaks(params: Params) -> dict[str, int]:
    """What each stage takes of a GPU at most, in bytes, with every prompt and answer as long as it may be."""
    policy, rows = params.policy, params.contrastive_rl.micro_batch_size or params.contrastive_rl.group_size

    def setup(examples: int) -> Setup:
        return Setup(
            gpus=params.engine.size,
            tokens=examples * policy.context_tokens,
            zero_stage=params.engine.zero_stage,
            offload=params.engine.offload,
            adapter_rank=policy.adapter.rank if policy.adapter else None,
            has_checkpointing=policy.gradient_checkpointing,
            weights=policy.weights,
        )

    def sampling(completions: int, *, amid_training: bool) -> int:
        return sampling_bytes(
            shape_of(params),
            setup(rows),
            completions=min(completions, policy.completions_at_once),
            prompt_tokens=policy.context_tokens - policy.completion_tokens,
            completion_tokens=policy.completion_tokens,
            amid_training=amid_training,
        )

    learning = setup(params.sft.micro_batch_size or params.sft.batch_size // params.engine.size)
    asked = params.contrastive_rl.prompts_per_step // params.engine.size * params.contrastive_rl.group_size
    return {
        "sft, self_supervised": footprint(shape_of(params), learning).total_bytes,
        "self_supervised and evaluate, sampling": sampling(BATCH, amid_training=False),
        "contrastive_rl": footprint(shape_of(params), setup(rows)).total_bytes,
        "contrastive_rl, sampling": sampling(asked, amid_training=True),
    }


@pytest.mark.parametrize("name", GPU_GB)
def test_a_profile_fits_the_gpus_it_is_made_for_in_every_stage(chosen, name):
    assert {what: taken for what, taken in peaks(chosen(name)).items() if taken > GPU_GB[name] * GB} == {}


@pytest.mark.parametrize("name", GPU_GB)
def test_what_a_profile_takes_is_in_the_documentation(chosen, name):
    taken = peaks(chosen(name))
    keys = (
        "sft, self_supervised",
        "self_supervised and evaluate, sampling",
        "contrastive_rl, sampling",
        "contrastive_rl",
    )
    row = " | ".join(f"{taken[key] / GB:.0f}" for key in keys)
    assert f"| `{name}` | {row} | {GPU_GB[name]} |" in Path("docs/training.md").read_text()


def test_how_many_answers_the_cluster_asks_for_is_in_the_documentation(chosen):
    params = chosen("cluster")
    problems = load_problems(params.problems).values()
    train = sum(problem.split is Split.TRAIN for problem in problems)
    improved, rewarded = params.self_supervised, params.contrastive_rl
    factors = (
        (train, improved.samples_per_problem, improved.iterations),
        (len(problems), 1 + params.evaluate.samples_per_problem, 3),
        (rewarded.steps, rewarded.prompts_per_step, rewarded.group_size),
    )
    text = Path("docs/training.md").read_text()
    for each in factors:
        assert f"{' x '.join(map(str, each))} = {prod(each):,}" in text


def test_every_profile_for_a_gpu_is_said_to_be_for_one_of_that_memory():
    document = read_document(Path("params.yaml"))
    assert {n for n in PROFILES if apply_profile(document, n)["judge"]["device"] != "cpu"} == GPU_GB.keys()
    table = Path("docs/training.md").read_text()
    for name, memory_gb in GPU_GB.items():
        assert re.search(rf"^\| `{name}` \|.* of {memory_gb} GB \|", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sft.micro_batch_size": 3}, "sft.batch_size: must be a multiple of sft.micro_batch_size 3"),
        (
            {"sft.micro_batch_size": 8, "self_supervised.batch_size": 12},
            "self_supervised.batch_size: must be a multiple",
        ),
        ({"policy.adapter": {"rank": 8, "alpha": 16}}, "policy.adapter: must be null without a model"),
        ({"policy.model": "m", "policy.adapter": {"rank": 0, "alpha": 16}}, "policy.adapter.rank"),
        (
            {"evaluate.baselines": ["compile", "cuda_graph"]},
            "evaluate.baselines: must not hold cuda_graph where judge.device is cpu",
        ),
        (
            {"evaluate.baselines": ["compile_reduce_overhead"], "judge.ray": "auto"},
            "evaluate.baselines: must not hold compile_reduce_overhead where judge.device is cpu",
        ),
        (
            {"contrastive_rl.groups_at_once": 1, "judge.device": "cuda"},
            "contrastive_rl.groups_at_once: must be null where judge.device is cuda",
        ),
        (
            {"contrastive_rl.groups_at_once": 1, "judge.device": "cuda:1", "engine": {"processes": 2}},
            "contrastive_rl.groups_at_once: must be null where judge.device is cuda:1",
        ),
        ({"policy.weights": "float16"}, "policy.weights"),
        ({"policy.attention": "magic"}, "policy.attention"),
    ],
    ids=str,
)
def test_what_cannot_go_together_is_refused(tmp_path, changes, said):
    with pytest.raises(ParamsError, match=re.escape(said)):
        make_workspace(tmp_path, changes=changes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"evaluate.baselines": ["cuda_graph"], "judge.device": "cuda:0"}, id="graphs on a GPU"),
        pytest.param({"contrastive_rl.groups_at_once": 1, "judge.device": "cuda:1"}, id="a GPU for the judge alone"),
        pytest.param(
            {"contrastive_rl.groups_at_once": 1, "judge.device": "cuda", "judge.ray": "auto"}, id="judges of a cluster"
        ),
        # On a machine with a GPU the policy samples there, so that only the stage itself can tell.
        pytest.param({"contrastive_rl.groups_at_once": 1}, id="the processor for the judge"),
    ],
)
def test_what_goes_together_on_some_machine_is_not_refused(tmp_path, changes):
    make_workspace(tmp_path, changes=changes)


def test_what_is_refused_on_a_processor_is_what_the_judge_cannot_time_there():
    assert BASELINES_OF_GPUS == NEED_CUDA


def test_the_default_is_the_profile_for_the_processor(chosen):
    assert chosen("cpu") == load_params()


def test_the_small_model_is_as_large_as_it_is_said_to_be(chosen):
    assert 20e6 < shape_of(chosen("gpu-small")).parameters < 120e6


def test_one_command_chooses_a_profile(tmp_path):
    said = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "repro", "PROFILE=gpu-small", "SET=sft.steps=9 seed=1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()[-1]
    workspace, enter, mend, repro = said.split(" && ")
    assert (enter, mend, repro) == ("cd 'work/gpu-small'", "python -m flows.dvc_lock", "dvc repro")
    folder = tmp_path / "work" / "gpu-small"
    command = workspace.replace("'work/gpu-small'", f"'{folder}'").replace("python", sys.executable, 1)
    subprocess.run(command, shell=True, check=True)
    written = yaml.safe_load((folder / "params.yaml").read_text())
    assert (written["sft"]["steps"], written["seed"], written["policy"]["context_tokens"]) == (9, 1, 4096)


@pytest.mark.parametrize("profile", [[], ["PROFILE="]], ids=["none", "empty"])
def test_a_change_without_a_profile_is_refused_before_anything_runs(profile):
    refused = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "repro", *profile, "SET=sft.steps=9"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert 'make repro PROFILE=cpu SET="sft.steps=9"' in refused.stderr


def test_other_targets_do_not_mind_a_variable_of_that_name():
    subprocess.run(["make", "--dry-run", "only-tests", "SET=1"], capture_output=True, check=True)


def test_without_a_profile_the_project_itself_is_run():
    said = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "repro"], capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines()[-1] == "python -m flows.dvc_lock && dvc repro"
