"""The section "engine" of params.yaml: on what training and generation run.

What is learnt is meant to be the same, but not always to the bit: zero_stage and compiles round differently, offload
computes with another AdamW, and a generator other than the sampler draws other completions.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tasks.params.fields import Count, Positive, section

Generator = Literal["sampler", "continuous_batching", "vllm"]


def _with_a_port_that_there_is(address: str) -> str:
    if not 0 < int(address.rpartition(":")[2]) < 1 << 16:
        raise ValueError("the port must be 1 to 65535")
    return address


@section
class EngineParams:
    """How many processes train one model, what each of them keeps of it, and who writes completions."""

    processes: Count = 1
    """Processes of a node that train together, one a GPU."""
    nodes: Count = 1
    address: (
        Annotated[str, Field(pattern=r"^[^\s:]+:[0-9]{1,5}$"), AfterValidator(_with_a_port_that_there_is)] | None
    ) = None
    """host:port of the node the stage runs on, at which those of other nodes find it."""
    zero_stage: Literal[0, 1, 2, 3] = 0
    """What DeepSpeed shares out: 1 the optimiser's state, 2 gradients too, 3 weights too; 0 does without DeepSpeed."""
    offload: Literal["none", "cpu", "nvme"] = "none"
    """Where what is shared out waits while it is not needed."""
    nvme_folder: str | None = None
    keeps_weights: bool = False
    """Under ZeRO-3: what is fetched for the forward pass stays for the backward pass, so that a third less is sent."""
    compiles: bool = False
    """Whether layers are compiled for training on a GPU: minutes at the start, and up to a third less time a step."""
    collective_timeout_s: Positive = 600.0
    """A process that lets the others wait longer in the middle of a step ends the run."""
    generator: Generator = "sampler"
    vllm_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")] | None = None
    """Of a vLLM server that lets a trainer set its weights."""

    @property
    def size(self) -> int:
        """Processes of all nodes."""
        return self.nodes * self.processes

    @property
    def is_distributed(self) -> bool:
        """Whether there is a process group at all; one process has one where DeepSpeed is to offload for it."""
        return self.size > 1 or self.zero_stage > 0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.offload != "none" and self.zero_stage < 2:
            raise ValueError(f"offload needs zero_stage 2 or 3, not {self.zero_stage}")
        if self.offload == "nvme" and (self.zero_stage != 3 or self.nvme_folder is None):
            raise ValueError("offload to nvme needs zero_stage 3 and nvme_folder")
        if self.keeps_weights and (self.zero_stage != 3 or self.offload != "none"):
            raise ValueError(
                "keeps_weights needs zero_stage 3 without offload: nothing else fetches weights from others"
            )
        if self.nodes > 1 and self.address is None:
            raise ValueError("several nodes need an address at which they find the first")
        if self.generator == "vllm" and self.vllm_url is None:
            raise ValueError("generator vllm needs vllm_url")
        return self
