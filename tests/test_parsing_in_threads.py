"""Texts are parsed in many threads at once: every one gets its tree or its own error, never one of the interpreter."""

from concurrent.futures import ThreadPoolExecutor

from tasks.judge.opinions.findings import static_findings
from tasks.judge.screen import screen

NESTED = "class ModelNew:\n    def forward(self, x):\n        return " + "(" * 60 + "x" + " + 1)" * 60 + "\n"


def test_many_threads_parse_side_by_side() -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: (screen(NESTED), static_findings(NESTED)), range(400)))
    assert all(answer == answers[0] for answer in answers)
