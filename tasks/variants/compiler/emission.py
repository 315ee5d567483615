"""What the compiler's child process is asked for, and what it answers, as records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


class NotSelfContainedError(ValueError):
    """What was emitted cannot be made into a program that stands alone; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """One way of compiling."""

    name: str
    """Its part of a candidate's recipe."""
    options: Mapping[str, int | bool | None]
    """Settings of torch._inductor.config, by dotted name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorForm:
    """A tensor that the emitted code is given, and what it must be for that code to hold."""

    place: str
    """Where the forward finds it, as Python: "x", or "self.linear.weight"."""
    dtype: str
    """Such as "torch.float32"."""
    size: tuple[int, ...]
    stride: tuple[int, ...]

    def __str__(self) -> str:
        return f"({self.dtype}, {self.size}, {self.stride})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Emission:
    """Inductor's module for one variation, and what was taken for granted in making it."""

    wrapper: str
    """Python text that defines the kernels and calls them; it needs torch._inductor to run."""
    tensors: tuple[TensorForm, ...]
    """In the order of the wrapper's arguments."""
    looked_at: tuple[TensorForm, ...]
    """Inputs that the wrapper is not given, though the forward may have asked for their sizes or types."""
    constants: Mapping[str, str]
    """Parameters of forward that are no tensors, with the text of the value they had."""
    constructor: Mapping[str, str]
    """Parameters of the constructor, with the text of the value they had."""
    returned: str
    """"tensor", or "tuple" or "list" of tensors."""
    num_returned: int
    is_training: bool
    vector_isa: str
    """Instructions that loops over vectors were written for, such as "avx512"; empty for plain loops."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The emission that the child process wrote."""
        forms = {
            name: tuple(
                TensorForm(**{**form, "size": tuple(form["size"]), "stride": tuple(form["stride"])})
                for form in row[name]
            )
            for name in ("tensors", "looked_at")
        }
        return cls(**{**row, **forms})
