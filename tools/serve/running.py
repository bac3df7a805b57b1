"""Runs `braid serve` for the scripts in this folder, with only the standard library."""

import http.client
import json
import re
import subprocess
import threading
import time


class Server:
    """`with Server(["build/release/bin/braid"], "--queue", "8") as server:`"""

    def __init__(self, braid, *flags, cwd=None, preexec=None, launcher=()):
        self._process = subprocess.Popen([*launcher, braid, "serve", "--port", "0", *flags], cwd=cwd,
                                         stderr=subprocess.PIPE, text=True, preexec_fn=preexec)
        self.log, self._changed = [], threading.Condition()
        threading.Thread(target=self._read_log, daemon=True).start()
        self.port = int(self.wait_for(r"event=listening .*port=(\d+)").group(1))

    def _read_log(self):
        for line in self._process.stderr:
            with self._changed:
                self.log.append(line.rstrip())
                self._changed.notify_all()

    def wait_for(self, pattern, seconds=120):
        """The match in the first log line that has one."""
        found = None

        def look():
            nonlocal found
            found = next(filter(None, (re.search(pattern, line) for line in self.log)), None)
            return found or self._process.poll() is not None

        with self._changed:
            self._changed.wait_for(look, seconds)
        assert found, f"no {pattern!r} in:\n" + "\n".join(self.log)
        return found

    def wait_until_ready(self):
        self.wait_for("event=ready")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    @property
    def pid(self):
        return self._process.pid

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def signal(self, number):
        self._process.send_signal(number)

    def wait(self, seconds=60):
        return self._process.wait(seconds)

    def resident(self):
        """Bytes."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def ask(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body) of one request on a new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            return ask_over(connection, method, path, body, headers)
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, _, data = self.ask(method, path, body)
        assert status < 300, (status, data[:500])
        return json.loads(data)

    def wait_until_idle(self, seconds=60):
        until = time.monotonic() + seconds
        while True:
            status = self.json("GET", "/v1/status")
            if status["running"] + status["waiting"] == 0:
                return
            assert time.monotonic() < until, status
            time.sleep(0.02)


def ask_over(connection, method, path, body=None, headers=None):
    data = json.dumps(body) if body is not None else None
    own = {"content-type": "application/json"} if data else {}
    connection.request(method, path, data, {**own, **(headers or {})})
    response = connection.getresponse()
    return response.status, response.headers, response.read()
