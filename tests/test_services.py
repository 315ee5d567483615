"""What `make up` starts and what `make down` ends, with made-up services."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from flows.services import processes as service_processes
from flows.services.command import DEAD, RUNNING, SILENT, STOPPED, down, state, table, up
from flows.services.processes import forget, recorded
from tasks.errors import MachineError
from tests.service_builders import FAKE, fake, free_ports, is_gone, processes_of

ROOT = Path(__file__).parents[1]


@pytest.fixture
def running(tmp_path):
    """A folder for records, and a function that starts services there; they are ended after the test."""

    def start(*wanted, timeout_s=60.0):
        up(wanted, tmp_path, timeout_s=timeout_s)

    yield tmp_path, start
    down(tmp_path, patience_s=0.0)


def pid_of(service, folder):
    return recorded(service.name, folder).pid


def eventually(is_so, timeout_s=20.0):
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_is_up_answers_and_outlives_who_started_it(running):
    folder, start = running
    one, two = fake("one"), fake("two", needs=("one",))
    start(one, two)
    assert [state(service, folder) for service in (one, two)] == [RUNNING, RUNNING]
    assert os.getsid(pid_of(one, folder)) == pid_of(one, folder) != os.getsid(0)


def test_a_process_whose_environment_cannot_be_read_yet_has_not_ended(running, monkeypatch):
    folder, start = running
    holders, unreadable = service_processes._holders, [True, True, True]

    def found(token):
        return [] if unreadable and unreadable.pop() else holders(token)

    monkeypatch.setattr(service_processes, "_holders", found)
    one = fake("one")
    start(one)
    assert state(one, folder) == RUNNING


def test_up_again_starts_nothing(running):
    folder, start = running
    one = fake("one")
    start(one)
    before = recorded("one", folder)
    start(one)
    assert recorded("one", folder) == before


def test_up_again_starts_only_what_is_dead(running):
    folder, start = running
    one, two = fake("one"), fake("two")
    start(one, two)
    kept, killed = pid_of(one, folder), pid_of(two, folder)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: state(two, folder) == DEAD)
    start(one, two)
    assert pid_of(one, folder) == kept
    assert pid_of(two, folder) != killed
    assert state(two, folder) == RUNNING


def test_children_of_a_dead_service_are_ended_before_it_starts_again(running):
    folder, start = running
    one = fake("one", "far-child")
    start(one)
    (orphan,) = [process for process in processes_of("one", folder) if process.pid != pid_of(one, folder)]
    os.kill(pid_of(one, folder), signal.SIGKILL)
    eventually(lambda: state(one, folder) == DEAD)
    start(one)
    assert is_gone(orphan)


@pytest.mark.parametrize(
    ("ways", "patience_s"),
    [
        pytest.param((), 30.0, id="one process"),
        pytest.param(("far-child",), 30.0, id="a child in a session of its own"),
        pytest.param(("stubborn",), 0.5, id="deaf to polite words"),
        pytest.param(("stubborn", "far-child"), 0.5, id="both"),
    ],
)
def test_down_ends_all_processes_of_a_service(running, ways, patience_s):
    folder, start = running
    one = fake("one", *ways)
    start(one)
    processes = processes_of("one", folder)
    assert len(processes) == 1 + ("far-child" in ways)
    assert down(folder, patience_s=patience_s) == ["one"]
    assert all(is_gone(process) for process in processes)
    assert state(one, folder) == STOPPED


def test_down_leaves_alone_who_was_not_started_by_up(running):
    """Neither one that looks the same, nor one that has the pid of a service by now."""
    folder, start = running
    one = fake("one")
    start(one)
    with subprocess.Popen([sys.executable, str(FAKE), str(free_ports(1)[0])]) as stranger:
        path = folder / "one.json"
        remembered = json.loads(path.read_text())
        service = processes_of("one", folder)[0]
        path.write_text(json.dumps(remembered | {"pid": stranger.pid}))
        assert state(one, folder) == DEAD  # its leader is not the stranger
        down(folder, patience_s=5.0)
        assert stranger.poll() is None
        assert is_gone(service)
        stranger.kill()


def test_records_of_before_a_restart_of_the_machine_are_no_services(running):
    folder, start = running
    one = fake("one")
    start(one)
    of_before = (folder / "one.json").read_text().replace(recorded("one", folder).token, "0" * 32)
    down(folder)
    (folder / "one.json").write_text(of_before.replace(str(json.loads(of_before)["pid"]), str(os.getpid())))
    assert state(one, folder) == DEAD
    start(one)
    assert state(one, folder) == RUNNING


def test_down_ends_also_what_nobody_wants_by_now(running):
    """Such as an MLflow of ours, after MLFLOW_TRACKING_URI was set to somebody else's."""
    folder, start = running
    start(fake("one"), fake("two"))
    processes = [*processes_of("one", folder), *processes_of("two", folder)]
    start(fake("three"))
    assert down(folder) == ["three", "two", "one"]
    assert all(is_gone(process) for process in processes)


