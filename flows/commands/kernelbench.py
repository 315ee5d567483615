"""The command `cuda-l1 kernelbench`: baselines of a problem set, and others' kernels for it, judged and told in tables.

Judging needs little more than PyTorch; the tables are made where data frames are installed, by the same command with
--report-only. Imports at the top stay light.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flows.commands.judge import amount_of, count, sigterm_as_exit
from flows.commands.usage import make_out_folder, require_problems_there, require_there
from flows.project import HISTORY, project_folder
from tasks.errors import CudaL1Error, ParamsError, RecordError
from tasks.judge.baselines import BASELINES
from tasks.problems.problem import PRECISIONS, Problem

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from flows.kernelbench.docket import Docket
    from tasks.params import JudgeParams
    from tasks.variants.imported import ImportedKernel

MEMORY_BYTES = 8 << 30  # compilers of graphs and of kernels take more than a program does
TIMEOUT_S, CUDA_TIMEOUT_S = 120.0, 300.0
CUDA_LIMITS = {"memory_bytes": MEMORY_BYTES, "timeout_s": CUDA_TIMEOUT_S}
SHOWN_MISTAKES = 3
BUILTIN = "builtin"
EPILOG = """Everything judged is kept in FOLDER/verdicts.jsonl at once: killed at any time, the same command continues,
also on another machine that has the folder. What --provider proposes is in FOLDER/proposals.jsonl and not written
again; with --report-only it is written and not judged, for a machine that can only judge. Exit codes: 0 done,
1 something failed, 2 wrong usage, such as a file that is not there, 3 this machine cannot judge."""


def add_kernelbench_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser(
        "kernelbench",
        help="judge a problem set's baselines and released kernels; tables beside the paper's",
        epilog=EPILOG,
    )
    parser.add_argument(
        "problems", help="KernelBench checkout, data set (name or folder), JSON lines, or folder with level1/NAME.py"
    )
    parser.add_argument(
        "--candidates", type=Path, nargs="+", default=[], metavar="FILE", help="JSON lines with kernels"
    )
    parser.add_argument("--provider", choices=(BUILTIN,), help="whose candidates to judge besides, on a GPU")
    parser.add_argument(
        "--proposals", type=count, default=4, metavar="K", help="candidates of --provider a problem (default: 4)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="verdicts and tables; continued")
    parser.add_argument(
        "--records",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="verdicts.parquet of earlier runs, to go on with",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or cuda for every GPU (default: cpu)")
    parser.add_argument("--ray", metavar="ADDRESS", help="judge on a Ray cluster: HOST:PORT, auto, or local")
    parser.add_argument(
        "--accelerator", nargs="+", default=[], metavar="NAME", help="models of GPU, such as H100 (default: all)"
    )
    parser.add_argument(
        "--tier", choices=("screen", "long"), default="screen", help="seconds, or the paper's half hour"
    )
    parser.add_argument(
        "--window-s", type=amount_of("seconds"), help="of the long tier, for each candidate (default: the half hour)"
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help="of all problems (default: fp32)"
    )
    parser.add_argument("--baselines", nargs="*", choices=BASELINES, help="default: all that the device can run")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="problems whose id contains one of these")
    parser.add_argument("--workers", type=count, default=1, help="candidates measured at once on a device (default: 1)")
    parser.add_argument(
        "--timeout-s", type=amount_of("seconds"), help="of one candidate (default: 120, on a GPU 300: builds count)"
    )
    parser.add_argument(
        "--stop-after-s", type=amount_of("seconds"), default=float("inf"), help="begin nothing new after so long"
    )
    parser.add_argument("--report-only", action="store_true", help="judge nothing, make the tables")
    parser.set_defaults(run=partial(_run, parser))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from flows.kernelbench.docket import Docket
    from flows.kernelbench.proposals import proposals

    if arguments.window_s is not None and arguments.tier != "long":
        parser.error("--window-s is of --tier long")
    if arguments.provider and not arguments.device.startswith("cuda"):
        parser.error(f"--provider {arguments.provider} proposes for a GPU: name it with --device")
    require_problems_there(parser, arguments.problems)
    require_there(parser, *arguments.candidates, *arguments.records)
    try:
        params = _params(arguments)
    except ParamsError as error:
        parser.error(str(error))
    make_out_folder(parser, arguments.out)
    problems = _read_problems(arguments)
    kernels = _read_kernels(arguments.candidates, problems)
    chosen = {name: each for name, each in problems.items() if _is_chosen(name, arguments.only)}
    if not chosen:
        raise RecordError(
            f"no problem has {' or '.join(arguments.only)} in its id; the first is {next(iter(problems))}"
        )
    wanted = [kernel for kernel in kernels if kernel.problem_id in chosen]
    with sigterm_as_exit(), Docket.open(arguments.out) as docket:
        for path in arguments.records:
            _take_over(path, problems, docket)
        if arguments.provider:
            wanted += proposals(chosen.values(), arguments.out, device=arguments.device, count=arguments.proposals)
        if arguments.report_only and not (docket.answers or arguments.provider):
            parser.error(f"no verdicts in {arguments.out} yet; give the command without --report-only first")
        failures = 0 if arguments.report_only else _judge(arguments, params, chosen, wanted, docket)
        _report(arguments, chosen, wanted, docket)
    return 1 if failures else 0


def _read_problems(arguments: argparse.Namespace) -> dict[str, Problem]:
    from tasks.problems.sources import read_problems

    source = read_problems(arguments.problems, precision=arguments.precision)
    _say(f"{len(source.problems)} problems of {source.problem_set}; {len(source.mistakes)} item(s) left out")
    _say_mistakes(source.mistakes)
    return dict(source.problems)


def _read_kernels(paths: Iterable[Path], problems: Mapping[str, Problem]) -> "list[ImportedKernel]":
    from tasks.variants.imported import read_candidates, summary

    kernels: list[ImportedKernel] = []
    for path in paths:
        imported = read_candidates(path, problems)
        _say(summary(imported, name=path.name))
        _say_mistakes(imported.mistakes)
        if claims := imported.impossible_claims:
            _say(f"{path.name}: {len(claims)} claim(s) are left out; the kernels are judged all the same")
            _say_mistakes(claims)
        kernels += imported.kernels
    return kernels


def _take_over(path: Path, problems: Mapping[str, Problem], docket: "Docket") -> None:
    if find_spec("polars") is None:
        raise RecordError(
            f"{path} cannot be read: polars is not installed here; --out brings its verdicts from elsewhere"
        )
    from flows.kernelbench.records import read_records

    answers = read_records(path)
    _say(f"{path.name}: {docket.take_over(answers, problems.values())} of {len(answers)} verdicts are news")


def _judge(
    arguments: argparse.Namespace,
    params: "JudgeParams",
    problems: Mapping[str, Problem],
    kernels: "Sequence[ImportedKernel]",
    docket: "Docket",
) -> int:
    """Judge what has no verdict yet; returns on how many the judge itself failed."""
    from flows.kernelbench.judging import Agenda, judge_agenda

    agenda = Agenda(
        problems=problems,
        kernels=kernels,
        baselines=arguments.baselines,
        history=_history(),
        stop_at=time.monotonic() + arguments.stop_after_s,
    )
    return judge_agenda(agenda, params, docket)


def _report(
    arguments: argparse.Namespace,
    problems: Mapping[str, Problem],
    kernels: "Sequence[ImportedKernel]",
    docket: "Docket",
) -> None:
    """Write tables and Parquet files and tell the history, where the libraries for that are installed."""
    if find_spec("polars") is None:
        _say("no tables: polars is not installed here; give the command with --report-only on a machine that has it")
        return
    from flows.kernelbench.report import write_report

    for path in write_report(arguments.out, problems, kernels, docket.answers):
        sys.stdout.write(f"{path}\n")
    history = _history()
    if history is not None:
        try:
            docket.tell(history, problems, kernels)
        except CudaL1Error as error:
            _say(f"warning: the history was not told: {error}")


def _history() -> Path | None:
    """The history of the project that the user stands in, if there is one and it can be opened here."""
    folder = project_folder()
    return folder / HISTORY if folder is not None and find_spec("duckdb") and find_spec("polars") else None


def _params(arguments: argparse.Namespace) -> "JudgeParams":
    from pydantic import ValidationError

    from tasks.judge.batch import changed
    from tasks.params import JudgeParams, LongParams

    window = {} if arguments.window_s is None else {"window_s": arguments.window_s}
    timeout_s = arguments.timeout_s or (TIMEOUT_S if arguments.device == "cpu" else CUDA_TIMEOUT_S)
    try:
        return changed(
            JudgeParams(),
            device=arguments.device,
            ray=arguments.ray,
            accelerators=tuple(arguments.accelerator),
            tier=arguments.tier,
            long=replace(LongParams(), **window),  # type: ignore[type-var]
            workers=arguments.workers,
            timeout_s=timeout_s,
            memory_bytes=MEMORY_BYTES,
        )
    except ValidationError as error:
        raise ParamsError(_explained(error.errors()[0])) from error


def _explained(mistake: "ErrorDetails") -> str:
    name, value = ".".join(map(str, mistake["loc"])), mistake["input"]
    if name == "device":
        return f"--device {value} is neither cpu nor cuda:N, such as cuda:0, nor cuda for every GPU"
    if name == "ray":
        return f"--ray {value} is neither HOST:PORT nor auto nor local"
    return mistake["msg"].removeprefix("Value error, ")


def _is_chosen(problem_id: str, words: Sequence[str]) -> bool:
    return not words or any(word in problem_id for word in words)


def _say_mistakes(mistakes: Sequence[str]) -> None:
    for words in mistakes[:SHOWN_MISTAKES]:
        _say(f"  {words}")
    if len(mistakes) > SHOWN_MISTAKES:
        _say(f"  ... and {len(mistakes) - SHOWN_MISTAKES} more")


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")
