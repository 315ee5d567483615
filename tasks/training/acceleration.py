"""What makes a training step fast and changes nothing but the rounding within it.

On a processor, oneDNN computes products of matrices as it likes best, and may round their operands to bfloat16 where
there are instructions for that; weights and sums stay float32.

On a GPU, examples that are packed end to end attend through the flash kernel that PyTorch carries, which is told where
each of them begins: no padding is computed, and no mask of [tokens, tokens] is made. Layers may be compiled, which
fuses what lies between their matrix products. The head's logits are computed in tiles, by TRL or, for supervised
training, in another order (tasks/training/head.py).
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import flash_attention_mask

_PACKED = "packed_rows"  # with "flash" in it, transformers would look for a kernel of that name
_LEFT_ONLY = (-1, 0)


@contextmanager
def accelerated(model: PreTrainedModel, *, packing: bool, compiles: bool) -> Iterator[None]:
    """The model as fast as this machine makes it, for training alone: it writes completions as before and after.

    Args:
        packing: whether batches are single rows of examples laid end to end; for a GPU.
        compiles: whether layers are compiled, which takes a minute or two and pays off for long trainings; for a GPU.
    """
    # Not where the weights are: under ZeRO they may be in the host's memory until they have been shared out.
    on_gpu = torch.cuda.is_available()
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if on_gpu else "medium")
    try:
        with _accelerated_on_a_gpu(model, packing=packing, compiles=compiles) if on_gpu else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(precision)


@contextmanager
def _accelerated_on_a_gpu(model: PreTrainedModel, *, packing: bool, compiles: bool) -> Iterator[None]:
    attention = model.config._attn_implementation
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)] if compiles else []
    # Whoever gave a layer a forward of its own, as accelerate does to fetch weights, is to find it there again.
    layers = [layer for layer in {layer: None for layers in lists for layer in layers} if "forward" not in vars(layer)]
    try:
        if packing and attention == "sdpa" and attends_plainly(model) and (kernel := packed_kernel()) is not None:
            attend_packed(model, kernel)
        for layer in layers:
            # Not the layer, whose hooks would be compiled with it: those by which DeepSpeed fetches weights are others
            # for every layer, and so each would be compiled anew, until PyTorch gives up.
            # Of the class, bound to the layer: a copy of the layer then computes with its own weights.
            layer.forward = MethodType(torch.compile(type(layer).forward, dynamic=True), layer)
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)
        model.set_attn_implementation(attention)


def attends_plainly(model: PreTrainedModel) -> bool:
    """Whether all attention is to everything before, with nothing done to its scores: the kernel can do no other."""
    config = model.config.get_text_config()
    return (
        set(getattr(config, "layer_types", None) or ()) <= {"full_attention", "conv"}
        and (getattr(config, "sliding_window", None) is None or not getattr(config, "use_sliding_window", True))
        and getattr(config, "attn_logit_softcapping", None) is None
        and not any(name.endswith("sinks") for name, _ in model.named_parameters())
    )


def packed_kernel() -> Callable[..., Tensor] | None:
    """PyTorch's attention over packed rows, or None where it is missing or does not compute what it should."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    named = inspect.signature(varlen_attn).parameters
    causal: dict[str, Any] = {"window_size": _LEFT_ONLY} if "window_size" in named else {"is_causal": True}
    if "enable_gqa" in named:
        causal["enable_gqa"] = True

    def kernel(query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float | None) -> Tensor:
        scaled = query if scale is None else query * (scale * query.shape[-1] ** 0.5)  # older ones cannot be told
        return varlen_attn(scaled, key, value, starts, starts, longest, longest, **causal)  # type: ignore[return-value]

    return kernel if _is_right(kernel) else None


def packed_attention(
    kernel: Callable[..., Tensor],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of transformers' layers over one row of packed examples; tensors are [1, heads, tokens, size]."""
    assert cu_seq_lens_q is not None, "packed attention is for packed batches"
    assert max_length_q is not None, "packed attention is for packed batches"
    rows = (states[0].transpose(0, 1).to(torch.bfloat16).contiguous() for states in (query, key, value))
    return kernel(*rows, cu_seq_lens_q, max_length_q, scaling).unsqueeze(0), None


def attend_packed(model: PreTrainedModel, kernel: Callable[..., Tensor]) -> None:
    """Let a model's layers attend through a kernel for packed rows (`packed_attention`)."""

    def attend(module: nn.Module, *states: Any, **named: Any) -> tuple[Tensor, None]:
        return packed_attention(kernel, module, *states, **named)

    AttentionInterface.register(_PACKED, attend)
    AttentionMaskInterface.register(_PACKED, flash_attention_mask)
    model.set_attn_implementation(_PACKED)


def _is_right(kernel: Callable[..., Tensor]) -> bool:
    """Whether it gives what plain attention gives for two small examples, and gradients; a GPU may lack it."""
    query, key, value = (
        torch.randn(24, heads, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for heads in (4, 2, 2)
    )
    starts = torch.tensor([0, 10, 24], device="cuda", dtype=torch.int32)
    try:
        found = kernel(query, key, value, starts, 14, 64**-0.5)
        found.float().sum().backward()
    except torch.OutOfMemoryError:
        raise  # says nothing about the kernel, and one process of several would take another
    except (RuntimeError, TypeError, ValueError):  # what a release or a GPU refuses, each says in its own way
        return False
    attend: Callable[..., Tensor] = nn.functional.scaled_dot_product_attention
    expected = [
        attend(*(states[None, a:b].transpose(1, 2) for states in (query, key, value)), is_causal=True, enable_gqa=True)
        for a, b in ((0, 10), (10, 24))
    ]
    return key.grad is not None and torch.allclose(found, torch.cat(expected, dim=2)[0].transpose(0, 1), atol=2e-2)
