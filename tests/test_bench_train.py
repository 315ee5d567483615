"""The training benchmark: what it counts, what it runs where, and one of its points for real at toy size."""

import json
import subprocess
import sys

import pytest

from flows.benches.train import main, points, table
from tasks.training.architectures import ARCHITECTURES
from tasks.training.throughput import peak_flops, training_flops

ABSENT_ON_A_GPU_MACHINE = ("prefect", "dvc", "polars", "mlflow", "duckdb", "plotly", "libcst", "openai", "fastapi")


def test_every_point_of_ours_has_plain_trl_beside_it():
    found = points(None, "cuda")
    assert len({point.name for point in found}) == len(found)
    trl = {(point.work, point.size, point.gpus, point.adapter) for point in found if point.side == "trl"}
    assert {(point.work, point.size, point.gpus, point.adapter) for point in found if point.side == "ours"} == trl
    assert all(point.checkpointing for point in found if point.side == "trl")  # its default


def test_flops_are_six_for_each_weight_and_token_and_those_of_attention():
    model = ARCHITECTURES["Qwen2.5-Coder-1.5B"]
    bare = training_flops(model, attended_tokens=0.0, scored_share=1.0)
    assert bare == pytest.approx(6 * model.parameters, rel=1e-3)  # but for norms and biases: the embedding is the head
    per_token = training_flops(model, attended_tokens=1000.0, scored_share=1.0) - bare
    assert per_token == 6 * model.layers * model.hidden * 1000
    without_head = training_flops(model, attended_tokens=0.0, scored_share=0.0)
    assert bare - without_head == 6 * model.embedding_parameters
    frozen = training_flops(model, attended_tokens=0.0, scored_share=1.0, trains_adapters=True)
    assert frozen == pytest.approx(bare * 2 / 3)


@pytest.mark.parametrize(
    ("device", "peak"),
    [
        pytest.param("NVIDIA H100 80GB HBM3", 989e12, id="H100 SXM"),
        pytest.param("NVIDIA H100 PCIe", 756e12, id="H100 PCIe"),
        pytest.param("NVIDIA H200", 989e12, id="H200"),
        pytest.param("NVIDIA GeForce RTX 4090", None, id="not listed"),
    ],
)
def test_the_peak_is_that_of_the_chip(device, peak):
    assert peak_flops(device) == peak


def test_it_needs_no_orchestrator_and_no_database():
    absent = "".join(f"sys.modules[{name!r}] = None\n" for name in ABSENT_ON_A_GPU_MACHINE)
    program = f"import sys\n{absent}import flows.benches.train_point, tasks.training.sft, tasks.training.grpo"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_a_point_leaves_a_record_and_is_not_run_again(tmp_path, capsys):
    arguments = ["--size", "tiny", "--device", "cpu", "--only", "sft-tiny-2-at-once-1gpu-ours", "--out", str(tmp_path)]
    main(arguments)
    record = json.loads((tmp_path / "sft-tiny-2-at-once-1gpu-ours.json").read_text())
    assert record["tokens_per_s"] == pytest.approx(record["tokens_per_step"] / record["step_s"])
    assert record["step_s"] == pytest.approx(sum(record["steps_s"]) / len(record["steps_s"]))
    assert record["device"] == "cpu"
    assert record["mfu"] is None
    (tmp_path / "sft-tiny-2-at-once-1gpu-ours.log").unlink()
    main(arguments)
    assert not (tmp_path / "sft-tiny-2-at-once-1gpu-ours.log").exists()
    assert f"| {record['name']} | cpu |" in table([record])


def test_a_point_that_fails_or_takes_too_long_leaves_no_record(tmp_path, capsys):
    main(["--size", "tiny", "--device", "cpu", "--only", "sft-tiny-1gpu-trl", "--out", str(tmp_path), "--limit-s", "1"])
    assert "stopped after 1 s" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))
