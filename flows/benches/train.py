"""How fast do we train, beside plain TRL doing the same steps, and what does it take of a GPU's memory?

    python -m flows.benches.train                                   # every point that this machine has the GPUs for
    python -m flows.benches.train --only 1.5b --out FOLDER          # points whose name holds that
    python -m flows.benches.train --size tiny --device cpu          # the same code at toy size, without a GPU

The architectures are Qwen2.5-Coder's with random weights: nothing is downloaded. Each point runs in a process of its
own with a time limit, and leaves a JSON record; a point that has one is not run again. Needs torch, transformers,
accelerate, trl and datasets, and for some points peft and deepspeed; no orchestrator, no database.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from flows.engine import progress, say

SIZES = ("tiny", "0.5B", "1.5B", "7B")


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One training that is measured."""

    work: Literal["sft", "grpo"]
    size: str
    side: Literal["ours", "trl"]
    gpus: int = 1
    zero_stage: int = 0
    keeps_weights: bool = False
    adapter: bool = False
    compiles: bool = False
    micro_batch: int = 4
    """Examples in the memory of a GPU at once."""
    examples: int = 32
    """In a step, on all GPUs."""
    checkpointing: bool = False
    """Whether activations are computed again; TRL's own default is yes."""
    device: str = "cuda"

    @property
    def name(self) -> str:
        how = [f"zero{self.zero_stage}"] if self.zero_stage else []
        how += ["kept"] if self.keeps_weights else []
        how += ["lora"] if self.adapter else []
        how += ["compiled"] if self.compiles else []
        how += [f"{self.micro_batch}-at-once"] if self.side == "ours" else []
        how += ["checkpointed"] if self.checkpointing and self.side == "ours" else []
        how += [f"{self.gpus}gpu"]
        return "-".join([self.work, self.size.lower(), *how, self.side])


def points(size: str | None, device: str) -> list[Point]:
    """What is measured, each of ours followed by TRL's; toy ones alone for the size tiny."""
    if size == "tiny":
        small: dict[str, Any] = {"size": "tiny", "device": device, "examples": 4, "micro_batch": 2}
        sides = [Point(work=work, side=side, **small) for work in ("sft", "grpo") for side in ("ours", "trl")]
        return [*sides, Point(work="sft", side="ours", gpus=2, zero_stage=2, **small)]
    ours = [
        Point(work="sft", side="ours", size="1.5B"),
        Point(work="sft", side="ours", size="1.5B", compiles=True, micro_batch=8),
        Point(work="sft", side="ours", size="1.5B", zero_stage=1, compiles=True),
        Point(work="grpo", side="ours", size="1.5B"),
        Point(work="sft", side="ours", size="7B", adapter=True, micro_batch=2),
        Point(work="sft", side="ours", size="0.5B", compiles=True, micro_batch=8),
        *(
            Point(
                work="sft",
                side="ours",
                size="7B",
                zero_stage=3,
                keeps_weights=keeps_weights,
                gpus=n,
                compiles=compiles,
                examples=16 * n,
            )
            for n in (2, 4)
            for keeps_weights, compiles in ((True, True), (False, True), (False, False))
        ),
        # ZeRO-3 fetches all weights for both passes of every micro-batch: one a step sends least.
        *(
            Point(
                work="sft",
                side="ours",
                size="7B",
                zero_stage=3,
                gpus=n,
                micro_batch=16,
                examples=16 * n,
                checkpointing=True,
            )
            for n in (2, 4)
        ),
        *(Point(work="sft", side="ours", size="1.5B", zero_stage=2, gpus=n, examples=32 * n) for n in (2, 4)),
    ]
    chosen = [point for point in ours if size in (None, point.size)]
    found: dict[str, Point] = {}  # TRL's is that of the first of ours
    for point in chosen:
        for each in (point, _as_trl(point)):
            found.setdefault(each.name, each)
    return list(found.values())


def _as_trl(point: Point) -> Point:
    fields = asdict(point) | {"side": "trl", "keeps_weights": False, "compiles": False, "checkpointing": True}
    return Point(**(fields | {"zero_stage": 0 if point.gpus == 1 else point.zero_stage}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m flows.benches.train", description="training beside plain TRL")
    parser.add_argument("--out", type=Path, default=Path("work/bench-train"), help="folder of the records")
    parser.add_argument("--size", choices=SIZES, help="points of one size; tiny runs on a processor too")
    parser.add_argument("--only", default="", help="points whose name holds this")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--limit-s", type=float, default=480.0, help="for each point, what it loads included")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    chosen = parser.parse_args(arguments)
    todo = [point for point in points(chosen.size, chosen.device) if chosen.only in point.name]
    if chosen.list:
        say("\n".join(point.name for point in todo))
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    num_gpus = _num_gpus() if chosen.device == "cuda" else 1 << 30
    bar = progress("training points", total=len(todo), unit="point")
    for point in todo:
        if point.gpus > num_gpus:
            say(f"{point.name}: left out, this machine has {num_gpus} GPUs")
        elif not (chosen.out / f"{point.name}.json").exists():
            say(f"{point.name}: {_run(point, chosen.out, limit_s=chosen.limit_s)}")
        bar.update()
    bar.close()
    say(table([json.loads(path.read_text()) for path in sorted(chosen.out.glob("*.json"))]))


def table(records: Sequence[dict[str, Any]]) -> str:
    """The records side by side, as Markdown."""
    lines = ["| point | device | s a step | tokens/s | MFU | peak GiB a GPU |", "|---|---|--:|--:|--:|--:|"]
    for record in records:
        mfu = f"{record['mfu']:.1%}" if record["mfu"] is not None else ""
        memory = f"{record['peak_memory_bytes'] / 2**30:.1f}" if record["peak_memory_bytes"] is not None else ""
        lines.append(
            f"| {record['name']} | {record['device']} | {record['step_s']:.2f} | {record['tokens_per_s']:,.0f} | {mfu} "
            f"| {memory} |"
        )
    return "\n".join(lines)


def _run(point: Point, out: Path, *, limit_s: float) -> str:
    """One point in processes of its own; says how it ended. What failed has no record and is tried again next time."""
    log, record = out / f"{point.name}.log", out / f"{point.name}.json"
    command = [sys.executable, "-m"]
    if point.side == "trl" and point.gpus > 1:  # ours starts its own processes
        command += ["torch.distributed.run", "--standalone", f"--nproc-per-node={point.gpus}", "-m"]
    command += ["flows.benches.train_point", json.dumps(asdict(point)), str(record.resolve())]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit_s:.0f} s (see {log})"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if not record.exists():
        last = (log.read_text(errors="replace").strip().splitlines() or [f"status {process.returncode}"])[-1]
        return f"failed: {last[:200]} (see {log})"
    found = json.loads(record.read_text())
    return f"{found['tokens_per_s']:,.0f} tokens/s, {found['step_s']:.2f} s a step"


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count()


if __name__ == "__main__":
    main()
