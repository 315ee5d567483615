"""Pretrained models and tokenizers of transformers: loaded by path or by name, and put where they compute."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from tasks.errors import PolicyError
from tasks.params import PolicyParams
from tasks.training.team import team
from tasks.training.too_large import said_to_be_too_large

# What the kernels of the library causal-conv1d take. Where it is installed transformers computes with nothing else.
WIDEST_CONVOLUTION = 4


def load_model(source: Path | str, params: PolicyParams) -> PreTrainedModel:
    """The model alone, on the processor; its weights must be safetensors.

    Raises:
        PolicyError: if it is not there or cannot be read.
    """
    place = str(source)
    if isinstance(source, Path) or _looks_like_path(source):
        folder = Path(source)
        if not (folder / "config.json").is_file():
            raise PolicyError(
                f"no model at {folder}: a folder with config.json, safetensors and a tokenizer is needed there. "
                f"Correct policy.model in params.yaml, or set it to null to make a small model from scratch"
            )
        # Adapters remember the model they belong to, and may be loaded from another current folder.
        place = str(folder.resolve())
    with _said_to_be_unloadable(str(source)):
        return AutoModelForCausalLM.from_pretrained(
            place, dtype=getattr(torch, params.weights), use_safetensors=True, trust_remote_code=False
        )


def load_tokenizer(source: Path | str) -> Any:
    """The tokenizer that lies beside a model or an adapter.

    Raises:
        PolicyError: if it cannot be read.
    """
    with _said_to_be_unloadable(str(source)):
        return AutoTokenizer.from_pretrained(str(source), padding_side="left", trust_remote_code=False)


def place_model(model: Any, attention: str | None) -> None:
    """Put the model on this process's GPU, where there is one, and choose how its attention is computed.

    Raises:
        PolicyError: if this machine cannot compute attention that way.
    """
    if attention:
        try:
            model.set_attn_implementation(attention)
        except (ImportError, ValueError) as error:
            raise PolicyError(
                f"policy.attention: {model.config.model_type} cannot be computed with {attention!r} here: {error}"
            ) from error
    # For every new length of a batch cuDNN plans its attention anew, which takes many times as long as to attend.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # ZeRO-3 spreads the weights over all GPUs when training begins; until then they may be more than one holds.
    if torch.cuda.is_available() and team().engine.zero_stage != 3:
        _put_on_gpu(model)


def require_convolutions(model: Any) -> None:
    """Refuse a model whose convolutions would be computed by a library that cannot.

    Raises:
        PolicyError: if so.
    """
    width = convolution_width(model)
    if width > WIDEST_CONVOLUTION and find_spec("causal_conv1d") is not None:
        raise PolicyError(
            f"the policy's convolutions read {width} tokens. Where the library causal-conv1d is installed transformers "
            f"computes them with it, and it takes at most {WIDEST_CONVOLUTION}: uninstall it"
        )


def convolution_width(model: Any) -> int:
    """Tokens that the short convolutions of an LFM2 read; 0 for other kinds."""
    return getattr(model.config, "conv_L_cache", 0)


@contextmanager
def on_gpu(model: Any) -> Iterator[None]:
    """The model on this process's GPU, to sample between trainings, even if it waits elsewhere for ZeRO-3."""
    waits = torch.cuda.is_available() and team().engine.zero_stage == 3
    if waits:
        _put_on_gpu(model)
    yield
    if waits:
        model.cpu()


def _put_on_gpu(model: Any) -> None:
    # ZeRO-3 would only put it off: the next stage samples.
    remedy = (
        "It is whole on every GPU that samples, under ZeRO-3 too. Choose a smaller policy.model, or policy.weights: "
        "bfloat16 with adapters or with engine.zero_stage"
    )
    with said_to_be_too_large("the policy's model", remedy=remedy):
        model.cuda(int(os.environ.get("LOCAL_RANK", 0)))


def _looks_like_path(source: str) -> bool:
    # A hub name is "name" or "owner/name"; anything else, and anything that exists, is meant as a path.
    return source.startswith((".", "/", "~")) or source.count("/") > 1 or Path(source).exists()


@contextmanager
def _said_to_be_unloadable(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise PolicyError(
            f"the model {source!r} cannot be loaded: {reason}. If it is a name, the model hub must be reachable "
            f"once; if it is a path, the folder must hold whole safetensors and a tokenizer: delete one that a stage "
            f"wrote, and `dvc repro` makes it again"
        ) from error
