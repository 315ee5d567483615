"""Models of transformers as policies: whole and with adapters, saved, loaded, resumed and through the stages."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from pretrained_builders import POSITIONS, pretrained
from stage_runs import CLOSED, PROBLEM_ID, workspace, write_rows, write_taught

from flows.engine import run_stage
from flows.parts.sampling import draw
from flows.self_supervised import self_supervised
from flows.sft import sft
from tasks.errors import MachineError, PolicyError
from tasks.params import AdapterParams
from tasks.training import checkpoints as checkpointing
from tasks.training.adapters import within
from tasks.training.policy import encode_prompt, load_policy, save_policy
from tasks.training.sampling import sample
from tests.test_grpo import train as train_grpo
from tests.test_sft import Killed, train
from tests.training_builders import policy_params

ADAPTER = AdapterParams(rank=4, alpha=8)
WAYS = {"whole": None, "adapter": ADAPTER}


def loaded(folder: Path, **changes: object):
    return load_policy(folder, policy_params(prompt_style="instruct", **changes))


def logits(made) -> torch.Tensor:
    with torch.no_grad():
        return made.model(input_ids=torch.tensor([made.tokenizer("x = x + 1").input_ids])).logits


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
def test_what_was_trained_is_saved_and_loaded_again(tmp_path, architecture, way):
    base = pretrained(tmp_path / "base", architecture)
    made = loaded(base, adapter=WAYS[way])
    before = logits(made)
    train(tmp_path / "run", made=made, steps=6, learning_rate=1e-2)
    assert not torch.equal(logits(made), before)
    save_policy(made, tmp_path / "policy")
    again = loaded(tmp_path / "policy", adapter=WAYS[way])
    assert torch.equal(logits(again), logits(made))
    assert again.end_ids == made.end_ids
    assert encode_prompt(again, "faster") == encode_prompt(made, "faster")
    train(tmp_path / "more", made=again, steps=2, learning_rate=1e-2)
    assert not torch.equal(logits(again), logits(made))


def test_a_new_adapter_changes_nothing_and_trains_little(tmp_path):
    base = pretrained(tmp_path / "base")
    whole, made = loaded(base), loaded(base, adapter=ADAPTER)
    assert torch.equal(logits(made), logits(whole))
    trained = sum(weight.numel() for weight in made.model.parameters() if weight.requires_grad)
    assert 0 < trained < 0.3 * whole.model.num_parameters()


def test_only_the_adapter_is_saved_beside_the_name_of_its_model(tmp_path):
    base = pretrained(tmp_path / "base")
    save_policy(loaded(base, adapter=ADAPTER), tmp_path / "policy")
    names = {path.name for path in (tmp_path / "policy").iterdir()}
    assert "adapter_model.safetensors" in names
    assert "model.safetensors" not in names
    assert json.loads((tmp_path / "policy/adapter_config.json").read_text())["base_model_name_or_path"] == str(base)


def test_an_adapter_is_loaded_whatever_params_ask_for(tmp_path):
    made = loaded(pretrained(tmp_path / "base"), adapter=ADAPTER)
    train(tmp_path / "run", made=made, steps=4, learning_rate=1e-2)
    save_policy(made, tmp_path / "policy")
    assert torch.equal(logits(loaded(tmp_path / "policy")), logits(made))


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_training_goes_on_to_the_same_losses(tmp_path, monkeypatch, way):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    base = pretrained(tmp_path / "base")
    whole, _ = train(tmp_path / "whole", made=loaded(base, adapter=WAYS[way]), steps=6)
    with pytest.raises(Killed):
        train(tmp_path / "killed", made=loaded(base, adapter=WAYS[way]), steps=6, kill_after=4)
    resumed, seen = train(tmp_path / "killed", made=loaded(base, adapter=WAYS[way]), steps=6)
    assert seen == [4, 5, 6]
    assert resumed == whole


@pytest.mark.parametrize("way", WAYS)
def test_checkpointed_activations_change_no_loss(tmp_path, way):
    base = pretrained(tmp_path / "base")
    stored, computed = (
        train(tmp_path / str(again), made=loaded(base, adapter=WAYS[way], gradient_checkpointing=again), steps=3)[0]
        for again in (False, True)
    )
    assert [row["loss"] for row in computed] == pytest.approx([row["loss"] for row in stored], rel=1e-5)


def test_a_policy_with_an_adapter_samples(tmp_path):
    whole, made = (loaded(pretrained(tmp_path / "base"), adapter=adapter) for adapter in WAYS.values())
    answers = [
        sample(policy, ["# a\n"], num_samples=2, temperature=1.0, seed=0, batch_size=2) for policy in (whole, made)
    ]
    assert answers[0] == answers[1]


def test_a_model_may_be_held_in_half_the_memory(tmp_path):
    made = loaded(pretrained(tmp_path / "base"), weights="bfloat16", adapter=ADAPTER)
    types = {weight.dtype for weight in made.model.parameters() if not weight.requires_grad}
    trained = {weight.dtype for weight in made.model.parameters() if weight.requires_grad}
    assert (types, trained) == ({torch.bfloat16}, {torch.float32})


def _without_its_weights(folder: Path) -> None:
    (folder / "adapter_model.safetensors").unlink()


def _of_no_model(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def _without_its_model(folder: Path) -> None:
    shutil.rmtree(folder.parent / "base")


def _of_another_shape(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"r": 8}))


def _of_an_unknown_kind(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"peft_type": "NONE"}))


def _with_cut_off_weights(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_without_its_weights, "lacks adapter_model.safetensors"),
        (_of_no_model, "does not say which model"),
        (_without_its_model, "no model at .*base"),
        (_of_another_shape, "cannot be laid over its model"),
        (_of_an_unknown_kind, "cannot be laid over its model"),
        (_with_cut_off_weights, "cannot be laid over its model"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_an_adapter_that_cannot_be_used_is_refused(tmp_path, damage, said):
    save_policy(loaded(pretrained(tmp_path / "base"), adapter=ADAPTER), tmp_path / "policy")
    damage(tmp_path / "policy")
    with pytest.raises(PolicyError, match=said):
        loaded(tmp_path / "policy", adapter=ADAPTER)


def test_layers_that_a_model_lacks_cannot_be_adapted(tmp_path):
    adapter = AdapterParams(rank=4, alpha=8, targets=("query_key_value",))
    with pytest.raises(PolicyError, match=r"policy\.adapter does not fit qwen2.*query_key_value"):
        loaded(pretrained(tmp_path / "base"), adapter=adapter)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MachineError, match="needs the library peft"):
        loaded(pretrained(tmp_path / "base"), adapter=ADAPTER)


def test_contexts_longer_than_a_model_was_made_for_are_not_trained(tmp_path):
    base = pretrained(tmp_path / "base")
    train(tmp_path / "run", made=loaded(base, context_tokens=POSITIONS), steps=1)
    with pytest.raises(PolicyError, match=rf"context_tokens is {POSITIONS + 1}, but .* made for {POSITIONS} positions"):
        train(tmp_path / "run", made=loaded(base, context_tokens=POSITIONS + 1), steps=1)


def test_attention_that_this_machine_cannot_compute_is_refused(tmp_path):
    with pytest.raises(PolicyError, match=r"policy\.attention: qwen2 cannot be computed with 'flash_attention_3'"):
        loaded(pretrained(tmp_path / "base"), attention="flash_attention_3")


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_learns_from_rewards(tmp_path, way):
    base = pretrained(tmp_path / "base")
    made = loaded(base, adapter=WAYS[way], context_tokens=POSITIONS, gradient_checkpointing=True)
    before = logits(made)
    made.model.generation_config.eos_token_id = list(range(60, 200))
    rows, steps = train_grpo(tmp_path / "run", made=made, steps=2, kl_beta=0.1)
    assert [row["step"] for row in rows] == [1, 2]
    assert rows[0]["kl"] == pytest.approx(0.0, abs=1e-5)
    assert len(steps) == 2
    assert not torch.equal(logits(made), before)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_rewarded_is_compared_without_dropout(tmp_path, way):
    adapter = AdapterParams(rank=4, alpha=8, dropout=0.5) if way == "adapter" else None
    made = loaded(pretrained(tmp_path / "base"), adapter=adapter, context_tokens=POSITIONS, attention="eager")
    if way == "whole":
        for layer in within(made.model).model.layers:
            layer.self_attn.attention_dropout = 0.5
    train(tmp_path / "taught", made=made, steps=4, learning_rate=1e-2)  # a new adapter changes nothing at first
    made.model.generation_config.eos_token_id = list(range(60, 200))
    rows, _ = train_grpo(tmp_path / "run", made=made, steps=1, kl_beta=0.1)
    assert rows[0]["kl"] == pytest.approx(0.0, abs=1e-6)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Makes a small workspace whose policy is the model given, with something taught, and enters it."""

    def make(architecture: str, **changes: object) -> Path:
        root = workspace(
            tmp_path,
            policy__model=str(pretrained(tmp_path / "base", architecture)),
            policy__prompt_style="instruct",
            policy__context_tokens=POSITIONS,
            policy__completion_tokens=160,
            policy__threads=1,
            sft__steps=2,
            **changes,
        )
        write_taught(root)
        write_rows(root / "data/filter_variants/verdicts.jsonl", [])
        monkeypatch.chdir(root)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
        monkeypatch.delenv("PREFECT_API_URL", raising=False)
        return root

    return make


