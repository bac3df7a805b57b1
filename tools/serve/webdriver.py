"""Speaks to browsers with only the standard library: WebDriver's JSON over HTTP to Chromium's and
WebKitGTK's drivers, Marionette's JSON over TCP to Firefox, for which Debian has no driver."""

import contextlib
import glob
import http.client
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver, section 12.2

# (WebDriver's method and path, Marionette's name). {} is an element's id.
COMMANDS = {
    "open": ("POST", "/url", "WebDriver:Navigate"),
    "back": ("POST", "/back", "WebDriver:Back"),
    "refresh": ("POST", "/refresh", "WebDriver:Refresh"),
    "find": ("POST", "/element", "WebDriver:FindElement"),
    "click": ("POST", "/element/{}/click", "WebDriver:ElementClick"),
    "type": ("POST", "/element/{}/value", "WebDriver:ElementSendKeys"),
    "clear": ("POST", "/element/{}/clear", "WebDriver:ElementClear"),
    "role": ("GET", "/element/{}/computedrole", "WebDriver:GetComputedRole"),
    "label": ("GET", "/element/{}/computedlabel", "WebDriver:GetComputedLabel"),
    "actions": ("POST", "/actions", "WebDriver:PerformActions"),
    "run": ("POST", "/execute/sync", "WebDriver:ExecuteScript"),
    "run_async": ("POST", "/execute/async", "WebDriver:ExecuteAsyncScript"),
    "screenshot": ("GET", "/screenshot", "WebDriver:TakeScreenshot"),
    "rect": ("POST", "/window/rect", "WebDriver:SetWindowRect"),
    "new_tab": ("POST", "/window/new", "WebDriver:NewWindow"),
    "tabs": ("GET", "/window/handles", "WebDriver:GetWindowHandles"),
    "switch": ("POST", "/window", "WebDriver:SwitchToWindow"),
    "close_tab": ("DELETE", "/window", "WebDriver:CloseWindow"),
    "end": ("DELETE", "", "WebDriver:DeleteSession"),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(attempt, what, seconds=60):
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if found := attempt():
                return found
        if time.monotonic() > until:
            raise AssertionError(f"{what} does not start")
        time.sleep(0.05)


class HttpDriver:
    """A driver that listens on a port, such as chromedriver."""

    def __init__(self, command, capabilities, environment=None):
        self._port = free_port()
        self._process = subprocess.Popen([*command, f"--port={self._port}"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        wait_for(lambda: self._ask("GET", "/status")["ready"], command[0])
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{session['sessionId']}"

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=180)
        connection.request(method, path, json.dumps(body or {}) if method == "POST" else None,
                           {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())["value"]
        connection.close()
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def ask(self, method, path, body=None):
        return self._ask(method, self._session + path, body)

    def command(self, name, element=None, **body):
        method, path, _ = COMMANDS[name]
        return self.ask(method, path.format(element), body)

    def close(self):
        with contextlib.suppress(Exception):
            self.command("end")
        self._process.terminate()
        self._process.wait()


class Chromium(HttpDriver):
    def __init__(self, width, height, dark):
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        super().__init__(["chromedriver"], {"goog:chromeOptions": {"args": arguments},
                                            "goog:loggingPrefs": {"browser": "ALL"}})

    def complaints(self):
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def devtools(self, command, parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


class WebKit(HttpDriver):
    """WebKitGTK's MiniBrowser on a display of its own."""

    def __init__(self, width, height, dark):
        read, write = os.pipe()
        self._display = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1400x24"],
                                         pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as answer:
            display = answer.readline().strip()
        assert display, "Xvfb does not start"
        browser = sorted(glob.glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser"))[-1]
        environment = {"DISPLAY": f":{display}", "WEBKIT_DISABLE_COMPOSITING_MODE": "1", "NO_AT_BRIDGE": "1",
                       "GTK_THEME": "Adwaita:dark" if dark else "Adwaita", "GDK_BACKEND": "x11"}
        super().__init__(["WebKitWebDriver"], {"webkitgtk:browserOptions": {
            "binary": browser, "args": ["--automation", f"--geometry={width}x{height}"]}}, environment)

    def complaints(self):
        return []  # its driver has no log

    def close(self):
        super().close()
        self._display.terminate()
        self._display.wait()


class Firefox:
    """Over Marionette, which listens on a port that the profile chooses."""

    def __init__(self, width, height, dark):
        # Snap and some containers have a home that the browser may not write.
        self._profile = tempfile.TemporaryDirectory(prefix="firefox-", ignore_cleanup_errors=True)
        port, folder = free_port(), pathlib.Path(self._profile.name)
        settings = {"marionette.port": port, "ui.systemUsesDarkTheme": int(dark), "app.update.enabled": False,
                    "datareporting.policy.dataSubmissionEnabled": False, "browser.shell.checkDefaultBrowser": False,
                    "toolkit.telemetry.reportingpolicy.firstRun": False, "dom.disable_open_during_load": False,
                    "browser.tabs.remote.separatePrivilegedContentProcess": False}
        (folder / "user.js").write_text("".join(
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()))
        self._process = subprocess.Popen(
            [os.environ.get("FIREFOX", "firefox-esr"), "--headless", "--marionette", "--no-remote",
             "--remote-allow-system-access", "--profile", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder), "MOZ_HEADLESS_WIDTH": str(width), "MOZ_HEADLESS_HEIGHT": str(height)})
        self._number, self._rest = 0, b""
        self._wire = wait_for(lambda: socket.create_connection(("127.0.0.1", port), 180), "Firefox")
        self._receive()  # who it is
        self._ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"unhandledPromptBehavior": "accept"}}})

    def _receive(self):
        """One message: its length in decimal digits, a colon, JSON."""
        while b":" not in self._rest:
            self._more()
        length, _, self._rest = self._rest.partition(b":")
        while len(self._rest) < int(length):
            self._more()
        text, self._rest = self._rest[:int(length)], self._rest[int(length):]
        return json.loads(text)

    def _more(self):
        data = self._wire.recv(1 << 16)
        assert data, "Firefox has ended"
        self._rest += data

    def _ask(self, name, parameters):
        self._number += 1
        text = json.dumps([0, self._number, name, parameters]).encode()
        self._wire.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, result = self._receive()
        assert number == self._number and error is None, error
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def command(self, name, element=None, **body):
        if element is not None:
            body["id"] = element
        return self._ask(COMMANDS[name][2], body)

    def complaints(self):
        """Errors of the page's own scripts and policies, from the browser's console."""
        self._ask("Marionette:SetContext", {"value": "chrome"})
        found = self._ask("WebDriver:ExecuteScript", {"args": [], "script": """
            const all = Services.console.getMessageArray()
              .filter((one) => one instanceof Ci.nsIScriptError && one.sourceName.startsWith("http://"))
              .map((one) => `${one.sourceName}:${one.lineNumber} ${one.errorMessage}`);
            Services.console.reset();
            return all;"""})
        self._ask("Marionette:SetContext", {"value": "content"})
        return found

    def close(self):
        with contextlib.suppress(Exception):
            self._ask("Marionette:Quit", {"flags": ["eForceQuit"]})
        self._wire.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()


ENGINES = {"chromium": Chromium, "firefox": Firefox, "webkit": WebKit}
