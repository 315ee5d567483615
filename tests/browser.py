"""A headless Chromium, driven through its DevTools protocol: what readers of the report and of Prefect's pages see."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from websockets.sync.client import connect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAIT_S = 20.0

# No name resolves, so the browser's own chatter stays on the machine.
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0"),
    "--remote-allow-origins=*",
)

MIDDLE = """
(async () => {
    const place = () => {
        const box = (ELEMENT).getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    };
    (ELEMENT).scrollIntoView({ block: "center", behavior: "instant" });
    for (let before = null, now = place(); ; before = now, now = place()) {
        if (String(before) === String(now)) return now;
        await new Promise((done) => setTimeout(done, 50));
    }
})()
"""


class Page:
    """One open tab. Remembers what its console said and what it asked the network for."""

    def __init__(self, socket):
        self._socket = socket
        self._last = 0
        self.console = []
        self.requests = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=WAIT_S))
            if message.get("id") == self._last:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._notice(message)

    def open(self, address):
        """Go there and wait until the page says it is ready."""
        self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def value(self, expression):
        """What an expression comes to in the page, awaited where it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression):
        end = monotonic() + WAIT_S
        while not self.value(f"Boolean({expression})"):  # an element by value is an empty mapping
            assert monotonic() < end, f"never came true: {expression}; console: {self.console}"
            sleep(0.05)

    def visit(self, address, *, until):
        """Go to a page of somebody else and wait until an expression is true there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait(until)

    def click(self, element):
        """Click in the middle of an element, given as an expression, once it is there and stands still."""
        self.wait(element)
        x, y = self.value(MIDDLE.replace("ELEMENT", element))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, field, text):
        """Type over what a field holds, given as an expression."""
        self.click(field)
        self.value(f"({field}).select()")
        self.call("Input.insertText", text=text)

    def choose(self, select, text):
        """Choose the option of that text in the select element of that id."""
        self.value(
            f"""(() => {{
                const select = document.getElementById({json.dumps(select)});
                const option = [...select.options].find((option) => option.text === {json.dumps(text)});
                select.value = option.value;
                select.dispatchEvent(new Event("change", {{ bubbles: true }}));
            }})()"""
        )

    def size(self, width, height, *, scale=1, is_phone=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone},
        )

    def prefer(self, scheme):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},  # no gliding: where a test scrolls, it is
            ],
        )

    def _notice(self, message):
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.console.append(str(parameters["args"]))
            case "Runtime.exceptionThrown":
                self.console.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])


@contextmanager
def browser(folder: Path):
    """A tab of a fresh browser whose profile is in the folder."""
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_tab_address(profile, process), max_size=None, open_timeout=WAIT_S) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(WAIT_S)


def _tab_address(profile, process):
    """The socket of the first tab; Chromium writes down its port once it listens."""
    import urllib.request

    port_file, end = profile / "DevToolsActivePort", monotonic() + WAIT_S
    while not port_file.exists() or not port_file.read_text().strip():
        assert process.poll() is None, "Chromium ended at its start"
        assert monotonic() < end, "Chromium did not start"
        sleep(0.05)
    port = port_file.read_text().split("\n")[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT_S) as answer:
        return next(tab["webSocketDebuggerUrl"] for tab in json.load(answer) if tab["type"] == "page")
