"""What training leaves on a disk: the bytes of a weight in small checkpoints, and the table of what large ones take."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from flows.engine import run_stage
from flows.self_supervised import self_supervised
from flows.sft import sft
from tasks.params import AdapterParams
from tasks.training.architectures import ARCHITECTURES
from tests.pretrained_builders import pretrained
from tests.stage_runs import CLOSED, workspace, write_rows, write_taught
from tests.test_pretrained import loaded
from tests.test_several_processes import rows, run
from tests.test_sft import train
from tests.training_builders import policy

GB = 1_000_000_000
RANK = 64
# Of a weight that is trained. Weights and moments without ZeRO; under ZeRO-3 on GPUs bfloat16, and in float32 a copy
# and moments.
ALONE_BYTES, ZERO_3_BYTES = 4 + 8, 2 + 12


def size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("way", ["whole", "adapters"])
def test_a_checkpoint_takes_twelve_bytes_of_each_weight_that_is_trained(tmp_path, way):
    made = policy(hidden_size=128)
    if way == "adapters":
        adapter = AdapterParams(rank=RANK, alpha=8)
        made = loaded(pretrained(tmp_path / "base"), weights="bfloat16", adapter=adapter)
    train(tmp_path / "run", made=made, steps=1)
    weights = sum(weight.numel() for weight in made.model.parameters() if weight.requires_grad)
    saved = size([*tmp_path.glob("run/checkpoint-1/*.safetensors"), tmp_path / "run/checkpoint-1/optimizer.pt"])
    assert saved / weights == pytest.approx(ALONE_BYTES, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize(("zero_stage", "whole_bytes"), [(2, 4), (3, 0)])
def test_zero_keeps_twelve_bytes_of_a_weight_beside_the_model_and_below_3_the_model_again(
    tmp_path, zero_stage, whole_bytes
):
    rows(run("sft", {"processes": 2, "zero_stage": zero_stage}, tmp_path))
    weights = policy(hidden_size=32).model.num_parameters()
    state = tmp_path / "sft" / "checkpoint-4" / "global_step4"
    # Without a GPU the model is in float32 there; on one, in bfloat16.
    assert size(state.glob("*optim_states.pt")) / weights == pytest.approx(12, rel=0.3)
    assert size(state.glob("*model_states.pt")) / weights == pytest.approx(whole_bytes, abs=1)


def test_an_iteration_removes_the_checkpoint_of_the_one_before(tmp_path, monkeypatch):
    root = workspace(tmp_path, sft__steps=1, self_supervised__iterations=2, self_supervised__steps=1)
    write_taught(root)
    write_rows(root / "data/filter_variants/verdicts.jsonl", [])
    monkeypatch.chdir(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    run_stage("sft", sft)
    run_stage("self_supervised", self_supervised)
    (checkpoint,) = root.glob("work/self_supervised/*/checkpoints-*/checkpoint-1")
    assert checkpoint.parent.name == "checkpoints-2"
    assert len([*root.glob("work/self_supervised/*/policy-*")]) == 2


@pytest.mark.parametrize(("name", "way"), [("7B", "adapters"), ("7B", "whole"), ("32B", "whole")])
def test_what_stages_leave_on_a_disk_is_in_the_documentation(name, way):
    model = ARCHITECTURES[f"Qwen2.5-Coder-{name}"]
    if way == "adapters":
        weights, handed, policy_bytes, state_bytes = model.adapter_parameters(RANK), 0, 4, ALONE_BYTES
    else:
        weights, handed, policy_bytes, state_bytes = model.parameters, 2 * model.parameters, 2, ZERO_3_BYTES
    written, checkpoint = policy_bytes * weights, state_bytes * weights
    sft = handed + checkpoint + 3 * written
    # While the second iteration learns there are the first's policy, and two checkpoints at a time.
    learning = handed + 2 * checkpoint + written
    self_supervised = handed + checkpoint + 5 * written
    contrastive_rl = handed + max(2 * checkpoint, checkpoint + 3 * written)
    kept = max(sft + learning, sft + self_supervised + contrastive_rl)
    # Of a stage before, what DVC has.
    removed = max(sft, 2 * written + max(learning, self_supervised), 4 * written + contrastive_rl)
    sizes = (2 * model.parameters, written, handed, checkpoint, removed, kept)
    row = " | ".join(f"{float(f'{num_bytes / GB:.3g}'):,g}" for num_bytes in sizes)
    assert f"| {name}, {way} | {row} |" in Path("docs/training.md").read_text()
