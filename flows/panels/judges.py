"""Who judges: a judge of this machine, or panels of judges on many devices; whoever judges opens them here."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tasks.errors import ParamsError
from tasks.judge.any_judge import AnyJudge
from tasks.judge.referees import local_judge
from tasks.params import JudgeParams


@contextmanager
def open_judges(params: JudgeParams) -> Iterator[list[AnyJudge]]:
    """A judge for each model of device that params ask for.

    Raises:
        MachineError: if there is no such device, or it cannot be judged on.
        ParamsError: if a model of GPU was asked for by a name that no GPU has.
    """
    if not params.is_spread:
        with local_judge(params) as judge:
            yield [judge]
        return
    from flows.panels.cluster import joined
    from flows.panels.panel import Panel

    with joined(params) as groups, ExitStack() as stack:
        yield [stack.enter_context(Panel(params, places)) for places in groups]


@contextmanager
def open_judge(params: JudgeParams) -> Iterator[AnyJudge]:
    """The only judge, for work whose speedups are compared with each other.

    Raises:
        MachineError: as open_judges.
        ParamsError: if params ask for several models of GPU.
    """
    with open_judges(params) as judges:
        if len(judges) > 1:
            found = ", ".join(judge.device for judge in judges)
            raise ParamsError(
                f"speedups on different GPUs cannot be compared: choose one of {found} with judge.accelerators"
            )
        yield judges[0]
