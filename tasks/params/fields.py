"""What a section of params.yaml is made of."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

# frozen: params are facts about a run. forbid: a misspelt key is an error, not a default.
section = dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))

# strict: "3" and true are mistakes, not numbers.
Integer = Annotated[int, Field(strict=True)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[Integer, Field(gt=0)]
Positive = Annotated[Real, Field(gt=0)]
Share = Annotated[Real, Field(ge=0, le=1)]
