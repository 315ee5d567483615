"""The journals of what a policy wrote while it was trained: every text once, and which step drew which."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flows.parts.journal import Journal
from tasks.errors import RecordError
from tasks.history.exemplars import ExemplarPool
from tasks.history.islands import Islands
from tasks.variants.candidate import Candidate

if TYPE_CHECKING:
    from tasks.training.rollouts import Rollout


class Drawn:
    """What a run that was killed is continued with: the pool and the islands are functions of it."""

    def __init__(self, folder: Path, *, done_steps: int) -> None:
        """Take up the journals of a run that was killed after its newest checkpoint.

        Args:
            done_steps: later ones are drawn again, and what they found must not be in the pool before that.

        Raises:
            RecordError: if a line is damaged, or a step's text is not there.
        """
        # Steps before the newest checkpoint are not taken again.
        remedy = f"delete {folder}: the stage begins anew"
        self._texts = Journal(folder / "candidates.jsonl", remedy=remedy)
        self._steps = Journal(folder / "rollouts.jsonl", remedy=remedy)
        self._steps.keep(lambda row: row["step"] <= done_steps)
        self.candidates = {row["candidate_id"]: Candidate.from_json(row) for row in self._texts.rows}
        names = [row["candidate_id"] for row in self._steps.rows]
        if lost := [name for name in names if name not in self.candidates]:
            raise RecordError(
                f"{self._steps.path} names the candidate {lost[0]}, whose text is not in {self._texts.path}; {remedy}"
            )
        self.kept = [self.candidates[name] for name in names]

    def note_texts(self, candidates: Sequence[Candidate]) -> None:
        """Before they are judged, so that no verdict is ever without its text."""
        new = {c.candidate_id: c for c in candidates if c.candidate_id not in self.candidates}
        self._texts.append(candidate.to_json() for candidate in new.values())
        self.candidates.update(new)

    def note_step(self, step: int, rollouts: Sequence["Rollout"]) -> None:
        """After they are judged, in the order of the step's groups."""
        self._steps.append({"step": step, "candidate_id": rollout.candidate.candidate_id} for rollout in rollouts)

    def settle(self, islands: Islands, pool: ExemplarPool, *, group_size: int) -> None:
        """Put what the kept steps found where it was found, so that the islands are as they were.

        Args:
            pool: the candidates known after those steps.
        """
        steps: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for row, candidate in zip(self._steps.rows, self.kept, strict=True):
            steps[row["step"]].append((candidate.problem_id, candidate.candidate_id))
        for step in sorted(steps):
            islands.note(step, steps[step], pool, group_size=group_size)

    def close(self) -> None:
        self._texts.close()
        self._steps.close()
