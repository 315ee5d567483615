"""What arrived in the inboxes since it was last announced: kept over a kill, and over a step that is tried again."""

from dataclasses import asdict
from pathlib import Path

from flows.engine import WORK
from flows.parts.journal import Journal
from flows.retraining.inbox import Arrival, Fate

ARRIVALS = WORK / "retrain" / "arrivals.jsonl"


def note_arrival(arrival: Arrival, path: Path = ARRIVALS) -> None:
    """Write down what became of a file."""
    journal = _journal(path)
    journal.append([asdict(arrival)])
    journal.close()


def noted_arrivals(path: Path = ARRIVALS) -> list[Arrival]:
    """All that is not announced yet, in order; a file that waited and was then looked at again is told once."""
    if not path.exists():
        return []
    journal = _journal(path)
    journal.close()
    rows = journal.rows
    last = {row["name"]: number for number, row in enumerate(rows)}
    arrivals = [Arrival(name=row["name"], fate=Fate(row["fate"]), reason=row["reason"]) for row in rows]
    return [
        arrival
        for number, arrival in enumerate(arrivals)
        if arrival.fate is not Fate.WAITING or last[arrival.name] == number
    ]


def forget_arrivals(path: Path = ARRIVALS) -> None:
    """They are announced."""
    path.unlink(missing_ok=True)


def _journal(path: Path) -> Journal:
    return Journal(path, remedy="remove that line: what it tells of is then not announced")
