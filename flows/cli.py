"""The command line. Imports at the top stay light, so that --help answers at once."""

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from flows.commands.fits import add_fits_command
from flows.commands.hacks import add_hacks_command
from flows.commands.history import add_history_command
from flows.commands.judge import add_judge_command
from flows.commands.kernelbench import add_kernelbench_command
from flows.commands.optimize import add_optimize_command
from flows.commands.problems import add_problems_command
from flows.commands.report import add_report_command
from flows.commands.sql import add_sql_command
from flows.project import project_folder
from flows.stages import STAGES
from tasks.errors import CudaL1Error, MachineError

CANNOT = 3
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Returns:
        The exit code: 0 done, 1 a stage or a file failed, 2 wrong usage, 3 the machine cannot.
    """
    parsed = _parser().parse_args(arguments)
    try:
        status = int(parsed.run(parsed) or 0)
        if sys.stdout:  # which may be closed
            sys.stdout.flush()  # here it can be said that this fails, at interpreter exit not
        return status
    except MachineError as error:
        return _complain(error, CANNOT)
    except CudaL1Error as error:
        return _complain(error, 1)
    except BrokenPipeError:
        _drop_output()  # whoever read it has seen enough
        return 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        _drop_output()
        where = f"{error.filename} cannot be written" if error.filename else "the output cannot be written"
        return _complain(MachineError(f"{where}: {error.strerror}; free some space"), CANNOT)
    except KeyboardInterrupt:
        return 130


class _Version(argparse.Action):
    """The version of the installed package, looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"{parser.prog} {version('cuda-l1-pipeline')}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cuda-l1", description="Teach a language model to write faster PyTorch, Triton and CUDA code."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    repro = commands.add_parser("repro", help="run the stages that are out of date (dvc repro)")
    repro.add_argument("stage", nargs="?", choices=STAGES, help="only up to this stage")
    repro.set_defaults(run=_repro)

    pipeline = commands.add_parser("pipeline", help="the same as a Prefect flow, visible in its UI")
    pipeline.add_argument("--until", choices=STAGES, default=STAGES[-1], help="last stage to run")
    pipeline.set_defaults(run=_pipeline)

    add_problems_command(commands, enter_project=_enter_project)
    add_judge_command(commands)
    add_kernelbench_command(commands)
    add_optimize_command(commands)
    add_fits_command(commands)
    add_hacks_command(commands)
    add_history_command(commands)

    add_sql_command(commands)

    add_report_command(commands, enter_project=_enter_project)
    return parser


def _repro(arguments: argparse.Namespace) -> int:
    _enter_project()
    # dvc starts stages as `python`: that must be ours, also where the virtual environment is not activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    from flows.dvc_lock import mend_lock

    mend_lock()
    command = [sys.executable, "-m", "dvc", "repro"]
    return subprocess.call(command + ([arguments.stage] if arguments.stage else []))


def _pipeline(arguments: argparse.Namespace) -> int:
    _enter_project()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.call([sys.executable, "-m", "flows.pipeline", "--until", arguments.until])


def _enter_project() -> Path:
    """Make the project's folder the current one, from wherever below it the user stands."""
    folder = project_folder()
    if folder is None:
        raise MachineError(
            f"{Path.cwd()} is not inside a project (no dvc.yaml and params.yaml here or above); cd into one"
        )
    os.chdir(folder)
    return folder


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _drop_output() -> None:
    """What is still to be written: the interpreter would try it at its exit, and complain a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception, status: int) -> int:
    sys.stderr.write(f"{type(error).__name__}: {error}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
