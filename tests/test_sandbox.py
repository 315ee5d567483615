"""What a worker may see, reach, use up and leave behind, with all walls that this machine allows and with none."""

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tasks.judge import fork_server
from tasks.judge.fork_server import ForkServer
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.walls.crowd import LOOK_S
from tasks.judge.walls.scratch import PREFIX, ScratchFolder
from tasks.judge.wire import LOG_BYTES, DeadlineError, WireError
from tests.judge_builders import running

WALLS = {"all walls": "tasks.judge.zygote", "no walls": "tests.zygote_without_walls"}


@pytest.fixture(scope="module", params=WALLS.values(), ids=WALLS)
def server(request: pytest.FixtureRequest) -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "PROGRAM", request.param)
        patch.setenv("CUDA_L1_SECRET", "planted-secret")
        scratch = ScratchFolder.make()
        server = ForkServer(scratch.path)
        yield server
        server.close()
        scratch.remove()


@pytest.fixture
def worker(server: ForkServer) -> Iterator[WorkerProcess]:
    worker = spawned(server)
    yield worker
    worker.end()


def spawned(server: ForkServer) -> WorkerProcess:
    return server.spawn(arena_bytes=1 << 20, core=0, uid=None, memory_bytes=1 << 29, cpu_s=60)


def run(worker: WorkerProcess, code: str, *, timeout_s: float = 20.0) -> None:
    """Run code in the worker, as the top level of a program that defines a model."""
    text = np.frombuffer((code + "\nclass Model: pass\n").encode(), dtype=np.uint8)
    worker.arena.write(0, text)
    deadline = time.monotonic() + timeout_s
    worker.ask("load", deadline, num_bytes=text.size, filename="program.py", class_name="Model", precision="fp32")


def run_and_look(worker: WorkerProcess, code: str) -> None:
    """Run code and ask once more: where the referee has to look at what a worker uses, it looks before it asks."""
    run(worker, code)
    time.sleep(LOOK_S)
    run(worker, "pass")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def needs_wall(worker: WorkerProcess, wall: str) -> None:
    if wall not in worker.walls:
        pytest.skip(f"this machine allows no {wall} wall")


def test_a_program_runs_in_a_folder_that_it_may_write_to(worker: WorkerProcess) -> None:
    run(worker, "import os, tempfile; open('x', 'w').write('x'); tempfile.NamedTemporaryFile()")
    run(worker, "import os; assert os.path.expanduser('~').startswith(os.getcwd())")


def test_an_exception_is_an_answer_with_its_traceback(worker: WorkerProcess) -> None:
    with pytest.raises(Failure, match="raised") as failure:
        run(worker, "1 / 0")
    assert "ZeroDivisionError" in failure.value.text


@pytest.mark.parametrize(
    "code", ["import os; os._exit(0)", "import ctypes; ctypes.string_at(0)", "import os; os.abort()"]
)
def test_an_end_without_an_answer_is_noticed(worker: WorkerProcess, code: str) -> None:
    with pytest.raises(WireError):
        run(worker, code)


def test_a_hang_ends_at_the_deadline(worker: WorkerProcess) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        run(worker, "while True: pass", timeout_s=0.3)
    assert time.monotonic() - started < 5.0


def test_secrets_do_not_reach_a_worker(worker: WorkerProcess) -> None:
    run(worker, "import os; assert 'planted-secret' not in str(dict(os.environ))")


def test_what_it_prints_is_kept_for_people(worker: WorkerProcess) -> None:
    run(worker, "print('hello from inside')")
    assert "hello from inside" in worker.log


def test_memory_is_limited(worker: WorkerProcess) -> None:
    with pytest.raises(Failure) as failure:
        run(worker, "x = bytearray(1 << 30)")
    assert "MemoryError" in failure.value.text


def test_files_are_limited_in_number(worker: WorkerProcess) -> None:
    with pytest.raises(Failure, match="raised") as failure:
        run(worker, "import os\nfds = [os.dup(1) for _ in range(2000)]")
    assert "Too many open files" in failure.value.text


def test_only_its_own_connection_is_open(worker: WorkerProcess) -> None:
    run(worker, "import os; fds = [f for f in os.listdir('/proc/self/fd')]; assert len(fds) <= 5, fds")


