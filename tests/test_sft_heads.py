"""The loss that is trained on is the model's own, also of models that scale or cap what their head gives."""

import dataclasses
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, CohereConfig, Gemma2Config, GraniteConfig, Qwen2Config

from tasks.training.examples import Example
from tasks.training.policy import encode_prompt
from tests.test_sft import train
from tests.training_builders import policy

SIZES = {
    "vocab_size": 420,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "initializer_range": 0.5,
}


@pytest.mark.parametrize(
    "config",
    [
        Qwen2Config(**SIZES),
        Gemma2Config(**SIZES, final_logit_softcapping=3.0),
        GraniteConfig(**SIZES, logits_scaling=8.0),
        CohereConfig(**SIZES, logit_scale=0.0625),
    ],
    ids=lambda config: config.model_type,
)
@pytest.mark.usefixtures("full_precision")
def test_the_loss_is_that_of_the_models_own_logits(config, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).float()
    made = dataclasses.replace(policy(), model=model)
    examples = [Example(prompt="# a\n", completion="return a"), Example(prompt="# sum\n", completion="return a + b")]
    losses = []
    for example in examples:
        ids = encode_prompt(made, example.prompt)
        answer = [*made.tokenizer(example.completion).input_ids, made.tokenizer.eos_token_id]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids + answer])).logits[0, len(ids) - 1 : -1]
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(answer), reduction="sum"))
        losses.append(torch.tensor(float(len(answer))))
    expected = float(sum(losses[::2]) / sum(losses[1::2]))
    rows, _ = train(tmp_path, made=made, examples=examples, steps=1, batch_size=2)
    assert rows[0]["loss"] == pytest.approx(expected, rel=1e-4)
