"""Three steps of adapters in this process, under a stage of ZeRO; the losses come out as JSON.

python -m tests.adapter_runs ZERO_STAGE FOLDER
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

from flows.parts.launching import trainers
from tasks.params import AdapterParams, EngineParams, load_params
from tasks.training import acceleration
from tasks.training.adapters import with_new_adapter
from tasks.training.examples import Example
from tasks.training.sft import train_sft
from tests.training_builders import SCALED, SCALED_IN_PLACE, policy


def main() -> None:
    stage, folder = int(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir()
    torch.set_num_threads(1)
    engine = EngineParams(zero_stage=stage)  # type: ignore[call-arg, arg-type]
    # Where there are instructions for it, products would be rounded to bfloat16.
    acceleration.torch.set_float32_matmul_precision = lambda _: None  # type: ignore[assignment]
    with trainers(dataclasses.replace(load_params(), engine=engine), folder=folder) as crew:  # type: ignore[type-var]
        small = policy()
        torch.manual_seed(0)
        model = with_new_adapter(small.model, AdapterParams(rank=4, alpha=8.0))  # type: ignore[call-arg]
        examples = [Example(prompt=SCALED[:n], completion=SCALED_IN_PLACE[n : n + 40]) for n in range(0, 160, 10)]
        rows = crew.train(
            train_sft,
            dataclasses.replace(small, model=model),
            examples,
            steps=3,
            batch_size=4,
            learning_rate=1e-2,
            checkpoints=folder / "checkpoints",
            seed=3,
        )
    sys.stdout.write(json.dumps([row["loss"] for row in rows]) + "\n")


if __name__ == "__main__":
    main()
