"""A hostile OpenAI-compatible server for the tests of language models as providers: its model's name says what it does.

Run as a process of its own; it prints its port, and appends a line for every request to the file named on its command
line: the request's id, what was done with it, and the tokens charged for it, 0 where it was refused.
"""

import email.utils
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOSTILE_SHARE = 1 / 3
SLOW_S = 4.0
ENDLESS_S = 20.0
REFERENCE = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)

LOOKS_FOR_SECRETS = """
import os

class ModelNew:
    def __init__(self, *_):
        raise ValueError(str([value for value in os.environ.values() if "planted" in value]))
"""

SUMMING = """# {}
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(1)
"""

lock = threading.Lock()
times_asked: Counter[str] = Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.request: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.request_id = self.headers["X-Client-Request-Id"]
        with lock:
            times_asked[self.request_id] += 1
            self.time_asked = times_asked[self.request_id]
        name = self.request["model"]
        if name == "hostile":
            rng = random.Random(f"{self.request_id} {self.time_asked}")
            name = rng.choice(sorted(HOSTILE)) if rng.random() < HOSTILE_SHARE else "right"
        if name == "locked":  # until the file that says so is removed
            name = "status-401" if Path(f"{sys.argv[1]}.locked").exists() else "right"
        way, charges = (HOSTILE | TAME).get(name, (status(name), False))
        self.usage = self.tokens() if charges else (0, 0)
        self.note(name)
        try:
            way(self)
        except OSError:
            self.close_connection = True  # the client had enough

    def note(self, name: str) -> None:
        row = {"request_id": self.request_id, "way": name, "tokens": sum(self.usage), "path": self.path}
        with lock, Path(sys.argv[1]).open("a") as log:
            log.write(json.dumps(row | {"request": self.request, "key": self.headers["Authorization"]}) + "\n")

    def tokens(self) -> tuple[int, int]:
        rng = random.Random(self.request_id)
        prompt = self.request["messages"][0]["content"]
        limit = self.request.get("max_tokens") or self.request["max_completion_tokens"]
        return len(prompt) // 4 + 1, rng.randint(1, limit)

    def program(self) -> str:
        """The reference as a candidate: a right answer, and a text of its own for every request."""
        found = REFERENCE.search(self.request["messages"][0]["content"])
        source = found[1] if found else "class Model: pass\n"
        return f"# {self.request_id}\n" + re.sub(r"\bModel\b", "ModelNew", source)

    def completion(self, content: Any, **changes: Any) -> bytes:
        usage = {"prompt_tokens": self.usage[0], "completion_tokens": self.usage[1], "total_tokens": sum(self.usage)}
        completion = {
            "id": f"chatcmpl-{self.request_id}",
            "model": f"{self.request['model']}-served",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": usage,
        }
        return json.dumps(completion | changes).encode()

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"content_type": "application/json"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fenced(self) -> bytes:
        return self.completion(f"Here it is.\n```python\n{self.program()}\n```\nFaster, I hope.")

    def endless(self, chunk: bytes, pause_s: float) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        deadline = time.monotonic() + ENDLESS_S
        while time.monotonic() < deadline:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            time.sleep(pause_s)

    def cut(self) -> None:
        body = self.fenced()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    def close(self) -> None:
        self.close_connection = True

    def slow(self) -> None:
        time.sleep(SLOW_S)
        self.reply(200, self.fenced())

    def twice(self) -> None:
        self.reply(200, self.fenced())
        self.reply(200, self.fenced())

    def log_message(self, *_: object) -> None:
        pass


def status(name: str) -> Callable[[Handler], None]:
    """The way of a model such as "status-503", which refuses with that status twice and answers then."""

    def refuse(handler: Handler) -> None:
        code = int(name.removeprefix("status-"))
        handler.reply(code, json.dumps({"error": {"message": f"as you wished, {handler.headers}"}}).encode())

    return refuse


def wrong_half(handler: Handler) -> None:
    """Every other trial has a program that gives other outputs."""
    source = handler.program()
    if int(handler.request_id[0], 16) % 2:
        source = source.replace("return ", "return 0.5 * ", 1)
    handler.reply(200, handler.completion(f"```python\n{source}\n```"))


def first_busy(handler: Handler) -> None:
    if handler.time_asked == 1:
        handler.reply(429, b"{}", retry_after="1")
    else:
        handler.reply(200, handler.fenced())


def climbing(handler: Handler) -> None:
    """The reference again, until a prompt shows an earlier implementation; then one call that sums."""
    program = handler.program()
    if "## Earlier implementations" in handler.request["messages"][0]["content"]:
        program = SUMMING.format(handler.request_id)
    handler.reply(200, handler.completion(f"```python\n{program}\n```"))


def quota(handler: Handler) -> None:
    handler.reply(429, b'{"error": {"code": "insufficient_quota", "message": "pay first"}}')


def tells_key(handler: Handler) -> None:
    """What a server must not do: repeat the key, in an answer whose program looks for it too."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    handler.reply(200, handler.completion(f"{key}\n```python\nKEY = {key!r}\n{LOOKS_FOR_SECRETS}\n```"))


# Name -> what is sent, and whether an answer was written and charged.
TAME: dict[str, tuple[Callable[[Handler], None], bool]] = {
    "right": (lambda h: h.reply(200, h.fenced()), True),
    "wrong half": (wrong_half, True),
    "same": (lambda h: h.reply(200, h.completion("```python\nclass ModelNew: pass\n```")), True),
    "chatty": (lambda h: h.reply(200, h.completion("I would rather talk about poetry.")), True),
    "empty": (lambda h: h.reply(200, h.completion(None)), True),
    "no usage": (lambda h: h.reply(200, h.completion("x", usage=None)), True),
    "nonsense usage": (lambda h: h.reply(200, h.completion("x", usage={"prompt_tokens": -5})), True),
    "climbing": (climbing, True),
    "first busy": (first_busy, True),
    "quota": (quota, False),
    "tomorrow": (lambda h: h.reply(429, b"{}", retry_after="86400"), False),
    "tells key": (tells_key, True),
    "trickles": (lambda h: h.endless(b" ", 0.05), True),
    "packed": (lambda h: h.reply(200, h.fenced(), content_encoding="gzip"), True),
    "elsewhere": (lambda h: h.reply(307, b"", location="http://127.0.0.1:9/v1/chat/completions"), False),
}
HOSTILE: dict[str, tuple[Callable[[Handler], None], bool]] = {
    "slow": (Handler.slow, True),
    "broken": (lambda h: h.reply(500, b'{"error": {"message": "out of luck"}}'), False),
    "overloaded page": (lambda h: h.reply(503, b"<html>busy</html>", content_type="text/html"), False),
    "busy": (lambda h: h.reply(429, b"{}", retry_after="0"), False),
    "busy until": (lambda h: h.reply(429, b"{}", retry_after=email.utils.formatdate(usegmt=True)), False),
    "cut": (Handler.cut, True),
    "garbage": (lambda h: h.reply(200, b'{"choices": [{"mess\xff\x00'), True),
    "page": (lambda h: h.reply(200, b"<html>log in</html>", content_type="text/html"), True),
    "wrong type": (lambda h: h.reply(200, h.fenced(), content_type="image/png"), True),
    "endless": (lambda h: h.endless(b"x" * 65536, 0.0), True),
    "closed": (Handler.close, True),
    "twice": (Handler.twice, True),
}


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        pass  # a client that was killed


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
