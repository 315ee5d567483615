"""Machines that are to train together find each other, or say in words why not; who waits hears that it is to end."""

import re
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stage_runs import free_address, run, said_no, started, workspace, write_taught
from torch.distributed import TCPStore

from flows.following import POLL_S
from flows.parts import launching
from flows.parts.gathering import INVITATION, TOKEN, Invitation
from tasks.errors import MachineError
from tasks.params import EngineParams, load_params
from tasks.training import team

TWO = {"engine__nodes": 2, "engine__address": "node-0:29400"}
FOLLOW = ("flows.following", "--node", "1")


@pytest.mark.parametrize(
    ("changes", "arguments", "words"),
    [
        pytest.param({}, ["--node", "1"], ("engine.nodes is 1", "set it and engine.address"), id="one machine"),
        pytest.param(TWO, ["--node", "2"], ("--node must be 1 to 1", "not 2"), id="too large a number"),
        pytest.param(TWO, ["--node", "0"], ("--node must be 1 to 1", "the stage itself runs on node 0"), id="0"),
        pytest.param(TWO, [], ("--node must be 1 to 1", "not None"), id="no number"),
    ],
)
def test_a_node_that_there_is_not_is_wrong_usage(tmp_path: Path, changes, arguments, words) -> None:
    said_no(run(workspace(tmp_path, **changes), "flows.following", *arguments), "usage:", *words, status=2)


def test_mistakes_in_params_are_told_without_a_traceback(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    params = (root / "params.yaml").read_text()
    (root / "params.yaml").write_text(params.replace("seed: 0", "seed: none"))
    said_no(run(root, *FOLLOW), "ParamsError: params.yaml has 1 mistake(s)", "seed: ")


def test_processes_that_fail_are_told_without_a_traceback(tmp_path: Path, monkeypatch) -> None:
    root, invitation = invited(tmp_path, monkeypatch)
    code = root / "flows" / "following.py"
    code.write_text(
        code.read_text().replace("let_blocks_of_memory_grow()\n    from torch", "sys.exit(3)\n    from torch")
    )
    port = int(invitation.engine.address.rpartition(":")[2])
    with invitation.posted(), socket.create_server(("127.0.0.1", port)):
        said_no(run(root, *FOLLOW), "following work/sft/1", "MachineError: processes of node 1 failed", "{1: 3}")


@pytest.mark.parametrize(
    ("by", "status", "words"),
    [
        (signal.SIGTERM, 143, "node 1: the machine asked this process to end (SIGTERM)"),
        (signal.SIGINT, 130, "node 1: interrupted"),
    ],
)
def test_who_follows_says_what_it_waits_for_and_ends_when_asked(tmp_path, monkeypatch, by, status, words) -> None:
    root, invitation = invited(tmp_path, monkeypatch)
    with started(root, "-m", *FOLLOW) as follows:
        follows.says(f"node 1: waiting in {root} for a stage that trains, until this is ended by Ctrl-C or SIGTERM\n")
        said_no(run(root, *FOLLOW), "MachineError: node 1 is followed by another command already")
        with invitation.posted():  # as a stage leaves it that is killed meanwhile
            follows.says("nobody answers at 127.0.0.1:", "where work/sft/1 has waited (Connection refused)")
        follows.process.send_signal(by)
        assert follows.status() == status
        assert words in follows.said
        assert "Traceback" not in follows.said


@pytest.mark.slow
def test_a_stage_that_waits_for_another_machine_ends_at_once_when_asked(tmp_path: Path) -> None:
    address = free_address()
    root = workspace(tmp_path, engine__nodes=2, engine__address=address)
    write_taught(root)
    with started(root, "-m", "flows.sft") as stage:
        stage.until(lambda: reached(address))
        time.sleep(0.5)
        stage.process.terminate()
        asked_at = time.monotonic()
        assert stage.status() == 143
        assert time.monotonic() - asked_at < 5.0
        assert "sft failed: the machine asked this process to end (SIGTERM)" in stage.said


def test_who_does_not_come_in_time_is_named_with_the_address_and_the_remedy(tmp_path, monkeypatch, capsys) -> None:
    _, invitation = invited(tmp_path, monkeypatch)
    monkeypatch.setattr(team, "JOIN_S", 1.0)
    monkeypatch.setattr(launching, "QUIET_TERMINAL_INTERVAL_S", 0.0)
    who = "there, `python -m flows.following --node 1` has to run in this folder, on a disk that the machines share"
    words = f"node 1 did not come within 1 s: {who}, and to reach {invitation.engine.address}; then run the same"
    with pytest.raises(MachineError, match=re.escape(words)):
        gather(invitation.engine, tmp_path)
    assert f"waiting for node 1, 1 s at most: {who}" in capsys.readouterr().err
    assert not INVITATION.exists()


def test_an_address_that_is_taken_or_of_another_machine_is_told_at_once(tmp_path, monkeypatch) -> None:
    _, invitation = invited(tmp_path, monkeypatch)
    address = invitation.engine.address
    port = address.rpartition(":")[2]
    elsewhere = EngineParams(nodes=2, address=f"nowhere.invalid:{port}")
    with pytest.raises(MachineError, match=rf"^nowhere\.invalid:{port} does not lead to this machine"):
        gather(elsewhere, tmp_path)
    with (
        socket.create_server(("127.0.0.1", int(port))),
        pytest.raises(MachineError, match=f"^nobody can be waited for at {address} .*address already in use"),
    ):
        gather(invitation.engine, tmp_path)


def test_another_stage_that_answers_at_the_address_of_one_that_is_gone_is_not_followed(tmp_path, monkeypatch) -> None:
    root, invitation = invited(tmp_path, monkeypatch)
    port = int(invitation.engine.address.rpartition(":")[2])
    store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)
    store.set(TOKEN, "of another")
    num_keys = store.num_keys()
    with started(root, "-m", *FOLLOW) as follows:
        with invitation.posted():
            follows.says("work/sft/1 does not answer at")
            log = root / "work/following/process-1.log"
            assert "another stage answers at" in log.read_text()
            log.unlink()
            time.sleep(5 * POLL_S)
            assert not log.exists()  # or it would start its processes again and again
        store.set(TOKEN, (again := replace(invitation, token="of the next run")).token)
        with again.posted():
            follows.until(log.exists)
    assert store.num_keys() == num_keys


