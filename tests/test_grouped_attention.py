"""A token being written attends for heads that share keys at once, to what it attends to for each by itself."""

import pytest
import torch
from torch import nn
from transformers import AttentionInterface

from tasks.training import decoding, grouped_attention
from tests.test_sampling_fixed_steps import completions, made

ROWS, COLUMNS, SIZE = 3, 20, 16


@pytest.mark.parametrize(("heads", "key_heads"), [(6, 2), (4, 1), (4, 4)])
def test_it_is_the_attention_of_every_head_by_itself(heads, key_heads):
    torch.manual_seed(0)
    query = torch.randn(ROWS, 1, heads, SIZE).transpose(1, 2)  # as layers hand it over
    key, value = (torch.randn(ROWS, key_heads, COLUMNS + 4, SIZE)[:, :, :COLUMNS] for _ in range(2))
    seen = torch.rand(ROWS, 1, 1, COLUMNS) < 0.7
    found, weights = grouped_attention.grouped_attention(nn.Module(), query, key, value, seen, scaling=0.3)
    per_head = (states.repeat_interleave(heads // key_heads, dim=1) for states in (key, value))
    expected = nn.functional.scaled_dot_product_attention(query, *per_head, attn_mask=seen, scale=0.3)
    assert weights is None
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-6)


def test_fixed_steps_attend_so_and_what_comes_after_does_not(monkeypatch):
    key_heads: list[int] = []
    attend = grouped_attention.grouped_attention

    def noted(module, query, key, *others, **named):
        key_heads.append(key.shape[1])
        return attend(module, query, key, *others, **named)

    monkeypatch.setitem(AttentionInterface._global_mapping, grouped_attention._GROUPED, noted)
    monkeypatch.setattr(decoding, "takes_fixed_steps", lambda model, cache: decoding.can_be_fixed(cache))
    small = made("qwen2")
    attention = small.model.config._attn_implementation
    completions(small)
    assert set(key_heads) == {2}  # of the model's four heads
    assert small.model.config._attn_implementation == attention
