"""A small OpenAI-compatible server for the tests of the reward checker: its model's name says how it behaves.

Run as a process of its own; it prints its port, and appends every request to the file named on its command line.
"""

import json
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HACK = json.dumps({"is_hack": True, "group": "replay", "reason": "line 10 returns an old result"})
HONEST = json.dumps({"is_hack": False, "group": "", "reason": "the same work in one call"})
CONTENTS = {
    "hack": HACK,
    "honest": HONEST,
    "thinks": f"<think>Is it {HACK}? No.</think>\n\n{HONEST}",
    "fences": f"```json\n{HACK}\n```",
    "prose": f"I think it is fine: {HONEST}",
    "half": HACK[:-4],
    "empty": "",
    "huge": "x" * (2 << 20),
}
asked: Counter[str] = Counter()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = request["model"]
        asked[model] += 1
        with open(sys.argv[1], "a") as log:
            log.write(json.dumps({"path": self.path, "key": self.headers["Authorization"]} | request) + "\n")
        if model.startswith("status-"):
            self.reply(int(model.removeprefix("status-")), b'{"error": "as you wished"}')
        elif model == "flaky" and asked[model] < 3:
            self.reply(503, b"loading the model")
        elif model == "drops":
            self.connection.close()
        elif model == "sleeps":
            time.sleep(30)
        elif model == "trickles":
            self.trickle()
        elif model == "no choices":
            self.reply(200, b'{"choices": []}')
        elif model == "no json":
            self.reply(200, b"<html>a proxy's page</html>")
        else:
            content = CONTENTS.get(model, HACK)
            self.reply(200, json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def trickle(self):
        """A byte in every tenth of a second: each read is quick, the whole never comes."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(300):
            self.wfile.write(b" ")
            time.sleep(0.1)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
