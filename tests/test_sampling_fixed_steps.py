"""Steps in tensors that stay where they are write what the growing ones write, and on a GPU they are captured."""

import dataclasses
from collections.abc import Iterator

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tasks.training import decoding
from tasks.training.policy import Policy, encode_prompt
from tasks.training.sampling import sample_ids
from tests.training_builders import SCALED, SCALED_IN_PLACE, policy

PROMPTS = ["import torch\n", SCALED, "x", SCALED_IN_PLACE]
KINDS = sorted(decoding._CAPTURED_KINDS)


def made(kind: str, device: str = "cpu") -> Policy:
    """A policy of that kind, with random weights that make its choices clear."""
    small = policy()
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(small.tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        layer_types=["conv" if kind == "lfm2" else "full_attention", "full_attention"],
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=small.context_tokens,
        pad_token_id=small.tokenizer.pad_token_id,
        eos_token_id=small.tokenizer.eos_token_id,
    )
    model = AutoModelForCausalLM.from_config(config).to(device)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8.0 if parameter.dim() > 1 else 1.0)
    return dataclasses.replace(small, model=model)


def completions(small: Policy, temperature: float | None = 1.0) -> list[list[list[int]]]:
    ids = [encode_prompt(small, prompt) for prompt in PROMPTS]
    return sample_ids(small, ids, num_samples=3, temperature=temperature, seed=1, batch_size=8)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let steps be fixed wherever they can be, of few columns so that there are several widths; how many were run."""
    run, seen = decoding.FixedStep.run, []

    def counted(self: decoding.FixedStep, tokens: torch.Tensor) -> torch.Tensor:
        seen.append(self.num_columns)
        return run(self, tokens)

    monkeypatch.setattr(decoding.FixedStep, "run", counted)
    monkeypatch.setattr(decoding, "_COLUMNS", 24)
    return seen


@pytest.fixture
def not_numbers() -> Iterator[None]:
    """Let memory that nobody wrote be full of NaN, as torch does where all is to be deterministic."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("not_numbers")
def test_fixed_steps_write_what_growing_ones_write(kind, calls, monkeypatch):
    small = made(kind)
    small.model.generation_config.eos_token_id = list(range(0, len(small.tokenizer), 9))  # rows end at different times
    expected = completions(small)
    assert calls == []
    assert len({len(ids) for group in expected for ids in group}) > 3
    monkeypatch.setattr(decoding, "takes_fixed_steps", lambda model, cache: decoding.can_be_fixed(cache))
    assert completions(small) == expected
    assert len(set(calls)) > 1


@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_captured_steps_write_what_growing_ones_write(kind, temperature, calls, monkeypatch):
    small = made(kind, "cuda")
    small.model.generation_config.eos_token_id = list(range(0, len(small.tokenizer), 9))
    captured = completions(small, temperature)
    assert len(set(calls)) > 1
    monkeypatch.setattr(decoding, "takes_fixed_steps", lambda model, cache: False)
    assert completions(small, temperature) == captured


def test_what_is_unknown_or_on_a_processor_grows_as_before():
    cache = decoding.growing_cache(made("llama").model, 8)
    assert decoding.can_be_fixed(cache)
    assert not decoding.takes_fixed_steps(made("llama").model, cache)
