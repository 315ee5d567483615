"""What is said when something other than a training step does not fit into a GPU's memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tasks.errors import MachineError


@contextmanager
def said_to_be_too_large(what: str, *, remedy: str) -> Iterator[None]:
    """Tell what did not fit and what to change, in place of the allocator's own words alone.

    Raises:
        MachineError: if memory runs out within the block.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MachineError(
            f"{what} does not fit into memory: {error}. {remedy} in params.yaml, or take a larger device; "
            f"the same command goes on from what was done until now"
        ) from error
