"""A service for tests: answers on a port, and behaves as its further arguments say.

python tests/fake_service.py PORT [dies] [silent] [stubborn] [far-child]
"""

import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SLEEPING = [sys.executable, "-c", "import time; time.sleep(600)"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    port, ways = int(sys.argv[1]), sys.argv[2:]
    if "dies" in ways:
        sys.exit("no luck today")
    if "stubborn" in ways:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "far-child" in ways:  # as a Prefect runner starts its runs
        subprocess.Popen(SLEEPING, start_new_session=True)
    if "silent" in ways:
        time.sleep(600)
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()