@pytest.mark.parametrize("path", ["/etc/planted", "/usr/planted", str(Path(__file__).parent / "planted")])
def test_the_rest_is_read_only(worker: WorkerProcess, path: str) -> None:
    needs_wall(worker, "mount")
    with pytest.raises(Failure) as failure:
        run(worker, f"open({path!r}, 'w')")
    # What lies below a private folder, such as a checkout in /tmp, is not even there for a candidate.
    assert any(reason in failure.value.text for reason in ("Read-only file system", "No such file or directory"))
    assert not Path(path).exists()


def test_private_folders_are_empty(worker: WorkerProcess, tmp_path: Path) -> None:
    needs_wall(worker, "mount")
    (tmp_path / "token").write_text("planted-secret")
    run(worker, f"import os; assert not os.path.exists({str(tmp_path)!r})")


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(9):\n    with open(str(i), 'wb') as f: f.write(bytes(100 << 20))",
        "for i in range(70_000): open(str(i), 'w').close()",
    ],
    ids=["bytes", "number of files"],
)
def test_disk_is_limited(worker: WorkerProcess, code: str) -> None:
    with pytest.raises((Failure, WireError)) as error:
        run_and_look(worker, code)
    words = error.value.text if isinstance(error.value, Failure) else str(error.value)
    assert "No space left" in words or "MiB of disk" in words


def test_memory_of_all_processes_together_is_limited(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "TOGETHER_BYTES", 0)
    worker = spawned(server)
    with pytest.raises((Failure, WireError)):
        run(
            worker,
            "import os, time\n"
            "def child():\n"
            "    filled = b'x' * (200 << 20)\n"
            "    time.sleep(60)\n"
            "children = [os.fork() or child() for _ in range(5)]\n"
            "time.sleep(3)\n"
            "assert [os.waitpid(child, os.WNOHANG) for child in children] == [(0, 0)] * 5\n",
        )
    worker.end()


def test_processes_are_limited_in_number(worker: WorkerProcess) -> None:
    with pytest.raises((Failure, WireError)) as error:
        run(worker, "import os, time\nfor _ in range(150): os.fork() or time.sleep(60)\ntime.sleep(1)")
    words = error.value.text if isinstance(error.value, Failure) else str(error.value)
    assert "Resource temporarily unavailable" in words or "threads" in words


def test_a_flood_of_output_ends_at_the_deadline_and_takes_no_memory(worker: WorkerProcess) -> None:
    before = resident_bytes()
    with pytest.raises(DeadlineError):
        run(worker, "import os\nwhile True: os.write(1, b'x' * (1 << 20))", timeout_s=1.0)
    assert len(worker.log) <= LOG_BYTES
    assert resident_bytes() - before < 64 << 20


def test_devices_of_the_machine_are_out_of_reach(worker: WorkerProcess) -> None:
    needs_wall(worker, "mount")
    run(worker, "import os; assert not {'vda', 'sda', 'mem', 'kmsg'} & set(os.listdir('/dev')); open('/dev/null', 'w')")


def test_other_processes_cannot_be_seen(worker: WorkerProcess) -> None:
    needs_wall(worker, "pid")
    run(worker, "import os; assert [p for p in os.listdir('/proc') if p.isdigit()] == ['1']; assert os.getpid() == 1")


def test_no_network_interface_is_up(worker: WorkerProcess) -> None:
    needs_wall(worker, "network")
    run(worker, "import socket; assert [name for _, name in socket.if_nameindex()] == ['lo']")
    with pytest.raises(Failure):
        run(worker, "import socket; socket.create_connection(('127.0.0.1', 22), timeout=1)")


@pytest.mark.parametrize(
    ("family", "kind", "address"),
    [
        pytest.param("AF_UNIX", "SOCK_DGRAM", "'\\0here'", id="a name without a file"),
        pytest.param("AF_NETLINK", "SOCK_RAW, 2", "(4711, 0)", id="a number of the kernel's"),
    ],
)
def test_workers_cannot_talk_to_each_other(server: ForkServer, family: str, kind: str, address: str) -> None:
    first, second = spawned(server), spawned(server)
    try:
        needs_wall(first, "network")
        run(first, f"import socket\nkept = socket.socket(socket.{family}, socket.{kind})\nkept.bind({address})")
        with pytest.raises(Failure, match="raised") as failure:
            run(second, f"import socket\nsocket.socket(socket.{family}, socket.{kind}).sendto(b'x', {address})")
        assert "Connection refused" in failure.value.text
    finally:
        first.end()
        second.end()


