"""The process of comfyui/, without ComfyUI: it ends whatever happens, so that nobody waits for it. See also tools/comfyui."""

import contextlib
import importlib
import os
import queue
import signal
import socket
import sys
import threading
import time
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

FOLDER = Path(__file__).resolve().parents[2] / "comfyui"
SOON = 20.0  # seconds


def nodes_module(name: str) -> Any:
    """A module of the nodes' package, whose own __init__ needs ComfyUI."""
    package = sys.modules.setdefault("braid_nodes", types.ModuleType("braid_nodes"))
    package.__path__ = [str(FOLDER)]
    return importlib.import_module(f"braid_nodes.{name}")


def worker_main(**instead: Any) -> Any:
    """main() of Braid's side, with other names in its module."""
    with mock.patch.object(sys, "path", [str(FOLDER / "worker"), *sys.path]):
        names: dict[str, Any] = {}
        exec((FOLDER / "worker" / "__main__.py").read_text().removesuffix("main()\n"), names)
    names.update(instead)
    return names["main"]


process = nodes_module("process")


class Process(unittest.TestCase):
    def setUp(self) -> None:
        with mock.patch.dict(os.environ, {"BRAID_PYTHON": sys.executable}):
            self.worker = process.Worker()
        self.addCleanup(self.worker.close)

    def test_ends_at_what_it_cannot_read(self) -> None:
        message = b'{"do": "hello", "number": 2, "__arrays": [["latents", "no such type", [1]]]}'
        message = message.replace(b"__arrays", process.receive.__globals__["ARRAYS"].encode())
        with mock.patch.object(process, "send", lambda *_: None):  # the question is this one
            self.worker.connection.sendall(process.receive.__globals__["LENGTHS"].pack(len(message), 0) + message)
            said: list[str] = []
            asking = threading.Thread(target=lambda: said.append(self.failure()))
            asking.start()
            asking.join(SOON)
            self.assertFalse(asking.is_alive(), "whoever asked waits for ever")
        self.assertEqual(said, ["Braid's process ended with exit code 1; the next run starts another"])

    def failure(self) -> str:
        try:
            self.worker.ask("hello")
        except process.Failed as error:
            return str(error)
        return ""

    def test_that_does_not_stop_is_ended(self) -> None:
        os.kill(self.worker.process.pid, signal.SIGSTOP)
        ended = threading.Event()

        def ask() -> None:
            try:
                self.worker.ask("hello", interrupted=lambda: True)
            except process.Interrupted:
                ended.set()

        with mock.patch.multiple(process, ANSWER=0.2, END=0.2, create=True), self.assertLogs(level="WARNING") as logs:
            asking = threading.Thread(target=ask, daemon=True)
            asking.start()
            was_ended = ended.wait(SOON)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.worker.process.pid, signal.SIGKILL)
            asking.join()
        self.assertTrue(was_ended, "whoever asked waits for ever")
        self.assertFalse(self.worker.is_alive)
        self.assertIn("did not stop within 0.2 s", logs.output[0])


class Answers(unittest.TestCase):
    def test_to_what_was_cancelled_just_beside_the_work(self) -> None:
        class Inbox:
            running = None

            def __init__(self, connection: socket.socket) -> None:
                self.messages: queue.Queue[Any] = queue.Queue()
                self.messages.put(({"do": "hello", "number": 7}, {}))

            def work(self, *_: Any) -> None:
                raise KeyboardInterrupt

        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        ours.settimeout(SOON)
        main = worker_main(Inbox=Inbox, Denoiser=lambda: types.SimpleNamespace(hello=None))
        with mock.patch.object(sys, "argv", ["worker", str(theirs.detach())]):
            threading.Thread(target=main, daemon=True).start()
            answer, _ = process.receive(ours)
        self.assertEqual(answer, {"number": 7, "state": "cancelled"})


class Jobs(unittest.TestCase):
    def test_are_lost_with_the_thread_that_reads_their_events(self) -> None:
        absent = ("comfy", "comfy.model_management", "comfy.utils", "torch")
        with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in absent}):
            generate = nodes_module("generate")
        server = types.SimpleNamespace(address="there", open=lambda *_, **__: None)  # no pair, as nobody foresaw
        with mock.patch.object(generate, "RETRIES", 0), mock.patch.object(threading, "excepthook"):
            found: list[Any] = []
            threading.Thread(target=lambda: found.append(generate.Events(server, "job").next()), daemon=True).start()
            until = time.monotonic() + SOON
            while not found and time.monotonic() < until:
                time.sleep(0.05)
        self.assertEqual([name for name, _ in found], ["lost"])


class Ranges(unittest.TestCase):
    def test_of_devices(self) -> None:
        with mock.patch.object(sys, "path", [str(FOLDER / "worker"), *sys.path]):
            expanded = importlib.import_module("forecast").expanded
        self.assertEqual(expanded(["cuda:0-2", "cpu"]), ["cuda:0", "cuda:1", "cuda:2", "cpu"])
        self.assertEqual(expanded(["cuda:3-1"]), ["cuda:3-1"])


if __name__ == "__main__":
    unittest.main()
