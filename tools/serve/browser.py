"""Headless Chromium through Debian's chromium-driver: WebDriver's JSON with only the standard library."""

import base64
import contextlib
import http.client
import json
import socket
import subprocess
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver, section 12.2
KEYS = {"control": "\ue009", "enter": "\ue007", "tab": "\ue004", "escape": "\ue00c", "shift": "\ue008", "right": "\ue014",
        "down": "\ue015"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    def __init__(self, width=1200, height=900, dark=False):
        self._port = free_port()
        self._driver = subprocess.Popen(["chromedriver", f"--port={self._port}"], stdout=subprocess.DEVNULL)
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        self._wait_for_driver()
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self._session = f"/session/{session['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(Exception):
            self._ask("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait()

    def _wait_for_driver(self):
        for _ in range(200):
            with contextlib.suppress(OSError):
                if self._ask("GET", "/status")["ready"]:
                    return
            time.sleep(0.05)
        raise AssertionError("chromedriver does not start")

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        connection.request(method, path, json.dumps(body or {}) if method == "POST" else None,
                           {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())["value"]
        connection.close()
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def ask(self, method, path, body=None):
        return self._ask(method, self._session + path, body)

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def find(self, css):
        return f"/element/{self.ask('POST', '/element', {'using': 'css selector', 'value': css})[ELEMENT]}"

    def click(self, css):
        self.ask("POST", self.find(css) + "/click")

    def type(self, css, text):
        self.ask("POST", self.find(css) + "/value", {"text": text})

    def clear(self, css):
        self.ask("POST", self.find(css) + "/clear")

    def drag(self, css, points):
        """Presses at the first point, releases at the last; points are relative to the element's centre."""
        element = {ELEMENT: self.find(css).rsplit("/", 1)[1]}
        moves = [{"type": "pointerMove", "duration": 20, "origin": element, "x": x, "y": y} for x, y in points]
        self.ask("POST", "/actions", {"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:],
                        {"type": "pointerUp", "button": 0}]}]})

    def press(self, *keys):
        """Types into the focused element; in a list, all keys but the last are held while it is pressed."""
        events = []
        for key in keys:
            held, rest = (key[:-1], key[-1]) if isinstance(key, list) else ([], key)
            events += [{"type": "keyDown", "value": one} for one in (*held, rest)]
            events += [{"type": "keyUp", "value": one} for one in (rest, *held)]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": events}]})

    def devtools(self, command, **parameters):
        """A command of the DevTools protocol, as chromedriver passes it on."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def focused(self):
        """The focused element's id, or its text where it has none."""
        return self.run("const one = document.activeElement; return one.id || one.getAttribute('aria-label') || one.textContent")

    def role(self, css):
        return self.ask("GET", self.find(css) + "/computedrole")

    def label(self, css):
        return self.ask("GET", self.find(css) + "/computedlabel")

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_until(self, script, seconds=60):
        until = time.monotonic() + seconds
        while not self.run(f"return {script}"):
            assert time.monotonic() < until, f"never: {script}; {self.complaints()}"
            time.sleep(0.05)

    def complaints(self):
        """Errors and warnings in the console."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot")))
