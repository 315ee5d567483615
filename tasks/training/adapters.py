"""Low-rank adapters on a frozen model: added, loaded and told from whole models. peft is imported where one is used."""

import json
import warnings
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from tasks.errors import MachineError, PolicyError
from tasks.params import AdapterParams
from tasks.training.team import team

_CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"


def base_of(folder: Path) -> str | None:
    """Name or path of the model that the folder's adapter belongs to; None if the folder holds no adapter.

    Raises:
        PolicyError: if what is there is no adapter of ours.
    """
    path = folder / _CONFIG
    if not path.is_file():
        return None
    try:
        config = json.loads(path.read_text())
        base = str(config["base_model_name_or_path"] or "")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{path} does not say which model the adapter belongs to: {error!r}") from error
    if not base or not (folder / _WEIGHTS).is_file():
        raise PolicyError(
            f"the adapter in {folder} lacks {'the name of its model' if not base else _WEIGHTS}: delete a folder that "
            f"a stage wrote, and `dvc repro` makes it again"
        )
    return base


def with_new_adapter(model: PreTrainedModel, params: AdapterParams) -> Any:
    """The model, frozen, with adapters that change nothing yet. Their weights are drawn from torch's generator.

    Raises:
        PolicyError: if the model has no layers of the names under policy.adapter.targets.
    """
    peft = _peft()
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=params.rank,
        lora_alpha=params.alpha,
        lora_dropout=params.dropout,
        target_modules=params.targets if isinstance(params.targets, str) else list(params.targets),
    )
    try:
        return peft.get_peft_model(model, config, autocast_adapter_dtype=_keeps_float32())
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        raise PolicyError(f"policy.adapter does not fit {model.config.model_type}: {reason}") from error


def with_adapter_of(folder: Path, model: PreTrainedModel) -> Any:
    """The model, frozen, with the adapters saved in the folder, ready to be trained further.

    Raises:
        PolicyError: if they are damaged or belong to a model of another shape.
    """
    peft = _peft()
    from safetensors import SafetensorError

    try:
        return peft.PeftModel.from_pretrained(
            model, str(folder), is_trainable=True, autocast_adapter_dtype=_keeps_float32()
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise PolicyError(f"the adapter in {folder} cannot be laid over its model: {reason}") from error


def within(model: Any) -> Any:
    """The model of transformers itself, its layers with their adapters; any other model as it is."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _keeps_float32() -> bool:
    # ZeRO-3 gathers parameters into buffers of one type, so adapters must have the model's.
    return team().engine.zero_stage != 3


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise MachineError(
            "policy.adapter needs the library peft, which is not installed: pip install -c constraints.txt peft"
        ) from error
    # peft still uses a name that transformers has replaced.
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing", category=FutureWarning)
    return peft
