"""The command `cuda-l1 judge`: one candidate, or a file of cases. Imports at the top stay light."""

import argparse
import contextlib
import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from flows.project import project_folder
from tasks.errors import MachineError, ParamsError, RecordError, RetryableError
from tasks.problems.problem import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tqdm import tqdm

    from flows.commands.verdict_file import VerdictFile
    from tasks.judge.any_judge import AnyJudge
    from tasks.judge.cases import Case
    from tasks.params import JudgeParams

    Rows = Generator[dict[str, Any], None, None]

USAGE = 2
TIMEOUT_S, CUDA_TIMEOUT_S = 90.0, 240.0
TIERS = ("screen", "long")
EPILOG = """exit codes: 0 every case has a verdict, 2 wrong usage, 3 this machine cannot judge (a killed or failed batch
continues when the same command is given again)"""


def add_judge_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser(
        "judge", help="judge one candidate file against a reference file, or many cases", epilog=EPILOG
    )
    parser.add_argument("reference", nargs="?", type=Path, help="file with Model, get_inputs and get_init_inputs")
    parser.add_argument("candidate", nargs="?", type=Path, help="file with ModelNew")
    parser.add_argument("--device", type=_device, help="cpu or cuda:N (default: what params.yaml says, else cpu)")
    parser.add_argument("--tier", choices=TIERS, help="seconds for a reward, or the paper's half hour for a claim")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help="of cases that name none (default: fp32)"
    )
    parser.add_argument("--json", action="store_true", help="print the whole verdict as one line of JSON")
    parser.add_argument(
        "--batch", type=Path, metavar="CASES.jsonl", help='lines {"id", "ref", "candidate"}; paths or sources'
    )
    parser.add_argument(
        "--out", type=Path, metavar="VERDICTS.jsonl", help="one verdict a line, in the order of the cases; continued"
    )
    parser.add_argument(
        "--timeout-s", type=amount_of("seconds"), help="of one candidate (default: 90, on a GPU 240: builds count)"
    )
    parser.add_argument("--workers", type=count, help="cases measured at once (default: what params.yaml says, else 1)")
    parser.set_defaults(run=partial(_run, parser))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    is_batch = arguments.batch is not None
    if is_batch == (arguments.candidate is not None):
        parser.error("give either REFERENCE and CANDIDATE or --batch CASES.jsonl --out VERDICTS.jsonl")
    if is_batch != (arguments.out is not None) or (is_batch and arguments.reference):
        parser.error("--batch and --out go together, and without REFERENCE and CANDIDATE")
    if arguments.workers and not is_batch:
        parser.error("--workers is for --batch")
    if arguments.json and is_batch:
        parser.error("--json is for a single candidate; --out is JSON lines anyway")
    with sigterm_as_exit():
        try:
            return _judge_batch(arguments) if is_batch else _judge_one(arguments)
        except (ParamsError, RecordError) as error:
            sys.stderr.write(f"{parser.prog}: {error}\n")
            return USAGE


def _judge_one(arguments: argparse.Namespace) -> int:
    from tasks.judge.batch import changed, judge_cases
    from tasks.judge.cases import Case, Text

    reference, candidate = (Text.of_file(path) for path in (arguments.reference, arguments.candidate))
    for text in (reference, candidate):
        if text.mistake:
            raise RecordError(text.mistake)
    case = Case(
        case_id=str(arguments.candidate), reference=reference, candidate=candidate, precision=arguments.precision
    )
    params, seed = _params(arguments, workers=1)
    if params.is_spread:  # a single case needs no cluster
        params = changed(params, ray=None, accelerators=(), device="cpu" if params.device == "cpu" else "cuda:0")
    with _open_judge(params) as judge, _bar(total=1.0, unit="window") as bar:

        def show(share: float, words: str) -> None:
            bar.update(share - bar.n)
            bar.set_postfix_str(words)

        row = next(judge_cases(judge, [case], params=params, seed=seed, on_progress=show))
    sys.stdout.write(json.dumps(row) + "\n" if arguments.json else _in_words(row))
    return 0


def _judge_batch(arguments: argparse.Namespace) -> int:
    from flows.commands.verdict_file import VerdictFile
    from tasks.judge.cases import read_cases
    from tasks.judge.timing import protocol_of

    cases = read_cases(arguments.batch, precision=arguments.precision)
    if arguments.out.exists() and (not arguments.out.is_file() or arguments.out.samefile(arguments.batch)):
        raise RecordError(f"--out {arguments.out} must be a file of its own")
    params, seed = _params(arguments, workers=arguments.workers)
    with VerdictFile.open(arguments.out, cases) as file:
        statuses = Counter(row["status"] for row in file.rows)
        if len(file.rows) < len(cases):
            with contextlib.closing(_rest(file, cases, params, seed)) as rows:
                for row in rows:
                    file.append(row)
                    statuses[row["status"]] += 1
        elif cases:
            protocol = protocol_of(device=params.device, tier=params.tier)
            file.require_begun_on(device=_model(params), protocol=protocol, tier=params.tier)
    found = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    noun = "verdict" if len(cases) == 1 else "verdicts"
    sys.stderr.write(f"{len(cases)} {noun} in {arguments.out}: {found or 'there were no cases'}\n")
    return 0


