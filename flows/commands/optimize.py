"""The command `cuda-l1 optimize`: a user's own module in, a faster proven one out. Imports at the top stay light."""

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flows.commands.judge import amount_of, count, device
from flows.commands.out_file import write_out
from flows.commands.usage import make_out_folder, require_no_folder, require_there
from tasks.errors import ProblemError
from tasks.judge.baselines import BASELINES, usable_baselines

if TYPE_CHECKING:
    from flows.optimizing.display import Display
    from flows.optimizing.outcome import Outcome, Settings
    from flows.optimizing.providers import Chosen
    from tasks.search.survey import Survey
    from tasks.search.texts import ProblemTexts
    from tasks.search.user_file import UserFile

NOTHING_FASTER, INTERRUPTED = 4, 130
STARTING = "starting the judge"
EXACT = ("fp32", "tf32")  # the others are judged under autocast, where a drop-in leaves the work to the original
BUILTIN = "builtin"
EXEMPLARS = ("buckets", "islands")
MINUTES = 5.0
WINDOW_SHARE = 0.1
MAX_WORKERS = 4
EPILOG = """exit codes: 0 a faster module is written, 1 the file cannot be used, 2 wrong usage, such as a file that is
not there, 3 this machine cannot judge, 4 nothing was proven faster than the best baseline, and no module is
written, 130 interrupted twice, or before the search had begun. Ctrl-C once ends the search and keeps the best so far;
the same command continues a run that was killed."""


