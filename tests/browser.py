"""A real Chromium, without a window, driven through its DevTools protocol over a pipe: no driver, no other package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--remote-debugging-pipe",
]  # fmt: skip
SECONDS = 60
# Chromium wants the pipe at the descriptors 3 (to it) and 4 (from it).
START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str:
    """The program; where there is none the test is skipped."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    return found


class Page:
    """One tab. What it asked the network for and what went wrong in it is kept."""

    def __init__(self, read: int, write: int) -> None:
        self.read, self.write = read, write
        self.rest, self.number, self.session = b"", 0, ""
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> Any:
        end = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            assert time.monotonic() < end, "Chromium does not answer"
            data = os.read(self.read, 1 << 20)
            assert data, "Chromium has ended"
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(line)
        self._keep(message.get("method"), message.get("params", {}))
        return message

    def _keep(self, method: str | None, event: Any) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(str(event["args"]))
        elif method == "Log.entryAdded":
            self.problems.append(event["entry"]["text"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"a dialog: {event['message']}")

    def open(self, path: Path) -> None:
        self.loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self.loaded:
            self._next()

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def type_into(self, element: str, text: str) -> None:
        """Type text into an element, in place of what stands there, as a keyboard would."""
        self.run(f"{{ const field = document.getElementById({json.dumps(element)}); field.focus(); field.select(); }}")
        self.call("Input.insertText", text=text)
        if not text:
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key="Delete", code="Delete", windowsVirtualKeyCode=46)

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path, width: int = 1100, height: int = 4000, dark: bool = False) -> None:
        """A screenshot of the whole page."""
        value = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A page of a new browser, which ends with the block."""
    program = chromium()
    to_read, to_write = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        ends = (to_write[0], to_read[1])
        process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, ends), program, *FLAGS, f"--user-data-dir={directory}"],
            pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_write[0])
        os.close(to_read[1])
        try:
            yield Page(to_read[0], to_write[1])
        finally:
            process.terminate()
            process.wait(SECONDS)
            os.close(to_read[0])
            os.close(to_write[1])
