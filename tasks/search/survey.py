"""What a user's file does when it is run: the form of its inputs and arguments. It runs in a process of its own."""

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import resource_tracker
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
    try:
        with outside_of_this_folder(), _uninterrupted():
            process.start()
        theirs.close()
        if not ours.poll(timeout_s):
            raise ProblemError(f"{file.path} takes longer than {timeout_s:g} s to make and call {file.class_name} once")
        answer = ours.recv()
    except EOFError:
        raise ProblemError(f"{file.path} ended its process while {file.class_name} was made and called") from None
    finally:
        ours.close()
        if process.pid is not None:
            process.kill()
            process.join()
    if isinstance(answer, str):
        raise ProblemError(f"{file.path}: {answer}")
    return Survey(**answer)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C is heard when this is over: then what was begun here is known, and can be ended.

    What is begun here does not hear it at all, of which it would print a traceback.
    """
    resource_tracker.ensure_running()  # which lets the signal through again when it has been started
    before, heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}), list[int]()
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    if is_main:  # other threads are not masked, and this one handles what they get
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in heard[:1]:
            signal.raise_signal(number)


def _run(connection: Connection, file: UserFile) -> None:
    from tasks.search.surveying import surveyed

    with contextlib.suppress(BrokenPipeError):  # of a command that was interrupted
        connection.send(surveyed(Path(file.path), file))
    connection.close()
