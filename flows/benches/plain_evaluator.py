"""What judging costs without a judge: checks and times candidates in its own process, as KernelBench's evaluator does.

    python -m flows.benches.plain_evaluator CASES.jsonl --device cpu [--kernelbench FOLDER]

For comparison only: it believes whatever it runs, so that nothing but our own rewrites may be given to it. A line of
the file has the texts "reference" and "candidate". A line is printed for each: whether it was right, and the seconds it
took. A candidate that crashes takes this process with it, and whoever started it goes on with --first.
"""

import argparse
import contextlib
import importlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRIALS, TIMED_RUNS, WARM_UPS = 5, 100, 3
TOLERANCE = 1e-4


def evaluated_by_loop(reference: str, candidate: str, device: str) -> bool:
    """Five trials on fresh inputs and a hundred timed runs on the last of them; whether the trials agreed."""
    import torch

    programs: list[dict[str, Any]] = [{}, {}]
    for program, text in zip(programs, (reference, candidate), strict=True):
        exec(text, program)
    init_inputs = programs[0]["get_init_inputs"]()
    models = []
    for program, name in zip(programs, ("Model", "ModelNew"), strict=True):
        torch.manual_seed(0)
        models.append(program[name](*init_inputs).to(device))
    synchronize: Callable[[], object] = torch.cuda.synchronize if device != "cpu" else lambda: None
    inputs: list[Any] = []
    with torch.no_grad():
        for trial in range(TRIALS):
            torch.manual_seed(trial)
            drawn = programs[0]["get_inputs"]()
            inputs = [item.to(device) if isinstance(item, torch.Tensor) else item for item in drawn]
            truth, answer = (model(*inputs) for model in models)
            if not torch.allclose(truth, answer, atol=TOLERANCE, rtol=TOLERANCE):
                return False
        times_ms = []
        for run in range(WARM_UPS + TIMED_RUNS):
            started = time.perf_counter()
            models[1](*inputs)
            synchronize()
            if run >= WARM_UPS:
                times_ms.append(1e3 * (time.perf_counter() - started))
    return True


def evaluated_by_kernelbench(reference: str, candidate: str, device: str) -> bool:
    """The same by KernelBench's own evaluator, which needs CUDA."""
    import torch
    from kernelbench.eval import eval_kernel_against_ref

    result = eval_kernel_against_ref(
        reference,
        candidate,
        measure_performance=True,
        num_correct_trials=TRIALS,
        num_perf_trials=TIMED_RUNS,
        device=torch.device(device),
    )
    return bool(result and result.correctness)


def main() -> None:
    """Evaluate every case; a case that raises counts as wrong."""
    parser = argparse.ArgumentParser(description="Evaluate trusted candidates in this very process.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kernelbench", type=Path, help="the folder of a checkout that holds the package kernelbench")
    parser.add_argument("--first", type=int, default=0, help="number of the first case to evaluate, from 0")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    evaluate = evaluated_by_loop
    if arguments.kernelbench:
        sys.path.insert(0, str(arguments.kernelbench))
        evaluate = evaluated_by_kernelbench
        importlib.import_module("kernelbench.eval")  # here, where it is no case's fault if that fails
    cases = [json.loads(line) for line in arguments.cases.read_text().splitlines()]
    torch.ones(1, device=arguments.device)
    for case in cases[arguments.first :]:
        started, is_right = time.monotonic(), False
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            is_right = evaluate(case["reference"], case["candidate"], arguments.device)
        answer = {"is_right": is_right, "seconds": time.monotonic() - started}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
