"""Does it learn? Several seeds of the whole pipeline with more steps, and the ablations of contrastive RL.

    python -m flows.benches.learning --seeds 0 1 2        # resumes where it was stopped; writes work/bench/learning.md
    python -m flows.benches.learning --profile gpu-small --set problems.folders=[/data/kernelbench] --out FILE

Every profile and seed has a workspace under work/bench/, and other values of --set are another experiment: what is out
of date runs again. The ablations share the seed's first four stages through DVC's cache.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.workspace import changes_of, make_workspace
from tasks.errors import CudaL1Error
from tasks.params import load_params

BENCH = Path("work/bench")
OUT = BENCH / "learning.md"
ABLATIONS = {"buckets": "contrastive_rl", "random": "random exemplars", "none": "no exemplars"}

Metrics = Mapping[str, Any]


def run(seed: int, exemplars: str, profile: str, changes: Mapping[str, Any]) -> Metrics:
    """One seed of the pipeline with one way of choosing exemplars; what evaluate measured."""
    folder = BENCH / profile / f"seed-{seed}-{exemplars}"
    own = {"seed": seed, "contrastive_rl.exemplars": exemplars}
    make_workspace(folder, profile=profile, changes={**changes, **own})
    with (folder / ".dvc" / "config").open("a") as config:
        config.write(f"[cache]\n    dir = {(BENCH / 'cache').resolve()}\n")
    first = BENCH / profile / f"seed-{seed}-buckets" / "dvc.lock"
    if exemplars != "buckets" and not (folder / "dvc.lock").exists():
        shutil.copy(first, folder)
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    # dvc starts stages as `python`: that must be ours, also where the virtual environment is not activated.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    subprocess.run([sys.executable, "-m", "dvc", "repro"], cwd=folder, env=environment, check=True)
    metrics = json.loads((folder / "data" / "evaluate" / "metrics.json").read_text())
    return dict(metrics)


def report(
    found: Mapping[tuple[int, str], Metrics], profile: str, *, device: str = "cpu", settings: Sequence[str] = ()
) -> str:
    """The results as Markdown: one row a policy, split and mode, each seed's number and their mean.

    Args:
        device: what candidates were judged on.
        settings: what was laid over the profile, as it was given.
    """
    seeds = sorted({seed for seed, _ in found})
    policies = [("sft", "buckets", "sft"), ("self_supervised", "buckets", "self_supervised")]
    policies += [("contrastive_rl", exemplars, name) for exemplars, name in ABLATIONS.items()]
    lines = [
        f"# Learning on {'the CPU' if device == 'cpu' else 'a GPU'}",
        "",
        f"Made by `make bench-learning`: profile `{profile}`, seeds {', '.join(map(str, seeds))}. Every number is the",
        "mean over seeds, each seed's own in brackets. Speedups are geometric means of correct samples over eager.",
        *(["", "Over the profile: " + ", ".join(f"`{each}`" for each in settings) + "."] if settings else []),
        "",
    ]
    for split in ("train", "held_out"):
        for mode in ("sampled", "greedy"):
            lines += [f"## {split.replace('_', ' ')}, {mode}", "", _header(), "|---|---|---|---|---|---|"]
            for policy, exemplars, name in policies:
                rows = [
                    metrics[policy][split][mode]
                    for (_, chosen), metrics in sorted(found.items())
                    if chosen == exemplars and split in metrics[policy]
                ]
                if rows:
                    lines.append(_row(name, rows))
            lines.append("")
    lines += ["## Gains in speed", "", "Geometric mean speedup of train samples over that of the stage before.", ""]
    lines += [
        f"- seed {seed}, {ABLATIONS[exemplars]}: {gain['ratio']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})"
        for (seed, exemplars), metrics in sorted(found.items())
        if "low" in (gain := metrics["contrastive_rl"]["train"]["sampled"].get("gain", {}))
    ]
    lines.append("")
    best = [metrics["best_kernels"]["geomean_speedup"] for (_, chosen), metrics in found.items() if chosen == "buckets"]
    lines += [
        f"Best verified kernel per problem, geomean over all problems (1.0x where there is none): {_numbers(best)}x.",
        "",
    ]
    return "\n".join(lines)


def _header() -> str:
    return "| policy | parses | runs | correct | distinct | geomean speedup, x |"


def _row(name: str, rows: Sequence[Metrics]) -> str:
    shares = [_numbers([100 * row[key] for row in rows], digits=0) for key in ("parsed", "ran", "correct", "distinct")]
    speedups = [row["speedup"] for row in rows if "speedup" in row]
    return f"| {name} | " + " | ".join(f"{text} %" for text in shares) + f" | {_numbers(speedups, geometric=True)} |"


def _numbers(values: Sequence[float], *, digits: int = 2, geometric: bool = False) -> str:
    if not values:
        return "-"
    mean = math.exp(statistics.fmean(map(math.log, values))) if geometric else statistics.fmean(values)
    return f"{mean:.{digits}f} ({', '.join(f'{value:.{digits}f}' for value in values)})"


def main() -> None:
    """Parse the command line, run what is missing and write the page after every run."""
    parser = argparse.ArgumentParser(description="Several seeds of the pipeline, with the ablations.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--profile", default="bench")
    parser.add_argument("--exemplars", nargs="+", choices=ABLATIONS, default=list(ABLATIONS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as sft.steps=100")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the page (default: {OUT})")
    arguments = parser.parse_args()
    found: dict[tuple[int, str], Metrics] = {}
    try:
        changes = changes_of(arguments.set)
        for seed in arguments.seeds:
            for exemplars in arguments.exemplars:
                found[seed, exemplars] = run(seed, exemplars, arguments.profile, changes)
                device = load_params(
                    BENCH / arguments.profile / f"seed-{seed}-{exemplars}" / "params.yaml"
                ).judge.device
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                arguments.out.write_text(report(found, arguments.profile, device=device, settings=arguments.set))
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except subprocess.CalledProcessError:
        sys.exit("a stage failed, see above; the same command continues where it stopped")


if __name__ == "__main__":
    main()
