"""What does scheduled runs waits for a Prefect server that is starting too, and no longer than it says."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from flows import deployment
from flows.deployment import NO_SERVER, main, registered
from tasks.params import RetrainParams


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch) -> Iterator[str]:
    """Where a server answers a second from now."""
    monkeypatch.setattr(deployment, "POLL_S", 0.1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = []

    def serve() -> None:
        time.sleep(1.0)
        servers.append(HTTPServer(("127.0.0.1", port), Healthy))
        servers[0].serve_forever(poll_interval=0.1)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{port}/api"
    while not servers:
        time.sleep(0.1)
    servers[0].shutdown()
    thread.join()
    servers[0].server_close()


def test_a_server_that_starts_a_moment_later_is_waited_for(url, monkeypatch, capsys):
    monkeypatch.setattr(deployment, "register", lambda params, from_params: ["nightly"])
    assert registered(url, RetrainParams(), from_params=False) == ["nightly"]
    assert capsys.readouterr().err.count(f"no Prefect server answers at {url}: waiting") == 1


def test_a_server_that_goes_away_amid_the_registration_is_waited_for(url, monkeypatch):
    answers = [httpx.ConnectError("gone"), ["nightly"]]

    def register(params: RetrainParams, *, from_params: bool) -> list[str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(deployment, "register", register)
    assert registered(url, RetrainParams(), from_params=False) == ["nightly"]


def test_a_mistake_in_the_registration_is_no_outage(url, monkeypatch):
    def register(params: RetrainParams, *, from_params: bool) -> list[str]:
        raise KeyError("schedule")

    monkeypatch.setattr(deployment, "register", register)
    with pytest.raises(KeyError):
        registered(url, RetrainParams(), from_params=False)


@pytest.mark.parametrize(("url", "said"), [("http://127.0.0.1:9/api", "answers at"), (None, "is not set")])
def test_one_that_never_answers_is_told_with_a_status_of_its_own(url, said, monkeypatch, capsys):
    monkeypatch.setattr(deployment, "START_S", 0.2)
    monkeypatch.setattr("sys.argv", ["deployment"])
    if url:
        monkeypatch.setenv("PREFECT_API_URL", url)
    else:
        monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == NO_SERVER
    complaint = capsys.readouterr().err
    assert said in complaint
    assert ": start a Prefect server (prefect server start) and set PREFECT_API_URL" in complaint