def add_optimize_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command with the parser of the command line."""
    parser = commands.add_parser("optimize", help="make a module of your own faster", epilog=EPILOG)
    parser.add_argument("module", metavar="PATH[:Class]", help="file with the module and a function example_inputs")
    parser.add_argument(
        "--minutes",
        type=amount_of("minutes"),
        default=MINUTES,
        help=f"of searching and of judging the best again; some minutes may come on top (default: {MINUTES:g})",
    )
    parser.add_argument("--candidates", type=count, help="at most so many are screened (default: as time allows)")
    parser.add_argument("--device", type=device, default="cpu", help="cpu or cuda:N (default: cpu)")
    parser.add_argument("--precision", choices=EXACT, default=EXACT[0], help="how exactly (default: fp32)")
    parser.add_argument(
        "--provider",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"who writes candidates: {BUILTIN}, compiler (what torch.compile emits for a CPU), a language model under "
        "generate_variants.generators of params.yaml, policy:PATH, or a folder of files that define ModelNew; may be "
        f"repeated (default: {BUILTIN})",
    )
    parser.add_argument(
        "--exemplars",
        choices=EXEMPLARS,
        default=EXEMPLARS[0],
        help="what prompts to a language model or policy show, at different speeds: of all that is right, or of one of "
        f"contrastive_rl.islands populations (default: {EXEMPLARS[0]})",
    )
    parser.add_argument(
        "--max-usd", type=amount_of("USD"), help="that language models may cost, in all runs with --out"
    )
    parser.add_argument(
        "--baselines", nargs="+", choices=BASELINES, help="what must be beaten (default: all that the device allows)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="for all that is written (default: STEM-optimized, or STEM-Class-optimized where a class is named)",
    )
    parser.add_argument(
        "--window-s",
        type=amount_of("seconds", may_be_zero=True),
        help="of the last timing; 0 for none (default: a tenth of --minutes)",
    )
    parser.add_argument("--workers", type=count, help="candidates judged at once (default: the cores, at most 4)")
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    parser.set_defaults(run=partial(_run, parser))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    try:
        file, facts, outcome, out = _found(parser, arguments)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"interrupted {str(interrupt) or 'before anything was judged; nothing is written'}\n")
        return INTERRUPTED
    with _unhurried():
        return _write(file, facts, outcome, out)


def _found(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> "tuple[UserFile, Survey, Outcome, Path]":
    """The file, what is known from running it, what came of the search, and the folder for it.

    Raises:
        KeyboardInterrupt: with words about when that was, where something had been judged.
    """
    from rich.console import Console

    from flows.optimizing.display import Display
    from flows.optimizing.providers import chosen
    from tasks.search.foreseen import fast_once, obstacle, require_name_of_its_own
    from tasks.search.survey import survey
    from tasks.search.texts import problem_texts
    from tasks.search.user_file import read_user_file

    path, class_name = _module_of(arguments.module)
    require_there(parser, path)
    require_no_folder(parser, path)
    usable_baselines(arguments.device, arguments.baselines)
    file = read_user_file(path, class_name or None)
    require_name_of_its_own(file)
    out = arguments.out or Path(f"{file.path.stem}{class_name and '-'}{class_name}-optimized")
    _require_nothing_lost(parser, file, out)
    try:
        providers = chosen(arguments.provider or [BUILTIN], max_usd=arguments.max_usd, exemplars=arguments.exemplars)
    except ProblemError as error:
        parser.error(str(error))
    settings = _settings(arguments)
    with _out_folder(parser, out), Display(Console(stderr=True), seconds=settings.seconds) as display:
        display.begin(f"calling {file.class_name} of {file.path.name} on its example inputs")
        facts = survey(file)
        texts = problem_texts(file, facts, precision=arguments.precision)
        display.begin("looking what a drop-in has to compare")
        if no_drop_in := obstacle(file, facts):
            sys.stderr.write(
                f"no drop-in can be written for {file.class_name}, so what follows only tells whether it can be "
                f"faster; change this to get one: {no_drop_in}\n"
            )
        if slow := fast_once(file, facts):
            sys.stderr.write(f"a drop-in for {file.class_name} would be fast once, since {slow}\n")
        try:
            outcome = _optimized(file, facts, texts, providers, out, arguments, settings, display)
        except KeyboardInterrupt:
            if display.step == STARTING:
                raise
            words = f"while {display.step}; nothing is written, and the same command goes on from what was judged"
            raise KeyboardInterrupt(words) from None
    outcome.no_drop_in = no_drop_in or ""
    if slow and outcome.unwritten:
        outcome.unwritten += f"; a drop-in would be fast once, since {slow}"
    return file, facts, outcome, out


def _module_of(text: str) -> tuple[Path, str]:
    """File and class of PATH[:Class]; the file may have colons in its name."""
    path, colon, class_name = text.rpartition(":")
    if not colon or Path(text).exists() or (class_name and not class_name.isidentifier()):
        return Path(text), ""
    return Path(path), class_name


@contextlib.contextmanager
def _out_folder(parser: argparse.ArgumentParser, out: Path) -> Iterator[None]:
    """The folder for all that is written; what was made for it is gone where it ends in an error with nothing in it."""
    from flows.optimizing.answers import ANSWERS
    from flows.optimizing.judging import JOURNAL

    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    make_out_folder(parser, out)
    try:
        yield
    except BaseException:
        for journal in (out / JOURNAL, out / ANSWERS):
            if made and journal.exists() and not journal.stat().st_size:
                journal.unlink()
        with contextlib.suppress(OSError):  # in which something is
            for folder in made:
                folder.rmdir()
        raise


def _require_nothing_lost(parser: argparse.ArgumentParser, file: "UserFile", out: Path) -> None:
    """End the command where what it writes would take the place of something that it has not written."""
    from flows.optimizing.own_files import foreign_in

    if out.resolve() == file.path.parent:
        parser.error(f"--out {out} is where {file.path.name} is, which would be overwritten")
    there = out / file.path.name
    if there.exists() and not _is_drop_in(there, file.class_name):
        parser.error(
            f"--out {out} has a {there.name} that is no drop-in for {file.class_name}, which would be "
            f"overwritten; move it away, or name another folder"
        )
    if foreign := foreign_in(out):
        parser.error(
            f"--out {out} has a {foreign} that this command has not written, and would overwrite; move it away, or "
            f"name another folder"
        )


def _is_drop_in(path: Path, class_name: str) -> bool:
    """Whether an earlier run of this command wrote the file for the class."""
    from tasks.search.drop_in import MARK

    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return MARK in text and f"class {class_name}(Reference{class_name}" in text


def _optimized(
    file: "UserFile",
    facts: "Survey",
    texts: "ProblemTexts",
    providers: "Chosen",
    out: Path,
    arguments: argparse.Namespace,
    settings: "Settings",
    display: "Display",
) -> "Outcome":
    from flows.optimize import SCREEN, Optimization
    from flows.optimizing.answers import Answers
    from flows.optimizing.judging import Judges, Record
    from flows.optimizing.providers import Providers
    from tasks.search.clock import Clock
    from tasks.search.contributions import contributions

    display.begin(STARTING)
    answers = Answers(out, [texts.judged.problem_hash, arguments.device, str(settings.seed)])
    with (
        contextlib.closing(answers),
        Providers(
            providers,
            texts.shown,
            folder=out,
            answers=answers,
            device=arguments.device,
            seed=settings.seed,
            seconds=settings.seconds,
            candidates=settings.candidates,
            prefix=texts.prefix,
        ) as proposing,
        Judges(settings.judge, window_s=settings.window_s) as judges,
    ):
        judge = judges.at(SCREEN)
        asked = [texts.judged.problem_hash, judge.device, judge.protocol, json.dumps(dict(judge.environment))]
        record = Record(out, [*asked, str(settings.judge), str(settings.window_s), str(settings.seed)])
        clock = Clock()
        optimization = Optimization(
            file,
            facts,
            texts,
            settings=settings,
            judges=judges,
            record=record,
            proposers=proposing.proposers,
            clock=clock,
            on_change=display.show,
            on_step=display.begin,
        )

        def stop() -> None:
            optimization.stop()
            display.interrupt()

        display.watch(clock)
        with contextlib.closing(record), _first_interrupt(stop, settings.window_s):
            outcome = optimization.run()
        outcome.asked, names = answers.asked, [each.name for each in proposing.proposers]
        outcome.contributions = contributions(names, outcome.progress.scored, answers.asked, proposing.spent())
        return outcome


def _settings(arguments: argparse.Namespace) -> "Settings":
    import os

    from flows.commands.kernelbench import CUDA_LIMITS
    from flows.optimizing.outcome import Settings
    from tasks.judge.batch import changed
    from tasks.params import JudgeParams

    seconds = 60 * arguments.minutes
    window_s = WINDOW_SHARE * seconds if arguments.window_s is None else arguments.window_s
    limits = CUDA_LIMITS if arguments.device.startswith("cuda") else {}
    workers = arguments.workers or min(len(os.sched_getaffinity(0)), MAX_WORKERS)
    return Settings(
        seconds=seconds,
        window_s=window_s,
        judge=changed(JudgeParams(), device=arguments.device, workers=workers, **limits),
        candidates=arguments.candidates,
        baselines=tuple(arguments.baselines) if arguments.baselines else None,
        seed=arguments.seed,
    )


def _write(file: "UserFile", facts: "Survey", outcome: "Outcome", out: Path) -> int:
    """The drop-in, if there is one, the report and the verdict; the exit code."""
    from flows.optimizing.document import verdict_document
    from flows.optimizing.own_files import REPORT, VERDICT
    from tasks.search.report import forms_in_words, render

    written, winner = out / file.path.name, outcome.winner
    report = render(
        file,
        winner=winner[1] if winner else None,
        claimed=outcome.speedup,
        baseline=outcome.baseline,
        baselines=outcome.baselines,
        not_judged=outcome.not_judged,
        scored=outcome.progress.scored,
        asked=outcome.asked,
        brought=outcome.contributions,
        failed=outcome.progress.failed,
        gradients=outcome.gradients,
        unsettled=outcome.unsettled,
        unwritten=outcome.unwritten,
        beaten=outcome.beaten_by_a_baseline,
        shapes=forms_in_words(facts),
        seconds=outcome.seconds,
        interrupted=outcome.interrupted,
        no_drop_in=outcome.no_drop_in,
    )
    if winner is not None:
        write_out(written, winner[0].source.encode())
    elif _is_drop_in(written, file.class_name):
        written.unlink()  # nothing stands here that this run does not vouch for
        sys.stderr.write(f"{written}, the drop-in of an earlier run, is removed: this run does not prove it\n")
    write_out(out / REPORT, report.encode())  # whole: half a report would not be known for our own
    document = json.dumps(verdict_document(file, outcome), indent=1, sort_keys=True)
    write_out(out / VERDICT, f"{document}\n".encode())
    sys.stdout.write("\n".join(line for line in report.split("## ")[0].splitlines() if line) + "\n")
    sys.stdout.write(f"{written if winner else out / REPORT}\n")
    return 0 if winner else NOTHING_FASTER


@contextlib.contextmanager
def _unhurried() -> Iterator[None]:
    """What takes a moment is not interrupted."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _first_interrupt(stop: Callable[[], None], window_s: float) -> Iterator[None]:
    """The first Ctrl-C only stops the search, and says what is still to be done; the second is the usual one."""
    long = f", it is timed in a window of {window_s:g} s" if window_s else ""
    before = signal.getsignal(signal.SIGINT)

    def ask(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        sys.stderr.write(
            f"\nno more candidates; what is begun is finished, and as far as that is not done, the best so far are "
            f"looked at again, their drop-in is judged and compared with the baselines{long}, and its gradients are "
            f"compared; usually two or three minutes (Ctrl-C once more ends at once, and nothing is written)\n"
        )
        stop()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