def test_down_twice_is_no_error(running):
    folder, start = running
    one = fake("one")
    start(one)
    assert down(folder) == ["one"]
    assert down(folder) == []


def test_a_port_in_use_is_named_with_its_holder_and_nothing_is_started(running):
    folder, start = running
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, str(FAKE), str(port)]) as holder:
        eventually(lambda: answers(port))
        with pytest.raises(MachineError, match=rf"port {port} for two is held by process {holder.pid} .*TWO_PORT"):
            start(fake("one"), fake("two", port=port))
        assert recorded("one", folder) is None
        holder.kill()


def answers(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    with suppress(OSError):
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    return False


def test_a_service_that_ends_at_its_start_is_quoted(running):
    _, start = running
    with pytest.raises(MachineError, match=r"one ended at its start.*\n.*no luck today"):
        start(fake("one", "dies"))


def test_a_service_that_never_answers_is_waited_for_with_a_limit(running):
    folder, start = running
    one = fake("one", "silent")
    with pytest.raises(MachineError, match=r"one runs, but did not answer at .* within 0.5 s"):
        start(one, timeout_s=0.5)
    assert state(one, folder) == SILENT


def test_a_service_is_not_started_before_what_it_needs_answers(running):
    folder, start = running
    with pytest.raises(MachineError, match="one runs, but"):
        start(fake("one", "silent"), fake("two", needs=("one",)), timeout_s=0.5)
    assert recorded("two", folder) is None


def test_a_running_service_is_not_moved_to_another_port_unasked(running):
    folder, start = running
    one = fake("one")
    start(one)
    with pytest.raises(MachineError, match=r"runs at .* asks for port .* `make down`"):
        up([replace(one, port=free_ports(1)[0])], folder)
    assert state(one, folder) == RUNNING


def test_how_a_service_is_is_asked_where_it_runs_whatever_port_is_wanted_now(running):
    folder, start = running
    one = fake("one")
    start(one)
    elsewhere = replace(one, port=free_ports(1)[0])
    assert state(elsewhere, folder) == RUNNING
    assert one.url in table([elsewhere], folder)


def test_the_table_has_a_line_for_each_service(running):
    folder, start = running
    one, two = fake("one"), fake("two")
    start(one)
    header, first, second = table([one, two], folder).splitlines()
    assert header.split() == ["service", "state", "pid", "address", "log"]
    assert first.split() == ["one", "running", str(pid_of(one, folder)), one.url, str(folder / "one.log")]
    assert second.split() == ["two", "stopped", "-", two.url, str(folder / "two.log")]


def test_a_damaged_record_is_refused_with_its_name(running):
    folder, start = running
    (folder / "one.json").write_text('{"pid"')
    with pytest.raises(MachineError, match=r"one\.json cannot be read"):
        start(fake("one"))
    forget("one", folder)


def test_two_at_once_do_not_mix(running):
    folder, start = running
    with (folder / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(MachineError, match="another `make up`"):
            start(fake("one"))


def test_outside_of_a_project_the_command_says_so(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "flows.services", "up"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "is not inside a project" in done.stderr
