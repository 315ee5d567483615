"""Attention of a token being written, where several heads share their keys and values."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

_GROUPED = "grouped_heads"


def grouped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """What one new token of every row attends to.

    Heads that share keys attend like as many tokens of one head, since there is but one token: keys and values are read
    once, where the attention of transformers copies them for every head.

    Args:
        query: [rows, heads, 1, size].
        key, value: [rows, key heads, columns, size].
        attention_mask: [rows, 1, 1, columns], true where a column is seen.

    Returns:
        [rows, 1, heads, size], and no weights.
    """
    rows, heads, _one, size = query.shape
    shared = query.reshape(rows, key.shape[1], -1, size)
    found = nn.functional.scaled_dot_product_attention(shared, key, value, attn_mask=attention_mask, scale=scaling)
    return found.reshape(rows, 1, heads, size), None


AttentionInterface.register(_GROUPED, grouped_attention)
AttentionMaskInterface.register(_GROUPED, sdpa_mask)


@contextmanager
def grouped_heads(model: PreTrainedModel) -> Iterator[None]:
    """The model attends so, with one token a row and a mask of four dimensions."""
    attention = model.config._attn_implementation
    model.set_attn_implementation(_GROUPED)
    try:
        yield
    finally:
        model.set_attn_implementation(attention)
