"""What a user's file does when it is run: the form of its inputs and arguments. It runs in a process of its own."""

import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tasks.errors import ProblemError
from tasks.safe_path import outside_of_this_folder
from tasks.search.user_file import UserFile

TIMEOUT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """Forms, as `surveying.form_of` describes them, of what the file's functions return."""

    inputs: tuple[Any, ...]
    """Forms of the positional arguments of a call."""
    named_inputs: Mapping[str, Any]
    constructor: tuple[Any, ...] | None
    """Arguments of the constructor in the order of its parameters, where they are plain data; else None."""


def survey(file: UserFile, *, timeout_s: float = TIMEOUT_S) -> Survey:
    """Run the user's file: make the module, call it once on its example inputs.

    Raises:
        ProblemError: if something of that fails, or takes longer than the limit.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, file), daemon=True)
    with outside_of_this_folder():
        process.start()
    theirs.close()
    try:
        if not ours.poll(timeout_s):
            raise ProblemError(f"{file.path} takes longer than {timeout_s:g} s to make and call {file.class_name} once")
        answer = ours.recv()
    except EOFError:
        raise ProblemError(f"{file.path} ended its process while {file.class_name} was made and called") from None
    finally:
        ours.close()
        process.kill()
        process.join()
    if isinstance(answer, str):
        raise ProblemError(f"{file.path}: {answer}")
    return Survey(**answer)


def _run(connection: Connection, file: UserFile) -> None:
    from tasks.search.surveying import surveyed

    connection.send(surveyed(Path(file.path), file))
    connection.close()