def test_no_right_can_be_had_back(worker: WorkerProcess) -> None:
    run(
        worker,
        "for line in open('/proc/self/status'):\n    assert not line.startswith('CapEff') or int(line[7:], 16) == 0",
    )
    run(worker, "for line in open('/proc/self/status'):\n    assert not line.startswith('NoNewPrivs') or '1' in line")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the calls are those of x86")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("libc.syscall(248, b'user', b'name', b'text', 4, -4)", "Function not implemented"),
        ("libc.unshare(0x10000000)", "Operation not permitted"),
        ("libc.timer_create(1, ctypes.create_string_buffer(64), ctypes.byref(ctypes.c_void_p()))", "not implemented"),
        ("libc.syscall(425, 8, ctypes.create_string_buffer(128))", "Function not implemented"),
        ("libc.syscall(323, 1)", "Function not implemented"),
        ("libc.socket(40, 1, 0)", "Address family not supported"),
    ],
    ids=["keys", "user space", "timers", "work by the kernel", "faults that wait", "sockets of the machine"],
)
def test_calls_that_reach_beyond_a_worker_are_refused(worker: WorkerProcess, call: str, words: str) -> None:
    needs_wall(worker, "calls")
    with pytest.raises(Failure) as failure:
        run(
            worker,
            "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"if {call} < 0: raise OSError(os.strerror(ctypes.get_errno()))",
        )
    assert words in failure.value.text


def test_another_core_is_granted_in_words_only(worker: WorkerProcess) -> None:
    needs_wall(worker, "calls")
    run(worker, "import os\nos.sched_setaffinity(0, range(os.cpu_count()))\nassert len(os.sched_getaffinity(0)) == 1")


def test_an_event_loop_and_what_looks_for_a_name_have_their_sockets(worker: WorkerProcess) -> None:
    run(worker, "import asyncio\nassert asyncio.run(asyncio.sleep(0, 1)) == 1")
    run(worker, "import socket\nfor family in (1, 2, 10, 16): socket.socket(family, socket.SOCK_DGRAM)")


def test_threads_and_processes_start_as_ever(worker: WorkerProcess) -> None:
    run(
        worker,
        "import subprocess, threading\n"
        "thread = threading.Thread(target=lambda: subprocess.run(['true'], check=True))\n"
        "thread.start()\nthread.join()",
    )


def test_a_shared_segment_ends_with_its_worker(server: ForkServer, worker: WorkerProcess) -> None:
    needs_wall(worker, "ipc")
    found = "import ctypes; assert ctypes.CDLL(None).shmget(4711, 4096, {}) {} 0"
    first = spawned(server)
    run(first, found.format("0o1666", ">="))
    first.end()
    run(worker, found.format("0o666", "<"))


def test_the_end_of_a_worker_is_the_end_of_all_it_started(server: ForkServer) -> None:
    worker = spawned(server)
    run(
        worker,
        "import os, subprocess\n"
        "subprocess.Popen(['sleep', '613'], start_new_session=True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execvp('sleep', ['sleep', '613'])\n"
        "    os._exit(0)\n"
        "import time; time.sleep(0.3)\n",  # or they would be stopped before they are what they are to be
    )
    assert len(running("sleep 613")) == 2
    worker.end()
    assert not running("sleep 613")


def test_the_end_of_a_worker_leaves_no_folder_and_no_file_handle(server: ForkServer) -> None:
    before = len(os.listdir("/proc/self/fd"))
    worker = spawned(server)
    run(worker, "open('x', 'w').write('x')")
    worker.end()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [path for path in Path(server._scratch).iterdir() if path.name.startswith("worker-")]


def test_between_answers_a_worker_and_its_children_stand_still(worker: WorkerProcess) -> None:
    run(worker, "import os\nif os.fork() == 0:\n    while True: pass")

    def used_ticks() -> list[str]:
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        return [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11] for pid in children]

    first = used_ticks()
    time.sleep(0.2)
    assert len(first) == 1
    assert used_ticks() == first


def test_folders_of_killed_judges_are_swept_and_those_of_living_ones_are_not() -> None:
    living, killed = ScratchFolder.make(), ScratchFolder.make()
    os.close(killed.lock_fd)  # what the kernel does for a killed process
    third = ScratchFolder.make()
    assert living.path.exists()
    assert not killed.path.exists()
    assert third.path.name.startswith(PREFIX)
    living.remove()
    third.remove()
    assert not living.path.exists()