def _model(params: "JudgeParams") -> str:
    """The model of what would be judged on."""
    from tasks.judge.environment import model_of

    if not params.is_spread:
        return model_of(params.device)
    with _open_judge(params) as judge:  # only a cluster knows its devices
        return judge.device


def _rest(file: "VerdictFile", cases: "list[Case]", params: "JudgeParams", seed: int) -> "Rows":
    """Verdicts on the cases that have none yet."""
    from tasks.judge.batch import judge_cases

    num_done = len(file.rows)
    with _open_judge(params) as judge, _bar(total=len(cases), initial=num_done, unit="case") as bar:
        file.require_begun_on(device=judge.device, protocol=judge.protocol, tier=params.tier)

        def show(share: float, words: str) -> None:
            bar.set_postfix_str(f"{share:.0%} {words}")

        verdicts = judge_cases(judge, cases[num_done:], params=params, seed=seed, on_progress=show)
        with contextlib.closing(verdicts):
            for row in verdicts:
                yield row
                bar.update()


def _bar(*, total: float, unit: str, initial: int = 0) -> "tqdm[NoReturn]":
    from tqdm import tqdm

    # disable=None: only where somebody watches a terminal.
    return tqdm(total=total, initial=initial, desc="judge", unit=unit, disable=None, dynamic_ncols=True)


def _params(arguments: argparse.Namespace, *, workers: int | None) -> "tuple[JudgeParams, int]":
    """Params and seed of the project that the user stands in, or the standard ones; with what was asked for."""
    from tasks.judge.batch import changed
    from tasks.params import JudgeParams, load_params

    folder = project_folder()
    whole = load_params(folder / "params.yaml") if folder else None
    judge, seed = (whole.judge, whole.seed) if whole else (JudgeParams(), 0)
    device = arguments.device or judge.device
    # The limit of params.yaml is for rewards by the thousand; here somebody waits for one that may have to be built.
    timeout_s = arguments.timeout_s or (TIMEOUT_S if device == "cpu" else CUDA_TIMEOUT_S)
    changes = {"device": device, "tier": arguments.tier, "workers": workers, "timeout_s": timeout_s}
    asked = {name: value for name, value in changes.items() if value is not None}
    if arguments.device:  # here, and not on the cluster of params.yaml
        asked |= {"ray": None, "accelerators": ()}
    return changed(judge, **asked), seed


@contextlib.contextmanager
def _open_judge(params: "JudgeParams") -> "Iterator[AnyJudge]":
    from flows.panels.judges import open_judge

    with contextlib.ExitStack() as stack:
        try:
            judge = stack.enter_context(open_judge(params))
        except (RetryableError, OSError) as error:
            raise MachineError(f"the judge does not start: {error}") from error
        sys.stderr.write(f"judging on {judge.device} ({params.device}) behind walls: {judge.environment['walls']}\n")
        yield judge


def _in_words(row: dict[str, Any]) -> str:
    lines = [f"{row['status']}: {row['detail']}" if row["detail"] else row["status"]]
    if row["speedup"] is not None:
        spread = f"{row['speedup_low']:.2f} to {row['speedup_high']:.2f}"
        lines.append(f"speedup {row['speedup']:.2f}x ({spread}) against {row['baseline']}")
    counts = Counter((check["passed"], check["name"], check["evidence"]) for check in row["checks"])
    for (passed, name, evidence), count in counts.items():
        times = f" ({count} times)" if count > 1 else ""
        lines.append(f"  {'passed' if passed else 'FAILED'}  {name}{times}  {evidence}".rstrip())
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def sigterm_as_exit() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C does, so that the judge ends its processes; with the status a shell expects."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _device(text: str) -> str:
    if text == "cuda":
        raise argparse.ArgumentTypeError(
            "'cuda' is neither cpu nor cuda:N, such as cuda:0; for a batch on all GPUs leave --device out, and set "
            "judge.device: cuda in params.yaml"
        )
    return device(text)


def device(text: str) -> str:
    if not re.fullmatch(r"cpu|cuda:\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither cpu nor cuda:N, such as cuda:0")
    return text


def amount_of(unit: str, *, may_be_zero: bool = False) -> Callable[[str], float]:
    """Reads a number above 0, or from 0 on; what is wrong about another is told in that unit."""

    def read(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = -1.0
        if not (0 < amount < float("inf") or (may_be_zero and amount == 0)):
            raise argparse.ArgumentTypeError(
                f"{text!r} is {'neither 0 nor' if may_be_zero else 'not'} a number of {unit} above 0"
            )
        return amount

    return read


def count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)
