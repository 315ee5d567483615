"""What DeepSpeed is told: how a model's state is shared out among processes, and where it waits."""

from typing import Any

from torch import nn

from tasks.params import EngineParams

# The next layer is fetched while one is computed; larger ones, such as those of many experts, are fetched part by part,
# since whole ones would take the memory.
_FETCHED_AHEAD = 500_000_000
# Weights that may be whole on a GPU at once, and between two uses of one: more than there are, or few enough that a
# large model does not fill it.
_ALL, _FEW = 1 << 40, 2_000_000_000
# Parameters this small stay on every GPU, fetching them costs more.
_KEPT_WHOLE = 100_000


def deepspeed_settings(engine: EngineParams, *, on_cuda: bool) -> dict[str, Any] | None:
    """The configuration of DeepSpeed for a trainer of transformers, which fills in "auto"; None does without it.

    ZeRO-2 and 3 divide the optimiser's state and gradients, 3 the weights too, by the number of processes. The
    optimiser is the trainer's own, so that sharing out does not change what is learnt; only where its state is
    offloaded it is DeepSpeed's AdamW, which computes on the processor.

    Source: ZeRO (arXiv:1910.02054), ZeRO-Offload (arXiv:2101.06840), ZeRO-Infinity (arXiv:2104.07857).
    """
    if not engine.zero_stage:
        return None
    settings: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": on_cuda},
        "zero_optimization": _zero(engine, on_cuda=on_cuda),
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 1 << 30,
        "wall_clock_breakdown": False,
    }
    if engine.offload != "none":
        names = ("lr", "betas", "eps", "weight_decay")
        # The fast AdamW for processors is built where it is used, for which a machine without a GPU may lack the tools.
        settings["optimizer"] = {
            "type": "AdamW",
            "params": dict.fromkeys(names, "auto") | ({} if on_cuda else {"torch_adam": True}),
        }
    if engine.offload == "nvme":
        settings["aio"] = {"block_size": 1 << 20, "queue_depth": 32, "single_submit": False, "overlap_events": True}
    return settings


def fetch_whole_layers(model: nn.Module) -> None:
    """Have ZeRO-3 fetch and give back each layer's weights together; before DeepSpeed is given the model.

    It would do so for every module within a layer, in Python, which may take the processor longer than the GPU takes
    for the layer. Models with frozen weights are left to that: below a frozen embedding nothing needs a gradient, and
    DeepSpeed takes the gradients of a layer that is fetched whole when those of its inputs are there.
    """
    from deepspeed.utils.z3_leaf_module import set_z3_leaf_module
    from transformers.modeling_layers import GradientCheckpointingLayer

    if not all(parameter.requires_grad for parameter in model.parameters()):
        return
    for layer in model.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            num_weights = sum(parameter.numel() for parameter in layer.parameters())
            if num_weights <= _FETCHED_AHEAD:
                set_z3_leaf_module(layer, True)


def _zero(engine: EngineParams, *, on_cuda: bool) -> dict[str, Any]:
    zero: dict[str, Any] = {
        "stage": engine.zero_stage,
        "overlap_comm": on_cuda,
        "contiguous_gradients": True,
        "reduce_bucket_size": 200_000_000,
        "allgather_bucket_size": 200_000_000,
    }
    if engine.offload != "none":
        zero["offload_optimizer"] = _place(engine, on_cuda=on_cuda)
    if engine.zero_stage == 3:
        whole = _ALL if engine.keeps_weights else _FEW
        zero |= {
            "stage3_prefetch_bucket_size": _FETCHED_AHEAD,
            "stage3_param_persistence_threshold": _KEPT_WHOLE,
            "stage3_max_live_parameters": whole,
            "stage3_max_reuse_distance": whole,
            "stage3_gather_16bit_weights_on_model_save": True,
            # DeepSpeed's own product asks each weight for its number, which the compiler takes for a constant.
            "memory_efficient_linear": not engine.compiles,
        }
        if engine.offload != "none":
            zero["offload_param"] = _place(engine, on_cuda=on_cuda)
    return zero


def _place(engine: EngineParams, *, on_cuda: bool) -> dict[str, Any]:
    place: dict[str, Any] = {"device": engine.offload, "pin_memory": on_cuda}
    if engine.offload == "nvme":
        place["nvme_path"] = engine.nvme_folder
    return place
