"""What a worker sends is a frame, a tensor's form or an error, and values travel as plain data."""

import json
import os
import socket
import time
from collections.abc import Iterator

import pytest

from tasks.judge.wire import FRAME_BYTES, Arena, Channel, DeadlineError, TensorSpec, WireError, decoded


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket, int]]:
    """The referee's channel, the worker's socket and the worker's end of the log."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log_read, log_write = os.pipe()
    channel = Channel(ours, log_read)
    yield channel, theirs, log_write
    channel.close()
    theirs.close()
    os.close(log_write)


def soon() -> float:
    return time.monotonic() + 5.0


def test_the_kernel_stamps_an_answer_when_it_is_sent(ends: tuple[Channel, socket.socket, int]) -> None:
    channel, theirs, _ = ends
    before = time.time_ns()
    theirs.send(b'{"id": 1}')
    after = time.time_ns()
    time.sleep(0.05)
    frame, sent_at = channel.receive(soon())
    assert decoded(frame) == {"id": 1}
    assert before <= sent_at <= after


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[1, 2]", id="no object"),
        pytest.param(b"[" * 50_000, id="nested without end"),
        pytest.param(b'{"a": "' + b"x" * FRAME_BYTES + b'"}', id="too long"),
        pytest.param(b"{", id="cut off"),
    ],
)
def test_what_is_no_frame_is_refused(ends: tuple[Channel, socket.socket, int], frame: bytes) -> None:
    channel, theirs, _ = ends
    theirs.send(frame)
    with pytest.raises(WireError):
        decoded(channel.receive(soon())[0])


def test_silence_ends_at_the_deadline_however_much_is_printed(ends: tuple[Channel, socket.socket, int]) -> None:
    channel, _, log = ends
    os.write(log, b"y" * 60_000)
    with pytest.raises(DeadlineError):
        channel.receive(time.monotonic() + 0.1)
    assert channel.log.endswith("yyy")


def test_a_closed_socket_is_an_error(ends: tuple[Channel, socket.socket, int]) -> None:
    channel, theirs, _ = ends
    theirs.close()
    with pytest.raises(WireError):
        channel.receive(soon())
    with pytest.raises(WireError):
        channel.send(b'{"op": "call"}')


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "float32",
        ["float32", "12"],
        ["float32", [-1]],
        ["float32", [True]],
        ["float32", [2.0]],
        ["quint8", [2]],
        [["float32"], [2]],
        ["float32", [1] * 99],
        ["float32", [1 << 60]],
        ["float32", [2, 2], [1]],
    ],
    ids=str,
)
def test_an_absurd_form_is_refused(row: object) -> None:
    with pytest.raises(WireError):
        TensorSpec.from_json(row)


@pytest.mark.parametrize(
    ("shape", "stride", "num_items"),
    [
        ([2, 3], [3, 1], 6),
        ([2, 3], [1, 2], 6),
        ([4, 3], [0, 1], 3),
        ([2, 2], [8, 1], 10),
        ([], [], 1),
        ([0, 3], [3, 1], 0),
    ],
)
def test_a_tensor_spans_the_memory_that_its_strides_reach(shape: list[int], stride: list[int], num_items: int) -> None:
    spec = TensorSpec.from_json(["float32", shape, stride])
    assert spec.num_items == num_items
    assert TensorSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_an_arena_cannot_be_resized_under_the_referee() -> None:
    arena = Arena(5_000)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, 0)
    arena.close()
