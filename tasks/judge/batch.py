"""Judging cases: one by a single call, or many side by side with the answers in the order of the cases."""

import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tasks.errors import MachineError, ProblemError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.cases import Case, Text, verdict_row
from tasks.judge.judge import Judge
from tasks.judge.long import OnProgress
from tasks.judge.verdict import Status, Verdict
from tasks.params import JudgeParams

AHEAD = 32
"""Cases per worker that may be finished while an earlier one still takes its time."""
RETRY_DELAYS_S = (0.0, 2.0, 5.0)

_REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(64)]


def get_init_inputs():
    return []
"""
_HARMLESS = Case(
    case_id="harmless",
    reference=Text(name="harmless", source=_REFERENCE),
    candidate=Text(name="harmless", source=_REFERENCE.replace("Model", "ModelNew")),
)


def judge_source(
    reference: str | Path,
    candidate: str | Path,
    *,
    device: str = "cpu",
    tier: Literal["screen", "long"] = "screen",
    precision: str = "fp32",
    params: JudgeParams | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Judge one candidate against one reference: what ``cuda-l1 judge REF.py CANDIDATE.py --json`` prints.

    >>> row = judge_source(Path("reference.py"), "import torch\\n...")  # doctest: +SKIP
    >>> row["status"], row["speedup"]  # doctest: +SKIP
    ('correct', 1.31)

    Starts a judge, which takes seconds; to judge many, open a Judge and use judge_cases.

    Args:
        reference: defines Model and get_inputs. A text with a line break is a source, any other is a path.
        candidate: defines ModelNew; a source or a path as well.
        device: "cpu", or "cuda:0" and so on.
        tier: "screen" takes seconds; "long" is the paper's protocol and takes half an hour.
        precision: "fp32", or "tf32", "fp16" or "bf16" where that is good enough.
        params: all that can be chosen besides; the defaults of JudgeParams when None.
        seed: decides the order of rounds and the choice of inputs, though not the inputs themselves.

    Returns:
        The verdict as verdict_row describes it. Whatever the two texts are or do, there is one.

    Raises:
        MachineError: if this machine cannot judge, or not on that device.
    """
    case = Case(
        case_id="case",
        reference=Text.of_value(reference, folder=Path(), name="reference"),
        candidate=Text.of_value(candidate, folder=Path(), name="candidate"),
        precision=precision,
    )
    asked = changed(params or JudgeParams(), device=device, tier=tier, workers=1)
    with Judge(asked) as judge:
        return next(judge_cases(judge, [case], params=asked, seed=seed))


def judge_cases(
    judge: AnyJudge,
    cases: Iterable[Case],
    *,
    params: JudgeParams,
    seed: int,
    on_progress: OnProgress | None = None,
) -> Generator[dict[str, Any], None, None]:
    """The verdict of each case, in their order, as many judged at once as the judge takes.

    A case on which the judge itself fails is tried again alone. If it fails there every time, but not on a harmless
    case, the verdict is "crashed" and says so: one poisonous case must not stop all that follow. To stop before the
    end, close the generator and then the judge.

    Args:
        judge: an open one.
        params: those that the judge was made with.
        seed, on_progress: as in Judge.judge.

    Raises:
        MachineError: if the judge fails on every case. What has been yielded until then stands.
    """
    ask = partial(_verdict, judge, seed=seed, on_progress=on_progress)
    waiting: deque[tuple[Case, Future[Verdict]]] = deque()
    upcoming = iter(cases)
    pool = ThreadPoolExecutor(judge.workers, thread_name_prefix="judge")
    try:
        while True:
            for case in itertools.islice(upcoming, AHEAD * judge.workers - len(waiting)):
                waiting.append((case, pool.submit(ask, case)))
            if not waiting:
                return
            case, future = waiting.popleft()
            if future.exception() is None:
                verdict = future.result()
            else:
                wait([other for _, other in waiting])  # so that it is tried alone
                verdict = _verdict_alone(ask, judge, case)
            yield verdict_row(case, verdict, tier=params.tier)
    finally:
        # Not waiting: whoever interrupts us closes the judge next, which ends what is running.
        pool.shutdown(wait=False, cancel_futures=True)


def changed(params: JudgeParams, **changes: Any) -> JudgeParams:
    """The params with other values in some fields, checked like those of a file."""
    return replace(params, **changes)  # type: ignore[type-var]


def _verdict(judge: AnyJudge, case: Case, *, seed: int, on_progress: OnProgress | None) -> Verdict:
    try:
        problem = case.problem()
    except ProblemError as error:
        return _unexamined(judge, case, Status.BAD_PROBLEM, str(error))
    if case.candidate.mistake:
        return _unexamined(judge, case, Status.REJECTED, case.candidate.mistake)
    return judge.judge(problem, case.as_candidate(), seed=seed, on_progress=on_progress)


def _verdict_alone(ask: Callable[[Case], Verdict], judge: AnyJudge, case: Case) -> Verdict:
    """A verdict on a case on which the judge has failed while others were judged beside it."""
    for delay_s in RETRY_DELAYS_S:
        time.sleep(delay_s)
        try:
            return ask(case)
        except Exception as error:  # noqa: BLE001 - an untrusted text that finds a mistake of ours must not end the batch
            failure = error
    if isinstance(failure, MachineError):
        raise failure
    try:
        ask(_HARMLESS)
    except Exception as error:
        raise MachineError(f"the judge fails on every case: {type(error).__name__}: {error}") from error
    words = f"the judge failed {len(RETRY_DELAYS_S) + 1} times on this case, but not on another"
    detail = f"no verdict was reached: {words}: {type(failure).__name__}: {failure}"
    return _unexamined(judge, case, Status.CRASHED, detail)


def _unexamined(judge: AnyJudge, case: Case, status: Status, detail: str) -> Verdict:
    """A verdict on what never came to run."""
    return Verdict(
        candidate_id=case.as_candidate().candidate_id,
        problem_id=case.reference.name,
        status=status,
        device=judge.device,
        environment=judge.environment,
        protocol=judge.protocol,
        detail=detail,
        seconds=0.0,
        judged_at=time.time(),
    )
