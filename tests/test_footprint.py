"""What fits where: weights counted as transformers counts them, memory as the papers do, and the table made of both."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, DeepseekV3Config, LlamaConfig, Qwen2Config

from flows.cli import main
from flows.commands.fits import fits_table
from tasks.training.architectures import ARCHITECTURES, Architecture, Experts, Latent
from tasks.training.footprint import (
    Setup,
    activations_bytes,
    all_stages_bytes,
    cache_bytes,
    first_that_fits,
    footprint,
    sampling_bytes,
)

QWEN_7B = ARCHITECTURES["Qwen2.5-Coder-7B"]
LLAMA_70B = ARCHITECTURES["Llama-3.3-70B"]
DEEPSEEK = ARCHITECTURES["DeepSeek-V3"]
LLAMAS = [replace(LLAMA_70B, layers=layers) for layers in range(1, 81)]
GB = 1_000_000_000
ALONE = Setup(gpus=1, tokens=4096)


def on_meta(shape: Architecture) -> torch.nn.Module:
    """The model that transformers makes of the same numbers, without its weights."""
    common = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "tie_word_embeddings": shape.is_tied,
    }
    if shape.latent is None or shape.experts is None:
        config = Qwen2Config(**common) if shape.has_attention_bias else LlamaConfig(**common)
    else:
        config = DeepseekV3Config(
            **common,
            q_lora_rank=shape.latent.query_rank,
            kv_lora_rank=shape.latent.key_value_rank,
            qk_rope_head_dim=shape.latent.rotary_size,
            qk_nope_head_dim=shape.head_size,
            v_head_dim=shape.head_size,
            n_routed_experts=shape.experts.count,
            num_experts_per_tok=shape.experts.active,
            n_shared_experts=shape.experts.shared,
            moe_intermediate_size=shape.experts.intermediate,
            first_k_dense_replace=shape.experts.dense_layers,
        )
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


SMALL_EXPERTS = replace(
    DEEPSEEK,
    hidden=64,
    intermediate=96,
    layers=3,
    heads=4,
    key_value_heads=4,
    head_size=16,
    vocab=320,
    latent=Latent(query_rank=24, key_value_rank=16, rotary_size=8),
    experts=Experts(count=16, active=2, shared=2, intermediate=32, dense_layers=1),
)


@pytest.mark.parametrize("shape", [*ARCHITECTURES.values(), SMALL_EXPERTS], ids=lambda shape: f"{shape.parameters}")
def test_weights_are_counted_as_transformers_counts_them(shape):
    assert shape.parameters == on_meta(shape).num_parameters()


@pytest.mark.filterwarnings("ignore:.*(gradient_checkpointing|_pattern keys)")
@pytest.mark.parametrize("shape", [ARCHITECTURES["Qwen2.5-Coder-0.5B"], SMALL_EXPERTS], ids=["dense", "experts"])
def test_adapters_are_counted_as_peft_counts_them(shape):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(task_type="CAUSAL_LM", r=8, target_modules="all-linear")
    adapted = get_peft_model(on_meta(shape), config)
    trained = sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)
    assert shape.adapter_parameters(8) == trained


@pytest.mark.parametrize(
    ("billions", "gpus", "stage", "gigabytes"),
    [(7.5, 64, 1, 31.4), (7.5, 64, 2, 16.6), (7.5, 64, 3, 1.9), (1000, 1024, 3, 15.6), (128, 64, 2, 284.0)],
    ids=str,
)
def test_state_is_divided_as_in_the_table_of_the_paper(billions, gpus, stage, gigabytes):
    # ZeRO, arXiv:1910.02054, figure 1 and table 1: memory of weights, gradients and optimiser on each GPU.
    one = replace(QWEN_7B, vocab=1, layers=0, hidden=1)
    scaled = replace(one, vocab=round(billions * GB) // 2)
    taken = footprint(scaled, Setup(gpus=gpus, tokens=1, zero_stage=stage))
    state = taken.weights_bytes + taken.gradients_bytes + taken.optimiser_bytes
    assert state / GB == pytest.approx(gigabytes, rel=0.02)


def test_without_zero_a_weight_in_float32_takes_sixteen_bytes_and_the_copy_it_computes_with():
    taken = footprint(QWEN_7B, replace(ALONE, weights="float32"))
    state = taken.weights_bytes + taken.gradients_bytes + taken.optimiser_bytes
    assert state == 18 * QWEN_7B.parameters


def test_an_adapter_leaves_two_bytes_a_weight():
    taken = footprint(QWEN_7B, replace(ALONE, adapter_rank=16))
    assert taken.weights_bytes == 2 * QWEN_7B.parameters + 6 * QWEN_7B.adapter_parameters(16)
    assert taken.optimiser_bytes == 8 * QWEN_7B.adapter_parameters(16)


@pytest.mark.parametrize("offload", ["cpu", "nvme"])
def test_what_is_offloaded_leaves_the_gpu_and_is_not_lost(offload):
    setup = Setup(gpus=4, tokens=4096, zero_stage=3)
    kept, moved = footprint(QWEN_7B, setup), footprint(QWEN_7B, replace(setup, offload=offload))
    state = kept.weights_bytes + kept.gradients_bytes + kept.optimiser_bytes
    assert (moved.weights_bytes, moved.gradients_bytes, moved.optimiser_bytes) == (0, 0, 0)
    assert moved.host_bytes + moved.nvme_bytes == pytest.approx(state, abs=2)
    assert (moved.host_bytes > 0) == (offload == "cpu")


def test_a_layer_without_checkpointing_keeps_what_the_docstring_counts():
    h, q, k, f = QWEN_7B.hidden, QWEN_7B.query_width, QWEN_7B.key_value_width, QWEN_7B.intermediate
    token = 12 * h + 4 * h + 2 * (q + k) + 2 * q + 4 * QWEN_7B.heads + 8 * f
    assert activations_bytes(QWEN_7B, Setup(gpus=1, tokens=10, has_checkpointing=False)) == 10 * 28 * token
    assert activations_bytes(QWEN_7B, Setup(gpus=1, tokens=10)) == 10 * (28 * 2 * h + token)


@pytest.mark.parametrize(
    "less",
    [
        pytest.param({"gpus": 16}, id="more GPUs"),
        pytest.param({"tokens": 1024}, id="shorter contexts"),
        pytest.param({"offload": "cpu"}, id="offload"),
        pytest.param({"adapter_rank": 16}, id="adapters"),
    ],
)
@pytest.mark.parametrize("model", ARCHITECTURES.values(), ids=lambda model: model.name)
def test_it_takes_less_with(model, less):
    setup = Setup(gpus=8, tokens=4096, zero_stage=3)
    assert footprint(model, replace(setup, **less)).total_bytes < footprint(model, setup).total_bytes


def test_a_stage_of_zero_takes_less_than_the_one_before():
    totals = [footprint(QWEN_7B, Setup(gpus=8, tokens=512, zero_stage=stage)).total_bytes for stage in (1, 2, 3)]
    assert totals == sorted(totals, reverse=True)
    assert len(set(totals)) == 3


def test_sampling_holds_the_whole_model_and_under_zero_3_a_share_of_the_state_beside_it():
    sampling = partial(sampling_bytes, QWEN_7B, completions=4, prompt_tokens=3000, completion_tokens=1000)
    shared = Setup(gpus=8, tokens=4096, zero_stage=3)
    between, amid = sampling(shared, amid_training=False), sampling(shared, amid_training=True)
    assert between > 2 * QWEN_7B.parameters + cache_bytes(QWEN_7B, 4 * 4000)
    assert amid - between == pytest.approx(1.05 * 16 * QWEN_7B.parameters / 8, rel=1e-6)
    assert sampling(replace(shared, offload="cpu"), amid_training=True) == between
    assert sampling(replace(shared, weights="float32"), amid_training=False) > 1.9 * between


def test_all_stages_take_the_whole_model_of_every_gpu_however_many_share_it():
    many = Setup(gpus=4096, tokens=8192, zero_stage=3, offload="cpu")
    assert footprint(LLAMA_70B, many).total_bytes < 80 * GB
    assert all_stages_bytes(LLAMA_70B, many) > 2 * LLAMA_70B.parameters
    few = Setup(gpus=2, tokens=8192, zero_stage=3)
    assert all_stages_bytes(QWEN_7B, few) > footprint(QWEN_7B, few).total_bytes
    alone = replace(few, gpus=1, zero_stage=0, weights="float32")  # all is whole, so that learning takes the most
    assert all_stages_bytes(QWEN_7B, alone) == footprint(QWEN_7B, alone).total_bytes


def test_a_prompt_takes_as_much_as_an_answer_or_more():
    sampling = partial(sampling_bytes, QWEN_7B, ALONE, completions=1, amid_training=False)
    prompt = sampling(prompt_tokens=4000, completion_tokens=0)
    assert prompt > sampling(prompt_tokens=3000, completion_tokens=1000) > 0


def test_generation_keeps_keys_and_values_or_what_they_are_made_of():
    assert cache_bytes(QWEN_7B, 1) == 2 * 28 * 2 * 4 * 128
    assert cache_bytes(DEEPSEEK, 1) == 2 * 61 * (512 + 64)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpus": 0}, "positive"),
        ({"tokens": 0}, "positive"),
        ({"adapter_rank": 0}, "positive"),
        ({"offload": "cpu"}, "offload needs"),
        ({"zero_stage": 2, "offload": "nvme"}, "nvme needs"),
    ],
    ids=str,
)
def test_a_setup_that_cannot_be_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(ALONE, **changes)


def test_the_first_setup_that_fits_is_chosen_and_none_if_none_does():
    setups = [Setup(gpus=count, tokens=8192, zero_stage=3, offload="cpu") for count in (1, 2, 4)]
    ample = {"memory_bytes": 80 * GB, "host_memory_bytes": 999 * GB}
    assert first_that_fits(QWEN_7B, setups, **ample) == setups[0]
    assert first_that_fits(QWEN_7B, setups, **ample | {"host_memory_bytes": 70 * GB}) == setups[1]
    assert first_that_fits(QWEN_7B, setups, **ample | {"memory_bytes": 1 * GB}) is None


def test_a_setup_that_fits_learning_may_not_fit_all_stages():
    setups = [Setup(gpus=count, tokens=8192, zero_stage=3) for count in (2, 4)]
    fits = partial(first_that_fits, setups=setups, memory_bytes=80 * GB, host_memory_bytes=0)
    assert fits(QWEN_7B) == setups[0]
    assert fits(QWEN_7B, samples=True) == setups[1]
    assert fits(ARCHITECTURES["Qwen2.5-Coder-14B"]) == setups[1]
    assert fits(ARCHITECTURES["Qwen2.5-Coder-14B"], samples=True) is None


def test_the_command_prints_a_row_for_every_model_and_way(capsys):
    assert main(["fits", "--memory-gb", "80", "--context", "4096"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 4 * len(ARCHITECTURES)
    assert rows[0][-2:] == ["80 GB, sft", "80 GB, all stages |"]
    whole = {row[0].removeprefix("| "): row[-2:] for row in rows if row[2] == "whole"}
    assert whole["Qwen2.5-Coder-1.5B"] == ["1", "1 |"]
    assert whole["Llama-3.3-70B"][-1] == "- |"


@pytest.mark.parametrize("number", ["0", "-3", "80.5"])
@pytest.mark.parametrize("option", ["--memory-gb", "--host-gb", "--context", "--rank"])
def test_numbers_that_make_no_sense_are_wrong_usage(capsys, option, number):
    with pytest.raises(SystemExit) as ended:
        main(["fits", option, number])
    assert ended.value.code == 2
    assert f"argument {option}: '{number}' is not a number above 0" in capsys.readouterr().err


def test_the_table_in_the_documentation_is_the_command_s():
    assert fits_table() in Path("docs/training.md").read_text()


def test_the_largest_models_in_the_documentation_are_the_formula_s():
    text = " ".join(Path("docs/training.md").read_text().split())
    largest = {}
    for offload, gpus in (("cpu", 1), ("none", 128)):
        setup = Setup(gpus=gpus, tokens=8192, zero_stage=3, offload=offload)
        taken = {shape.parameters: all_stages_bytes(shape, setup) for shape in LLAMAS}
        largest[offload] = [
            round(max(weights for weights, peak in taken.items() if peak <= memory * GB) / GB)
            for memory in (24, 80, 141)
        ]
    assert "{} billion weights on GPUs of 24 GB, {} on 80 GB and {} on 141 GB".format(*largest["cpu"]) in text
    assert "it has {}, {} and {} billion".format(*largest["none"]) in text
    alone = Setup(gpus=1, tokens=8192, zero_stage=3, offload="cpu")
    needed = [-(-all_stages_bytes(ARCHITECTURES[name], alone) // GB) for name in ("Llama-3.3-70B", "Qwen2.5-72B")]
    assert "needs GPUs of {} GB, Qwen2.5-72B of {} GB".format(*needed) in text
