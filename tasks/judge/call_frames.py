"""The frames by which calls are asked for, and their short answer: few bytes, and little work for either side.

What a worker does between question and answer is timed, and what it does besides calling the model is taken off as the
reference's process does it. A candidate that takes the worker's loop over saves some of that, so there is to be next to
nothing to save: no JSON, nothing is told again that was told before, and outputs like those described before are
answered by their addresses alone.

All calls on the host are asked for in this way, those of trials too: one that is timed alone looks like a plain trial.
"""

import struct
from dataclasses import dataclass
from typing import Any

from tasks.judge.wire import WireError

MARK = 0x01
"""First byte of these frames, where those of JSON have a brace."""
AGAIN, SAME, HOLD, FILL = 1, 2, 4, 8
"""Flags. What has none but the first may be answered shortly."""
QUESTION = struct.Struct("<BBBxHHQ")
"""Mark, flags, filling, first slot, number of slots, id."""
WORD_BYTES = 8
MAX_ADDRESS = 1 << 63
KEPT_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CallQuestion:
    """What a worker is asked to do with slots of its arena, one after the other."""

    slot: int
    """The first of them."""
    count: int = 1
    again: bool = False
    """Call nothing, but hand the outputs that the first slot holds over once more, for every slot."""
    same: bool = False
    """Hand over the tensor objects of the last call in a slot with other contents, instead of new ones."""
    hold: bool = False
    """Keep the outputs alive."""
    filling: int = 0
    """Byte of what unwritten memory of the host is full of; 0 leaves it as it is."""

    def framed(self, number: int) -> bytes:
        """The question as a frame, with the id that its answer has to bear."""
        flags = AGAIN * self.again | SAME * self.same | HOLD * self.hold | FILL * bool(self.filling)
        return QUESTION.pack(MARK, flags, self.filling, self.slot, self.count, number)


def keeps_outputs(capacity: int) -> bool:
    """Whether outputs that take so many bytes a call outlive the next exchange, so that they can be looked at again.

    Larger ones are let go of: a program may have no room for them twice.
    """
    return capacity <= KEPT_BYTES


def short_answer(frame: bytes) -> dict[str, Any]:
    """The id and the addresses of all outputs, call by call, in a frame of words; as a tuple, which JSON has none of.

    Raises:
        WireError: if the frame is anything else.
    """
    num_words, rest = divmod(len(frame), WORD_BYTES)
    if num_words < 2 or rest:
        raise WireError("the process sent something that is not an answer")
    mark, number, *addresses = struct.unpack(f"={num_words}Q", frame)
    if mark != MARK or any(address >= MAX_ADDRESS for address in addresses):
        raise WireError("the process sent something that is not an answer")
    return {"id": number, "addresses": tuple(addresses)}
