"""`make audit` against an advisory service of our own, and against ones that are none."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest

from flows.audit import CANARY, CANNOT, FOUND
from tests.service_builders import free_ports

pytestmark = pytest.mark.skipif(find_spec("pip_audit") is None, reason="pip-audit is not installed")


@contextmanager
def advisories(vulnerable):
    """The URL of a service after OSV's manner that knows these packages to be vulnerable."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
            affected = {"package": {"name": name, "ecosystem": "PyPI"}, "ranges": [{"type": "ECOSYSTEM", "events": []}]}
            known = {"vulns": [{"id": f"TEST-{name}", "summary": "bad", "affected": [affected]}]}
            body = json.dumps(known if name in vulnerable else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def audited(folder, url):
    pinned = folder / "pinned.txt"
    pinned.write_text("good-package==1.0\nother-package==2.0\n")
    options = ["--vulnerability-service", "osv", "--osv-url", url, "--cache-dir", str(folder / "cache")]
    command = [sys.executable, "-m", "flows.audit", "--requirements", str(pinned), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_packages_without_advisories_are_said_to_be_fine(tmp_path):
    with advisories({CANARY}) as url:
        done = audited(tmp_path, url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no known vulnerability" in done.stdout


def test_a_package_with_an_advisory_is_named(tmp_path):
    with advisories({CANARY, "other-package"}) as url:
        done = audited(tmp_path, url)
    assert done.returncode == FOUND
    assert done.stdout.startswith("other-package 2.0: TEST-other-package")


def test_a_service_that_finds_nothing_in_what_is_known_to_be_vulnerable_is_not_believed(tmp_path):
    with advisories(set()) as url:
        done = audited(tmp_path, url)
    assert done.returncode == CANNOT
    assert f"the advisories say nothing of {CANARY}" in done.stderr
    assert done.stdout == ""


def test_a_service_that_cannot_be_reached_is_no_good_news(tmp_path):
    done = audited(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}")
    assert done.returncode == CANNOT
    assert "nothing was audited" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
