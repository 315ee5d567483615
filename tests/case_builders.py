"""Cases for the tests of the batch and of the command: a tiny reference, a right and a wrong candidate."""

import json
from pathlib import Path
from typing import Any

from flows.cli import main
from tasks.judge.cases import Case, Text

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
RIGHT = REFERENCE.replace("Model", "ModelNew")
WRONG = RIGHT.replace("+ 1", "+ 2")
BROKEN = "def\n"
PAID = ("correct", "unstable")


def case(
    candidate: str | Path, *, reference: str | Path = REFERENCE, case_id: str | int = "x", precision: str = "fp32"
) -> Case:
    return Case(
        case_id=case_id,
        reference=Text.of_value(reference, folder=Path(), name="reference"),
        candidate=Text.of_value(candidate, folder=Path(), name="candidate"),
        precision=precision,
    )


def write_cases(path: Path, *candidates: str, reference: str = "ref.py") -> None:
    """A file of cases named "case 0", "case 1" and so on."""
    rows = [{"id": f"case {number}", "ref": reference, "candidate": text} for number, text in enumerate(candidates)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_texts(folder: Path) -> None:
    """The files ref.py, right.py and wrong.py."""
    for name, text in (("ref.py", REFERENCE), ("right.py", RIGHT), ("wrong.py", WRONG)):
        (folder / name).write_text(text)


def batch(*more: str, cases: str = "cases.jsonl", out: str = "verdicts.jsonl") -> int:
    """The exit code of the command, in the current folder."""
    return main(["judge", "--batch", cases, "--out", out, *more])


def verdicts(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of verdicts, all of whose lines must be whole."""
    content = path.read_text()
    assert content == "" or content.endswith("\n")
    return [json.loads(line) for line in content.splitlines()]
