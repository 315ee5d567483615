"""Stages with a judge that depends on nothing but the text, in processes that end themselves at a given moment."""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from flows import contrastive_rl, self_supervised, sft
from flows.engine import run_stage
from flows.parts import journal, judging, recording  # noqa: F401 - see below
from tasks.judge.verdict import Verdict
from tasks.params import JudgeParams
from tasks.problems.problem import Problem
from tasks.training import checkpoints, grpo  # noqa: F401 - what every run needs is imported once, before it is forked
from tasks.variants.candidate import Candidate
from tests.stage_runs import CLOSED
from tests.test_grpo import judge_by_length

WORK = {
    "sft": sft.sft,
    "self_supervised": self_supervised.self_supervised,
    "contrastive_rl": contrastive_rl.contrastive_rl,
}
LIMIT_S = 120.0
MOMENTS = "moments.txt"


class JudgeByLength:
    """Every other length of text is correct, and the longer the faster."""

    device, protocol, workers = "test", "test", 1
    environment: ClassVar[dict[str, str]] = {}

    def judge(self, problem: Problem, candidate: Candidate, **_: Any) -> Verdict:
        return judge_by_length([candidate])[0]


def run(root: Path, stage: str, *, killed_at: int | None = None) -> int | None:
    """Run a stage in a process forked from one that has imported everything; returns its exit code.

    Args:
        killed_at: the moment of its SIGKILL: so many times something was written down, or half of a checkpoint was.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_run, args=(root, stage, killed_at))
    process.start()
    process.join(LIMIT_S)
    process.kill()
    return process.exitcode


def _run(root: Path, stage: str, killed_at: int | None) -> None:
    os.chdir(root)
    os.environ["MLFLOW_TRACKING_URI"] = CLOSED
    os.environ.pop("PREFECT_API_URL", None)
    sys.stderr = Path("log.txt").open("a")  # noqa: SIM115 - until the process ends
    moments = 0

    def pass_moment() -> None:
        nonlocal moments
        moments += 1
        if moments == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def append(self: journal.Journal, rows: Any) -> None:
        _append(self, rows)
        pass_moment()

    def on_save(self: checkpoints.CheckpointCallback, *arguments: Any, **named: Any) -> None:
        pass_moment()  # the weights are written, and the mark that the checkpoint is whole is not
        _on_save(self, *arguments, **named)

    _append, journal.Journal.append = journal.Journal.append, append
    _on_save, checkpoints.CheckpointCallback.on_save = checkpoints.CheckpointCallback.on_save, on_save
    checkpoints.INTERVAL_S = 0.0
    judging.open_judge = _judge_by_length
    contrastive_rl.require_apart = lambda params: None  # nothing is timed
    run_stage(stage, WORK[stage])
    Path(MOMENTS).write_text(str(moments))


@contextlib.contextmanager
def _judge_by_length(params: JudgeParams) -> Iterator[JudgeByLength]:
    yield JudgeByLength()
