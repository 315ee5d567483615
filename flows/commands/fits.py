"""The command `cuda-l1 fits`: which models go through which stages on how many GPUs of which memory, by calculation.

Imports at the top stay light.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from flows.commands.judge import count as positive
from flows.commands.usage import EXIT_CODES
from tasks.training.architectures import ARCHITECTURES, Architecture
from tasks.training.footprint import Setup, first_that_fits, footprint

MEMORY_GB = (24, 80, 141)
HOST_GB = 256
CONTEXT_TOKENS = 8_192
RANK = 64
GPUS = tuple(2**power for power in range(13))
GB = 1_000_000_000

_NOTE = """\
Calculated, not measured: the fewest GPUs, in powers of two, with one example of {context} tokens at a time on each and
activations checkpointed. "1" alone is without ZeRO. Offloaded is ZeRO-3 with weights and optimiser in the host's
memory, of which each GPU has {host} GB, or on NVMe, of which each GPU then takes what stands there. Adapters are of
rank {rank}. "-" is on no number of GPUs, up to {most}. The command is `cuda-l1 fits`.

The first number is for `sft` alone, the second for all stages. `self_supervised`, `contrastive_rl` and `evaluate`
sample: a GPU that does holds the whole model, whatever ZeRO and offload do, and in `contrastive_rl` its share of the
rest beside it. Nothing here splits one matrix over GPUs (tensor parallelism). One answer is sampled at a time, of
{context} tokens with its prompt, and `contrastive_rl.kl_beta` is 0.
"""


def add_fits_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser("fits", help="which models fit on how many GPUs, by calculation", epilog=EXIT_CODES)
    parser.add_argument("--memory-gb", type=positive, nargs="+", default=MEMORY_GB, metavar="GB", help="of a GPU")
    parser.add_argument("--host-gb", type=positive, default=HOST_GB, metavar="GB", help="of the host, for each GPU")
    parser.add_argument(
        "--context", type=positive, default=CONTEXT_TOKENS, metavar="TOKENS", help="on each GPU at a time"
    )
    parser.add_argument("--rank", type=positive, default=RANK, help="of adapters")
    parser.set_defaults(run=_fits)


def fits_table(
    *,
    memory_gb: Sequence[int] = MEMORY_GB,
    host_gb: int = HOST_GB,
    context_tokens: int = CONTEXT_TOKENS,
    rank: int = RANK,
) -> str:
    """The table in Markdown: a row for each model and way of training it, two columns for each kind of GPU."""
    columns = [(memory, samples) for memory in memory_gb for samples in (False, True)]
    titles = (f"{memory} GB, {'all stages' if samples else 'sft'}" for memory, samples in columns)
    header = ["model", "parameters", "trained", *titles]
    lines = [header, ["---"] * len(header)]
    for model in ARCHITECTURES.values():
        for way, setups in _ways(context_tokens, rank).items():
            chosen = [
                first_that_fits(
                    model, setups, memory_bytes=memory * GB, host_memory_bytes=host_gb * GB, samples=samples
                )
                for memory, samples in columns
            ]
            cells = ["-" if setup is None else ", ".join(_words(model, setup)) for setup in chosen]
            lines.append([model.name, f"{model.parameters / GB:.2f} B", way, *cells])
    note = _NOTE.format(context=context_tokens, host=host_gb, rank=rank, most=GPUS[-1])
    return "\n".join([note, *(f"| {' | '.join(line)} |" for line in lines), ""])


def _ways(context_tokens: int, rank: int) -> dict[str, list[Setup]]:
    """How a model may be trained, each with setups on ever more GPUs, of which the first that fits is wanted."""
    setup = partial(Setup, tokens=context_tokens)
    many = GPUS[1:]
    return {
        "whole": [
            setup(gpus=1, weights="float32"),
            *(setup(gpus=count, zero_stage=stage) for count in many for stage in (2, 3)),
        ],
        "whole, offloaded": [setup(gpus=count, zero_stage=3, offload="cpu") for count in GPUS],
        "whole, on NVMe": [setup(gpus=count, zero_stage=3, offload="nvme") for count in GPUS],
        "adapters": [
            setup(gpus=1, adapter_rank=rank),
            *(setup(gpus=count, zero_stage=3, adapter_rank=rank) for count in many),
        ],
    }


def _words(model: Architecture, setup: Setup) -> Iterator[str]:
    yield str(setup.gpus)
    if setup.offload == "nvme":
        yield f"{footprint(model, setup).nvme_bytes / GB:.0f} GB"
    elif setup.offload == "none" and setup.zero_stage:
        yield f"ZeRO-{setup.zero_stage}"


def _fits(arguments: argparse.Namespace) -> None:
    table = fits_table(
        memory_gb=arguments.memory_gb,
        host_gb=arguments.host_gb,
        context_tokens=arguments.context,
        rank=arguments.rank,
    )
    sys.stdout.write(table)
