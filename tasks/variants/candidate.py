"""A candidate: source text that claims to equal a problem's reference."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tasks.errors import RecordError


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """Source text defining ModelNew. Equal texts for one problem are one candidate, whoever wrote them."""

    problem_id: str
    source: str
    origin: str = field(compare=False)
    """Who wrote it: "rewrites", "reference", a policy such as "sft", or a provider's name."""
    recipe: tuple[str, ...] = field(default=(), compare=False)
    """Names of the rewrites that made it, in order; empty when it was not made by rewriting."""
    parent_id: str | None = field(default=None, compare=False)
    """The candidate it was made from, where it was made from one; several rewrites of the recipe may lie between."""

    @property
    def candidate_id(self) -> str:
        """Content hash of problem and source; never depends on the origin."""
        return hashlib.sha256(f"{self.problem_id}\0{self.source}".encode(errors="surrogatepass")).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """A mapping that json.dumps takes and from_json turns back into an equal candidate."""
        return {
            "candidate_id": self.candidate_id,
            "problem_id": self.problem_id,
            "origin": self.origin,
            "recipe": list(self.recipe),
            "parent_id": self.parent_id,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The candidate that to_json wrote.

        Raises:
            RecordError: if a field is missing.
        """
        try:
            return cls(
                problem_id=row["problem_id"],
                source=row["source"],
                origin=row["origin"],
                recipe=tuple(row["recipe"]),
                parent_id=row.get("parent_id"),  # rows of earlier versions have none
            )
        except (KeyError, TypeError) as error:
            raise RecordError(f"not a candidate: {error!r} in {dict(row)!r}"[:500]) from error
