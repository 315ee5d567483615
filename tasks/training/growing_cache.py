"""Room for a model's keys and values while it samples, set aside once for all tokens of a batch."""

from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, LinearAttentionLayer


def growing_cache(model: PreTrainedModel, capacity: int) -> DynamicCache:
    """A cache of that many tokens for rows that are yet to come."""
    cache = DynamicCache(config=model.config)
    # Layers of other kinds (sliding windows, linear attention) know best how to keep their own state.
    cache.layers = [_GrowingLayer(capacity) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def can_be_fixed(cache: DynamicCache) -> bool:
    """Whether every layer can write a token's state in place, at a position that only the device knows."""
    return all(type(layer) in (_GrowingLayer, LinearAttentionLayer) for layer in cache.layers)


def fix(cache: DynamicCache, at: Tensor, num_columns: int) -> None:
    """From now on write one token at a time, and show always as many columns, written or not.

    Args:
        at: [1], the column of the next token; read on the device whenever a token is written.
        num_columns: of keys and values that are shown; a mask has to hide those that are not written yet.
    """
    for layer in cache.layers:
        if isinstance(layer, _GrowingLayer):
            layer.fix(at, num_columns)


class _GrowingLayer(DynamicLayer):
    """Keys and values in room set aside once: a token's are written in place, where DynamicLayer copies all of them."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity
        self._length = 0
        self._at: Tensor | None = None

    def fix(self, at: Tensor, num_columns: int) -> None:
        if self._at is None:  # what a mask hides still takes part with a weight of zero, which makes NaN of infinity
            self._keys[:, :, self._length :] = 0
            self._values[:, :, self._length :] = 0
        self._at = at
        self._length = num_columns
        self._show()

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            batch, heads, _tokens, key_size = key_states.shape
            self._keys = key_states.new_empty(batch, heads, self._capacity, key_size)
            self._values = value_states.new_empty(batch, heads, self._capacity, value_states.shape[-1])
        if self._at is not None:
            self._keys.index_copy_(2, self._at, key_states)
            self._values.index_copy_(2, self._at, value_states)
            return self._show()
        start, self._length = self._length, self._length + key_states.shape[-2]
        self._keys[:, :, start : self._length] = key_states
        self._values[:, :, start : self._length] = value_states
        return self._show()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self._keys = self._keys[beam_idx]
        self._values = self._values[beam_idx]
        self._show()

    def _show(self) -> tuple[Tensor, Tensor]:
        self.keys, self.values = self._keys[:, :, : self._length], self._values[:, :, : self._length]
        return self.keys, self.values
