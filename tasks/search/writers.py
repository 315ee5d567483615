"""The seam to what writes programs when it is asked with a prompt: a language model behind an endpoint, or a policy."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, Self

from tasks.errors import RecordError
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar

REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What came of a question."""

    completion: str
    """Word for word; empty where nothing came."""
    source: str | None
    """The program read from it, or None where there is none to judge."""
    form: str
    """What it is: "program", "truncated", "empty" or "no_program".

    Where nothing came: "lost" if it may have been paid for in vain, and "refused" if another time may bring more.
    """
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question of a search to a writer, and its answer once that is known."""

    writer: str
    number: int
    """Counts from 0 for one writer."""
    problem_id: str
    prompt: str
    exemplar_ids: tuple[str, ...]
    """Candidates that the prompt shows, in its order."""
    written: Written | None = None

    @property
    def candidate(self) -> Candidate | None:
        """The answer as a candidate, where it holds a program."""
        if self.written is None or self.written.source is None:
            return None
        return Candidate(problem_id=self.problem_id, source=self.written.source, origin=self.writer)

    def to_json(self) -> dict[str, Any]:
        """A mapping that json.dumps takes and from_json turns back into an equal record."""
        written, candidate = self.written, self.candidate
        return {
            "writer": self.writer,
            "number": self.number,
            "problem_id": self.problem_id,
            "prompt": self.prompt,
            "exemplar_ids": list(self.exemplar_ids),
            "candidate_id": candidate.candidate_id if candidate else None,
            "form": written.form if written else None,
            "completion": written.completion if written else None,
            "source": written.source if written else None,
            "detail": written.detail if written else "",
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The record that to_json wrote.

        Raises:
            RecordError: if a field is missing.
        """
        try:
            written = None
            if row["form"] is not None:
                written = Written(**{name: row[name] for name in ("completion", "source", "form", "detail")})
            return cls(
                writer=row["writer"],
                number=row["number"],
                problem_id=row["problem_id"],
                prompt=row["prompt"],
                exemplar_ids=tuple(row["exemplar_ids"]),
                written=written,
            )
        except (KeyError, TypeError) as error:
            raise RecordError(f"not a question of a search: {error!r} in {dict(row)!r}"[:500]) from error


class Writer(Protocol):
    """Writes one program for each prompt."""

    name: str
    """Becomes the candidates' origin."""
    at_once: int
    """Batches that it works on side by side."""
    batch: int
    """Questions that it answers best together."""

    def can_show(self, exemplar: Exemplar) -> bool:
        """Whether the exemplar may stand in a prompt of this writer."""
        ...

    def prompt(self, exemplars: Sequence[Exemplar]) -> tuple[str, Sequence[Exemplar]]:
        """The prompt, and those of the exemplars that it shows.

        Raises:
            ProviderError: if the problem does not fit into any prompt.
        """
        ...

    def begin(self, batch: Sequence[Asked]) -> Future[list[Written]]:
        """Have the questions answered, in their order, without waiting for it.

        The future raises ProviderError where no more can be had from this writer.
        """
        ...

    def close(self) -> None:
        """Begin no more; what takes the processor of this machine, as timings do, is over when this returns."""
        ...
