"""Is every answer of a language model accounted for? Many questions to a hostile server, with the buyer killed between.

    python -m flows.soaks.provider --calls 1000 --kills 5 --out work/soak_provider.json

The server fails a third of the time in a dozen ways and keeps books of its own; both books are compared in the end.
"""

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from flows.engine import WORK, progress, say
from tasks.params import GeneratorParams

SERVER = Path("tests/llm_server.py")
CONCURRENCY = 32
PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """What came of many questions, by our ledger and by the server's log."""

    calls: int
    kills: int
    seconds: float
    outcomes: dict[str, int]
    requests: int
    ways: dict[str, int]
    """How the server behaved, by the number of requests."""
    answered_tokens: int
    """Of the answers that arrived."""
    most_lost_tokens: int
    """What those that did not arrive count as in the ledger."""
    lost_tokens: int
    """What the server charged for them."""
    mistakes: list[str] = field(default_factory=list)
    """Where the books differ or a rule was broken, of which there must be none."""


@contextmanager
def hostile_server(log: Path) -> Iterator[str]:
    """The base URL of a server that appends to the log, ended with the block."""
    server = subprocess.Popen([sys.executable, str(SERVER), str(log)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    finally:
        server.kill()
        server.communicate()


def soak(folder: Path, *, calls: int, kills: int, seed: int = 0) -> Books:
    """Buy answers to so many questions in processes of their own, the first ones killed on the way."""
    log = folder / "server.jsonl"
    log.touch()
    started = time.monotonic()
    rng = random.Random(seed)
    num_killed = 0
    with hostile_server(log) as url, progress("soaking", total=calls, unit="call") as bar:
        for kill_at in [*sorted(rng.sample(range(calls // 10, calls), kills)), None]:
            command = [sys.executable, "-m", "flows.soaks.provider", "--buy", url, "--calls", str(calls)]
            buyer = subprocess.Popen([*command, "--out", str(folder)])
            while buyer.poll() is None:
                num_requests = log.read_bytes().count(b"\n")
                bar.update(min(num_requests, calls) - bar.n)
                if kill_at is not None and num_requests >= kill_at:
                    buyer.send_signal(signal.SIGKILL)
                if time.monotonic() - started > PATIENCE_S:
                    buyer.kill()
                time.sleep(0.02)
            num_killed += buyer.returncode == -signal.SIGKILL
    books = compare(folder, calls=calls, kills=num_killed, seconds=time.monotonic() - started)
    return books if buyer.returncode == 0 else replace(books, mistakes=["the last buyer failed", *books.mistakes])


def buy(folder: Path, url: str, calls: int) -> None:
    """What the killed processes do: buy, and nothing else."""
    from tasks.variants.llm.budget import Budget
    from tasks.variants.llm.buyer import Buyer
    from tasks.variants.llm.ledger import Ledger
    from tasks.variants.llm.question import Question

    params = GeneratorParams(  # type: ignore[call-arg]  # mypy sees no dataclass in a section of params
        base_url=url,
        model="hostile",
        key_variable=None,
        prompt_usd_per_million=1.0,
        answer_usd_per_million=4.0,
        answer_tokens=1000,
        concurrency=CONCURRENCY,
        answer_timeout_s=2.0,
        backoff_s=0.02,
    )

    async def all_of_them() -> None:
        budget = Budget(max_tokens=None, max_usd=None, spent=ledger.spent())
        async with Buyer("soak", params, ledger=ledger, budget=budget) as buyer:
            questions = (
                Question(
                    generator="soak",
                    model=params.model,
                    problem_id=f"soak/{number}",
                    trial=0,
                    prompt=f"Question {number}.",
                    answer_tokens=params.answer_tokens,
                    temperature=1.0,
                )
                for number in range(calls)
            )
            await asyncio.gather(*map(buyer.buy, questions))

    with closing(Ledger(folder / "purchases.sqlite")) as ledger:
        asyncio.run(all_of_them())


def compare(folder: Path, *, calls: int, kills: int, seconds: float) -> Books:
    """Both books side by side: the log server.jsonl and the ledger purchases.sqlite."""
    import sqlite3

    requests = [json.loads(line) for line in (folder / "server.jsonl").read_bytes().splitlines()]
    charged: dict[str, list[int]] = defaultdict(list)
    for request in requests:
        if request["tokens"]:
            charged[request["request_id"]].append(request["tokens"])
    with closing(sqlite3.connect(folder / "purchases.sqlite")) as connection:
        rows = connection.execute("SELECT request_id, outcome, tokens FROM purchases").fetchall()
    outcomes = Counter(outcome for _, outcome, _ in rows)
    mistakes = [f"{calls} questions, but {len(rows)} in the ledger"] if len(rows) != calls else []
    mistakes += [f"{key} is {outcome} in the end" for key, outcome, _ in rows if outcome == "asked"]
    mistakes += [f"{key} was bought {len(tokens)} times" for key, tokens in charged.items() if len(tokens) > 1]
    for request_id, outcome, tokens in rows:
        server_says = sum(charged[request_id])
        if (outcome == "answered" and tokens != server_says) or (outcome == "refused" and server_says):
            mistakes.append(f"{request_id} is {outcome} with {tokens} tokens, and the server charged {server_says}")
        if outcome == "lost" and tokens < server_says:
            mistakes.append(f"{request_id} is lost with {tokens} tokens, less than the {server_says} charged")
    mistakes += [f"{key} was charged and is not in the ledger" for key in charged.keys() - {row[0] for row in rows}]
    return Books(
        calls=calls,
        kills=kills,
        seconds=round(seconds, 1),
        outcomes=dict(outcomes),
        requests=len(requests),
        ways=dict(Counter(request["way"] for request in requests).most_common()),
        answered_tokens=sum(tokens for _, outcome, tokens in rows if outcome == "answered"),
        most_lost_tokens=sum(tokens for _, outcome, tokens in rows if outcome == "lost"),
        lost_tokens=sum(sum(charged[request_id]) for request_id, outcome, _ in rows if outcome == "lost"),
        mistakes=mistakes,
    )


def main() -> None:
    """Parse the command line and soak; exit code 1 when the books differ."""
    parser = argparse.ArgumentParser(description="Ask a hostile server many questions and compare the books.")
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--out", type=Path, default=WORK / "soak_provider.json")
    parser.add_argument("--buy", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.buy:
        buy(arguments.out, arguments.buy, arguments.calls)
        return
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        books = soak(Path(folder), calls=arguments.calls, kills=arguments.kills)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(asdict(books), indent=1) + "\n")
    say(json.dumps(asdict(books), indent=1))
    sys.exit(1 if books.mistakes else 0)


if __name__ == "__main__":
    main()
