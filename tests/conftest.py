"""How the tests are shared out: what is in one file stays together; what takes minutes is left to make test-long."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tasks.judge.fork_server import ForkServer

# As for all who train (tasks/training/__init__.py), which comes too late where a test has imported torch before: with
# as many processes of tests as cores, threads that wait in a busy loop make a training take ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LOOK_AT_THE_WHOLE_MACHINE = {"test_judge_kernels", "test_judge_leaves_nothing", "test_judge_lifecycle", "test_sandbox"}
"""Files that start the same hostile programs, or look for what such programs leave: never at the same time."""
TAKE_MINUTES = {
    "test_asked_to_end",
    "test_exact_resume",
    "test_faults_retrain",
    "test_followed_stages",
    "test_killed_stages",
    "test_lost_teams",
    "test_optimize_killed",
    "test_panel",
    "test_remotes",
    "test_retrain",
    "test_retrain_browser",
    "test_retrain_deployment",
    "test_services_postgres",
    "test_services_running",
    "test_several_processes",
}
"""Files that start servers, several processes or whole pipelines. `make test` leaves them out."""


def pytest_configure() -> None:
    # Syntax trees are hundreds of thousands of objects that stay for a while, as do libraries while they are imported:
    # fewer looks for garbage among them.
    gc.set_threshold(50_000, 20, 20)
    # A script that runs the tests in the background has them ignore Ctrl-C, and with them all that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before marks are selected by
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in TAKE_MINUTES:
            item.add_marker("long")
    # What takes one process the longest comes first, or the others would wait for it in the end.
    items.sort(key=lambda item: item.path.stem not in LOOK_AT_THE_WHOLE_MACHINE)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or libraries that count what is left at the end complain


@pytest.hookimpl(optionalhook=True)  # one process needs no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = Path(nodeid.partition("::")[0]).stem
            return "the whole machine" if name in LOOK_AT_THE_WHOLE_MACHINE else name

    return ByFile(config, log)


@pytest.fixture(scope="module", autouse=True)
def frozen_leftovers() -> None:
    """What earlier files have left is looked through for garbage once, and not by each training.

    Millions of objects of libraries, tests and syntax trees live as long as the process does. Each training ends with a
    look through all that is not frozen, which took longer than the training: a second after the tests of rewrites.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def is_capturing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a graph is being captured, where there is a processor only, which cannot say."""
    import torch  # not for tests that do without

    answers = [False]
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: answers[0])
    return answers


@pytest.fixture
def full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products as exact as float32 is, for sums in other orders to be equal.

    Where a processor has instructions for it, training has them rounded to bfloat16 (tasks/training/acceleration.py).
    """
    import torch  # not for tests that do without

    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda _: None)


@pytest.fixture(scope="module")
def fork_server() -> Iterator["ForkServer"]:
    """A judge's fork server without the judge. It takes a second to start: workers are a test's own, it is a file's."""
    from tasks.judge.fork_server import ForkServer  # not for tests that do without
    from tasks.judge.walls.scratch import ScratchFolder

    scratch = ScratchFolder.make()
    server = ForkServer(scratch.path)
    yield server
    server.close()
    scratch.remove()


@pytest.fixture(autouse=True)
def own_allocator() -> Iterator[None]:
    """Whoever trains sets PyTorch's allocator for this process and those it starts: for one test only."""
    before = os.environ.get("PYTORCH_ALLOC_CONF")
    yield
    os.environ.pop("PYTORCH_ALLOC_CONF", None)
    if before is not None:
        os.environ["PYTORCH_ALLOC_CONF"] = before


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What goes meanwhile has gone by itself."""
    gc.disable()
    yield
    gc.enable()