@pytest.mark.parametrize("text", ["[]", "{}", '{"folder": "x", "engine": null, "torch": "2"}', "{"])
def test_an_invitation_of_another_version_of_the_project_is_none(tmp_path, monkeypatch, text) -> None:
    monkeypatch.chdir(tmp_path)
    INVITATION.parent.mkdir(parents=True)
    INVITATION.write_text(text)
    assert Invitation.read() is None


def test_a_machine_that_has_no_place_in_the_stage_is_told(tmp_path, monkeypatch) -> None:
    _, invitation = invited(tmp_path, monkeypatch)
    with invitation.posted():
        assert Invitation.read() == invitation
    assert Invitation.read() is None
    invitation.require_fit(1)
    with pytest.raises(MachineError, match=r"^work/sft/1 trains on 2 machines, so it has no node 2"):
        invitation.require_fit(2)
    with pytest.raises(MachineError, match=r"^work/sft/1 trains with PyTorch 1\.0, and this machine has 2.*same here$"):
        replace(invitation, torch="1.0").require_fit(1)


def invited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Invitation]:
    """A project on two machines, in which we are, and what its stage says that waits for the second."""
    address = free_address()
    root = workspace(tmp_path, engine__nodes=2, engine__address=address)
    monkeypatch.chdir(root)
    return root, Invitation(folder=Path("work/sft/1"), engine=EngineParams(nodes=2, address=address))


def gather(engine: EngineParams, folder: Path) -> None:
    with launching.trainers(replace(load_params(), engine=engine), folder=folder):
        pytest.fail("all have come")


def reached(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as ours:
        return ours.connect_ex((host, int(port))) == 0
