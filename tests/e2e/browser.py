# SPDX-License-Identifier: MIT
"""A headless chromium, driven over its debugging port on the loopback: enough to open a page, run
script in it, press keys, click and take pictures. Nothing but the standard library."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class Browser:
    def __init__(self, program, limit=60):
        self.folder = tempfile.mkdtemp(dir=os.getcwd())
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.count = 0
        self.log = []
        try:
            self._connect(self._port(limit))
            for domain in ("Runtime", "Log", "Page", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _port(self, limit):
        path = os.path.join(self.folder, "DevToolsActivePort")
        end = time.monotonic() + limit
        while time.monotonic() < end and self.process.poll() is None:
            if os.path.exists(path):
                lines = open(path).read().split("\n")
                if len(lines) > 1:
                    return int(lines[0])
            time.sleep(0.05)
        raise OSError("the browser does not start")

    def _connect(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            page = next(one for one in json.load(answer) if one["type"] == "page")
        path = page["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline().strip():
            pass

    def _send(self, payload):
        mask = os.urandom(4)
        length = len(payload)
        head = (bytes([0x80 | length]) if length < 126 else
                b"\xfe" + struct.pack(">H", length) if length < 1 << 16 else b"\xff" + struct.pack(">Q", length))
        masked = bytes(byte ^ mask[i & 3] for i, byte in enumerate(payload))
        self.socket.sendall(b"\x81" + head + mask + masked)

    def _receive(self):
        message = b""
        while True:
            first, second = self.stream.read(2)
            length = second & 127
            if length == 126:
                length = struct.unpack(">H", self.stream.read(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.stream.read(8))[0]
            message += self.stream.read(length)
            if first & 0x80:
                return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        number = self.count
        self._send(json.dumps({"id": number, "method": method, "params": parameters}).encode())
        while True:
            message = self._receive()
            if message.get("id") == number:
                if "error" in message:
                    raise OSError(f"{method}: {message['error']}")
                return message["result"]
            self.log.append(message)

    def run(self, script):
        """The value of the expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, script, limit=120):
        end = time.monotonic() + limit
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script}; {self.complaints()}")
            time.sleep(0.05)

    def settle(self):
        """Two frames later."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path):
        self.log.clear()
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("document.documentElement?.dataset.ready === 'true'")
        self.settle()

    def open_as(self, path, script):
        """The script runs before the page's own; what the page then does by and by is not waited for."""
        self.log.clear()
        added = self.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("document.readyState === 'complete'")
        self.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def complaints(self):
        """What the page threw or logged; hints on the speed of drawing are due to the tests' own look at
        pixels."""
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(one["params"])[:400] for one in self.log
                if one.get("method") in bad and one["params"].get("entry", {}).get("source") != "rendering"]

    def requests(self):
        return [one["params"]["request"]["url"] for one in self.log if one.get("method") == "Network.requestWillBeSent"]

    def key(self, key, text=None):
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "PageUp": 33, "End": 35, "Home": 36, "Tab": 9}
        more = {"text": text} if text else {}
        code = codes.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def click(self, selector, x, y):
        """At x, y of the element, as shares of its size."""
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                       " const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        at = {"x": box[0] + box[2] * x, "y": box[1] + box[3] * y}
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            self.call("Input.dispatchMouseEvent", type=kind, button="left" if kind != "mouseMoved" else "none",
                      buttons=buttons, clickCount=1, **at)
        self.settle()

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.settle()

    def picture(self, path):
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
