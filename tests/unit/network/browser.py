"""A real Chromium, driven over a pipe by its own protocol; nothing but the browser is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

# The browser reads from 3 and writes to 4; the pipes' own numbers may be among them.
PUT_IN_PLACE = """
import os, sys
asked, answered = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))
os.dup2(asked, 3)
os.dup2(answered, 4)
os.set_inheritable(3, True)
os.set_inheritable(4, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
LONGEST_S = 60.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page."""

    def __init__(self, asks: FileIO, answers: FileIO) -> None:
        self._asks = asks
        self._answers = answers
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[dict[str, Any]] = []  # what the page's console and its network told
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, object] = {"id": self._number, "method": method, "params": arguments}
        if self._session:
            asked["sessionId"] = self._session
        self._asks.write(json.dumps(asked).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self.said.append(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._answers], [], [], LONGEST_S)[0], "the browser says nothing"
            more = self._answers.read(1 << 16)
            assert more, "the browser is gone"
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(first)
        return told

    def size(self, width: int, height: int) -> None:
        phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page again in the same process, which sees at once what the page stored."""
        self.value("window.beforeReload = true")
        self.call("Page.reload")
        self.wait("!window.beforeReload && document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, expression: str, *, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.1)

    def picture(self, path: Path) -> None:
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self) -> list[str]:
        """Return what the browser complained of: exceptions, refused loads, console errors."""
        self.call("Runtime.evaluate", expression="0")  # what was on its way is here now
        told = [json.dumps(each["params"]) for each in self.said if _bad(each)]
        return [each for each in told if "favicon" not in each]

    def asked_for(self) -> list[str]:
        return [
            each["params"]["request"]["url"]
            for each in self.said
            if each.get("method") == "Network.requestWillBeSent"
        ]


def _bad(told: dict[str, Any]) -> bool:
    method = told.get("method")
    if method == "Runtime.exceptionThrown":
        return True
    if method == "Log.entryAdded":
        return bool(told["params"]["entry"]["level"] == "error")
    return bool(method == "Runtime.consoleAPICalled" and told["params"]["type"] == "error")


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own."""
    assert CHROMIUM is not None
    its_input, asks = os.pipe()
    answers, its_output = os.pipe()

    command = [
        *(sys.executable, "-c", PUT_IN_PLACE, str(its_input), str(its_output), CHROMIUM),
        *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"),
        *("--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={folder}"),
    ]
    process = subprocess.Popen(
        command,
        pass_fds=(its_input, its_output),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_input)
    os.close(its_output)
    with (
        os.fdopen(asks, "wb", buffering=0) as requests,
        os.fdopen(answers, "rb", buffering=0) as told,
    ):
        try:
            yield Browser(requests, told)
        finally:
            process.kill()
            process.wait()