def test_the_stages_train_adapters_one_after_another(project):
    root = project(
        "qwen2",
        policy__adapter={"rank": 4, "alpha": 8},
        sft__packing=True,
        self_supervised__iterations=1,
        self_supervised__samples_per_problem=1,
        self_supervised__steps=2,
    )
    run_stage("sft", sft)
    run_stage("self_supervised", self_supervised)
    drawn = [json.loads(line) for line in Path("data/self_supervised/candidates.jsonl").read_text().splitlines()]
    assert {row["problem_id"] for row in drawn} == {PROBLEM_ID}
    first, second = (
        loaded(root / "data" / name / "policy", context_tokens=POSITIONS) for name in ("sft", "self_supervised")
    )
    assert second.tokenizer.chat_template
    assert not torch.equal(logits(first), logits(second))


def test_every_iteration_draws_anew_even_where_training_changes_next_to_nothing(project, monkeypatch):
    project(
        "qwen2",
        self_supervised__iterations=2,
        self_supervised__exemplar_share=0.0,
        self_supervised__samples_per_problem=4,
        self_supervised__learning_rate=1e-12,
        self_supervised__steps=1,
    )
    drawn = []

    def draw_and_note(*arguments, **named):
        drawn.append(draw(*arguments, **named))
        return drawn[-1]

    monkeypatch.setattr("flows.self_supervised.draw", draw_and_note)
    run_stage("sft", sft)
    run_stage("self_supervised", self_supervised)
    first, second = ({each.completion for each in draws} for draws in drawn)
    assert len(first) == len(second) == 4
    assert not first & second


def test_a_stage_trains_a_whole_model_of_another_kind(project):
    root = project("llama", sft__micro_batch_size=2)
    run_stage("sft", sft)
    assert loaded(root / "data/sft/policy", context_tokens=POSITIONS).model.config.model_type == "llama"
