"""A checkout of ComfyUI as a server, headless and on the CPU."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

START = 600    # seconds until it listens, on a busy machine
GLANCE = 0.05


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Failure(Exception):
    """A workflow's node failed; the text is its exception's."""


class Checkout:
    """`with Checkout(folder, base, environment) as comfy:`; `base` has models, custom_nodes and output."""

    def __init__(self, folder, base, environment=None):
        self.port, self.base = free_port(), Path(base)
        self.log = self.base / "log.txt"
        front_end = self.base / "web"
        front_end.mkdir(exist_ok=True)
        line = [sys.executable, "main.py", "--cpu", "--force-fp32", "--base-directory", str(base), "--port", str(self.port),
                "--disable-auto-launch", "--disable-api-nodes", "--front-end-root", str(front_end), "--preview-method",
                "latent2rgb", "--database-url", "sqlite:///:memory:"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(line, cwd=folder, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})})

    def __enter__(self):
        until = time.monotonic() + START
        while True:
            with contextlib.suppress(OSError):
                self.ask("GET", "/system_stats")
                return self
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError("ComfyUI did not start:\n" + self.log.read_text(errors="replace")[-4000:])
            time.sleep(0.2)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise Failure(error.read().decode()) from None

    def post(self, workflow):
        return self.ask("POST", "/prompt", {"prompt": workflow})["prompt_id"]

    def wait(self, prompt, seconds=900):
        """The outputs by node. Raises Failure with the exception's text, or "interrupted"."""
        until = time.monotonic() + seconds
        while True:
            history = self.ask("GET", f"/history/{prompt}")
            if prompt in history:
                break
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("no answer of ComfyUI:\n" + self.log.read_text(errors="replace")[-4000:])
            time.sleep(GLANCE)
        entry = history[prompt]
        for kind, data in entry["status"]["messages"]:
            if kind == "execution_error":
                raise Failure(data["exception_message"].strip())
            if kind == "execution_interrupted":
                raise Failure("interrupted")
        return entry["outputs"]

    def run(self, workflow):
        return self.wait(self.post(workflow))

    def descendants(self):
        """Pids of the processes that ComfyUI has started, also of those that have ended and are not awaited."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(fields[1]) == self.process.pid:
                        found.append(int(entry.name))
        return sorted(found)
