"""The process and the server's client of comfyui/, without ComfyUI: nobody waits for what has ended. See also tools/comfyui."""

import base64
import contextlib
import importlib
import io
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

import numpy as np
from PIL import Image

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


def generate_module() -> Any:
    """Of what ComfyUI brings, it needs no more than names here."""
    absent = ("comfy", "comfy.model_management", "comfy.utils", "torch")
    with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in absent}):
        return nodes_module("generate")


process = nodes_module("process")
generate = generate_module()


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
        server = types.SimpleNamespace(address="there", open=lambda *_, **__: None)  # no pair, as nobody foresaw
        with mock.patch.object(generate, "RETRIES", 0), mock.patch.object(threading, "excepthook"):
            found: list[Any] = []
            threading.Thread(target=lambda: found.append(generate.Events(server, "job").next()), daemon=True).start()
            until = time.monotonic() + SOON
            while not found and time.monotonic() < until:
                time.sleep(0.05)
        self.assertEqual([name for name, _ in found], ["lost"])

    def test_warn_in_the_log(self) -> None:
        said = [("warning", '{"message": "known"}'), ("warning", '{"message": "new"}'), ("done", "{}")]
        stream = io.BytesIO("".join(f"event: {name}\ndata: {data}\n\n" for name, data in said).encode())
        stream.status = 200
        server = types.SimpleNamespace(address="there", open=lambda *_, **__: (mock.MagicMock(), stream))
        job = {"id": "job", "request": {"steps": 1, "n": 1}, "warnings": ["known"]}
        with self.assertLogs(level="WARNING") as logs:
            generate.follow(server, job)
        self.assertEqual([record.getMessage() for record in logs.records], ["Braid: known", "Braid: new"])


class TensorLike(np.ndarray):
    """Stands for torch's, which the tests do not need."""

    def detach(self) -> "TensorLike":
        return self

    cpu = float = detach

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


class Requests(unittest.TestCase):
    def asked(self, **given: Any) -> dict[str, Any]:
        return generate.request_of("a red circle", 64, 64, 2, 7, 1, **given)

    def test_have_keys_that_are_never_shown(self) -> None:
        for key in ("sk ink\n", " sk ink", "\ufeffsk ink", "sk ink\r\nanother"):
            with mock.patch.dict(os.environ, {"BRAID_API_KEY": key}):
                self.assertEqual(generate.Server("there").headers, {"authorization": "Bearer sk ink"})
        for key in ("sk-\u20ac", "sk\tink", "sk-\udcff"):
            with mock.patch.dict(os.environ, {"BRAID_API_KEY": key}), self.assertRaises(process.Refused) as caught:
                generate.Server("there")
            self.assertEqual(str(caught.exception), "BRAID_API_KEY should have printable ASCII characters alone")
        self.assertEqual(generate.Server("http://ink:secret@there:80/braid/").address, "http://there:80/braid")

    def test_go_to_addresses(self) -> None:
        for address in ("http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://a b/", "http://[::1", "http://a..b", "http://h/a b", ""):
            with self.subTest(address), self.assertRaises(process.Refused) as caught:
                generate.Server(address)
            self.assertIn(f"server should be an address such as http://127.0.0.1:8188, it is {address!r}", str(caught.exception))
        for address in ("127.0.0.1:8188", "https://[::1]:8188/braid", "http://b\u00e4r:80"):
            generate.Server(address)

    def test_have_numbers_that_are_finite(self) -> None:
        for lora in ("ink=nan", "ink=inf", "ink=much"):
            with self.assertRaisesRegex(process.Refused, f"such as ink=0.8,hands, '{lora}' is not"):
                self.asked(lora=lora)
        for name in ("guidance", "strength", "true_cfg"):
            with self.assertRaisesRegex(process.Refused, f"{name} should be a finite number, it is nan"):
                self.asked(**{name: float("nan")})

    def test_may_ask_for_true_guidance(self) -> None:
        self.assertEqual(self.asked(negative_prompt="a star", true_cfg=2.0)["true_cfg"], 2.0)
        self.assertNotIn("true_cfg", self.asked(negative_prompt="a star"))
        self.assertIn("true_cfg", [field.name for field in nodes_module("nodes").Generate.fields()])

    def test_start_from_pictures_of_some_channels(self) -> None:
        for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
            image = np.full((1, 8, 6, channels), 0.5, np.float32).view(TensorLike)
            with Image.open(io.BytesIO(base64.b64decode(self.asked(image=image)["init"]))) as picture:
                self.assertEqual((picture.mode, picture.size), (mode, (6, 8)))
                self.assertEqual(picture.convert("L").getextrema(), (128, 128))
        with self.assertRaisesRegex(process.Refused, r"of 1 to 4 channels, it is \[1, 8, 6, 5\]"):
            self.asked(image=np.zeros((1, 8, 6, 5), np.float32).view(TensorLike))


class Ranges(unittest.TestCase):
    def test_of_devices(self) -> None:
        with mock.patch.object(sys, "path", [str(FOLDER / "worker"), *sys.path]):
            expanded = importlib.import_module("forecast").expanded
        self.assertEqual(expanded(["cuda:0-2", "cpu"]), ["cuda:0", "cuda:1", "cuda:2", "cpu"])
        self.assertEqual(expanded(["cuda:3-1"]), ["cuda:3-1"])


if __name__ == "__main__":
    unittest.main()
