"""What values of params.yaml must be to each other, beyond what each must be by itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

BASELINES_OF_GPUS = ("compile_reduce_overhead", "cuda_graph")
"""What the judge times on GPUs only (tasks/judge/baselines.py)."""


def inconsistencies(document: Mapping[str, Any]) -> list[str]:
    """A line for everything that does not fit together, beginning with its dotted path.

    Works on the document as it was read, so that these mistakes are told beside wrong keys and values.
    """
    return [
        *_policy(_section(document, "policy")),
        *_micro_batches(document),
        *_baselines(document),
        *_judging_meanwhile(document),
        *_repetitions(document),
    ]


def _policy(policy: Mapping[str, Any]) -> Iterator[str]:
    context, completion, hidden, heads = (
        policy.get(name) for name in ("context_tokens", "completion_tokens", "hidden_size", "heads")
    )
    if _is_count(context) and _is_count(completion) and completion >= context:
        yield f"policy.completion_tokens: must be less than the {context} context_tokens (got {completion})"
    if policy.get("model") is None and _is_count(hidden) and _is_count(heads) and hidden % (2 * heads):
        yield f"policy.hidden_size: must be a multiple of twice the {heads} heads (got {hidden})"
    if policy.get("model") is None and policy.get("adapter") is not None:
        yield "policy.adapter: must be null without a model; one made from scratch is trained as a whole"


def _micro_batches(document: Mapping[str, Any]) -> Iterator[str]:
    micro = _section(document, "sft").get("micro_batch_size")
    for section in ("sft", "self_supervised"):
        batch = _section(document, section).get("batch_size")
        if _is_count(micro) and _is_count(batch) and batch % micro:
            yield f"{section}.batch_size: must be a multiple of sft.micro_batch_size {micro} (got {batch})"


def _baselines(document: Mapping[str, Any]) -> Iterator[str]:
    asked = _section(document, "evaluate").get("baselines")
    if _section(document, "judge").get("device", "cpu") == "cpu" and isinstance(asked, Sequence):
        refused = [name for name in BASELINES_OF_GPUS if name in asked]
        if refused:
            yield (
                f"evaluate.baselines: must not hold {' or '.join(refused)} where judge.device is cpu, on which there "
                f"are no graphs to capture (got {asked!r})"
            )


def _judging_meanwhile(document: Mapping[str, Any]) -> Iterator[str]:
    """On a GPU that samples; where the judge has the processor, only the stage knows whether the sampler has it too."""
    judge, at_once = _section(document, "judge"), _section(document, "contrastive_rl").get("groups_at_once")
    processes = _section(document, "engine").get("processes", 1)
    device, _, number = str(judge.get("device")).partition(":")
    samples = not number or (number.isdecimal() and _is_count(processes) and int(number) < processes)
    if at_once is not None and judge.get("ray") in (None, "local") and device == "cuda" and samples:
        yield (
            f"contrastive_rl.groups_at_once: must be null where judge.device is {judge['device']}, since groups would "
            f"be judged beside those that are sampled there; or give judge.device or judge.ray devices of the judge's "
            f"own (got {at_once!r})"
        )


def _repetitions(document: Mapping[str, Any]) -> Iterator[str]:
    for section, values in document.items():
        for key, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, Sequence) and not isinstance(value, str):
                repeated = [item for number, item in enumerate(value) if item in value[:number]]
                if repeated:
                    yield f"{section}.{key}: must hold nothing twice (got {repeated[0]!r} again)"


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and value > 0
