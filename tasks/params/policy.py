"""The section policy: the model that is trained, how it is held in memory and how it writes."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tasks.params.fields import Count, Integer, Positive, Real, section


@section
class AdapterParams:
    """Low-rank adapters (LoRA, arXiv:2106.09685): the model stays as it is and small matrices beside it are trained."""

    rank: Count
    alpha: Positive
    """What the adapters add is scaled by alpha / rank."""
    dropout: Annotated[Real, Field(ge=0, lt=1)] = 0.0
    targets: Literal["all-linear"] | Annotated[tuple[str, ...], Field(min_length=1)] = "all-linear"
    """Names of the linear layers that get one, such as [q_proj, v_proj]; all-linear is all but the output's."""


@section
class PolicyParams:
    """The model that is trained, and how it writes."""

    model: Annotated[str, AfterValidator(os.path.expanduser)] | None
    """Name or path of a pretrained causal language model of transformers; null makes a small one from scratch."""
    prompt_style: Literal["compact", "instruct"]
    """compact: bare code, for small models; instruct: the paper's full prompt with its three sections."""
    vocab_size: Annotated[Integer, Field(ge=300)]
    """Tokens of the byte-level BPE made for a model from scratch."""
    hidden_size: Count
    layers: Count
    heads: Count
    context_tokens: Annotated[Integer, Field(ge=128)]
    """Longest prompt and completion together."""
    completion_tokens: Annotated[Integer, Field(ge=16)]
    """Longest completion sampled or trained on."""
    threads: Count
    """Processor threads of the trainer."""
    weights: Literal["float32", "bfloat16"] = "float32"
    """What the model is held in; on a GPU it computes in bfloat16 either way. Training a whole model held in bfloat16
    loses small updates, unless the optimiser keeps a copy in float32 as DeepSpeed's does; adapters lose nothing."""
    adapter: AdapterParams | None = None
    """null trains the whole model."""
    attention: Literal["eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3"] | None = None
    """Implementation of attention, by its name in transformers; null leaves the choice to transformers."""
    gradient_checkpointing: bool = False
    """Whether activations are computed again in the backward pass: a third more work, for a fraction of the memory."""
    line_tokens: Annotated[Integer, Field(ge=0)] = 0
    """Beside those of vocab_size: lines that ten and more programs of the corpus share, at most so many, are a token
    each. Kernels with long fixed parts, such as the replay of a CUDA graph, take a seventh of the tokens so."""
    completions_at_once: Count = 96
    """Completions sampled side by side at most. What is drawn does not depend on it, but the memory it takes does."""
