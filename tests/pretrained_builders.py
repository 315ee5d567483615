"""Tiny models of known architectures on disk, as if they had been downloaded: our tokenizer, a chat template."""

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PretrainedConfig, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from tests.training_builders import policy

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
ARCHITECTURES: dict[str, tuple[type[PretrainedConfig], type[PreTrainedModel]]] = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}
POSITIONS = 2048


def pretrained(folder: Path, architecture: str = "qwen2") -> Path:
    """A folder with config.json, safetensors and a tokenizer; equal calls write equal weights."""
    tokenizer = policy(prompt_style="instruct").tokenizer
    tokenizer.chat_template = CHAT_TEMPLATE
    config, model = ARCHITECTURES[architecture]
    torch.manual_seed(0)
    model(
        config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=POSITIONS,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
