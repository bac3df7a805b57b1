"""The process and the server's client of comfyui/, without ComfyUI: nobody waits for what has ended. See also tools/comfyui."""

import base64
import contextlib
import fcntl
import importlib
import io
import json
import os
import queue
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import types
import unittest
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import braid_engine
import numpy as np
from braid_engine._program import PROGRAM
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "comfyui"
CASES = ROOT / "tests/data/parity"
SOON = 20.0  # seconds
MODELS = {"demo": ROOT / "models/demo", **{name: CASES / name / "model" for name in ("control", "qwen-image-edit", "qwen-image-layered")}}


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


def server_modules() -> tuple[Any, Any]:
    """Of what ComfyUI brings, they need no more than names here."""
    absent = ("comfy", "comfy.model_management", "comfy.utils", "torch")
    with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in absent}):
        return nodes_module("generate"), nodes_module("pictures")


process = nodes_module("process")
generate, pictures = server_modules()


class Process(unittest.TestCase):
    def setUp(self) -> None:
        with mock.patch.dict(os.environ, {"BRAID_PYTHON": sys.executable}):
            self.worker = process.Worker()
        self.addCleanup(self.worker.close)

    def test_answers_over_a_descriptor_that_select_does_not_take(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        descriptor = fcntl.fcntl(self.worker.connection, fcntl.F_DUPFD_CLOEXEC, 1024)
        self.worker.connection = self.enterContext(socket.socket(fileno=descriptor))
        answer, _ = self.worker.ask("hello")
        self.assertEqual(answer["version"], braid_engine.version())

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

    def test_plans_the_bytes_of_each_device(self) -> None:
        model = MODELS["demo"]
        weights = sum(file.stat().st_size for file in (model / "transformer").glob("*.safetensors"))
        usual = {"model": str(model), "components": "", "quantization": None, "offload": None, "dtype": None, "threads": 0}
        for devices, split, copies in ((["cpu"], "auto", 1), (["cpu", "cpu"], "ring=2", 2)):
            plan, _ = self.worker.ask("plan", {"options": {**usual, "devices": devices, "split": split}})
            self.assertEqual(plan["bytes"].keys(), {"cpu"})
            self.assertGreater(plan["bytes"]["cpu"], 0.99 * copies * weights)
            self.assertLess(plan["bytes"]["cpu"], 2 * copies * weights)

    def test_has_an_environment_of_its_own(self) -> None:
        theirs = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "PYTORCH_ALLOC_CONF": "max_split_size_mb:64,backend:native",
                  "PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True", "PYTHONPATH": "/theirs", "PYTHONHOME": "/theirs", "PATH": "/bin"}
        kept = {name: theirs[name] for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PATH")}
        kept |= {"BRAID_LAUNCHER": "none", "PYTHONDONTWRITEBYTECODE": "1"}
        self.assertEqual(process.environment_for("/another/python", theirs), kept)
        paths = {"PYTHONPATH": "/theirs", "PYTHONHOME": "/theirs"}
        self.assertEqual(process.environment_for(sys.executable, theirs), {**kept, **paths})
        with mock.patch.dict(os.environ, {"PYTORCH_CUDA_ALLOC_CONF": theirs["PYTORCH_CUDA_ALLOC_CONF"], "BRAID_PYTHON": sys.executable}):
            worker = process.Worker()
        self.addCleanup(worker.close)
        self.assertNotIn(b"PYTORCH_CUDA_ALLOC_CONF", Path(f"/proc/{worker.process.pid}/environ").read_bytes())

    def test_is_started_by_the_python_that_is_named(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        own, setting = folder / "own", folder / "python.txt"
        own.symlink_to(sys.executable)
        self.enterContext(mock.patch.object(process, "SETTING", setting))
        self.enterContext(mock.patch.dict(os.environ, {"HOME": str(folder), "PATH": str(folder), "BRAID_PYTHON": ""}))
        self.assertEqual(process.python(), sys.executable)
        for named in (str(own), "~/own", "own"):
            setting.write_text(f"\ufeff{named}\r\nmore\n", encoding="utf-8")
            self.assertEqual(process.python(), str(own))
            os.environ["BRAID_PYTHON"] = named
            self.assertEqual(process.python(), str(own))
            os.environ["BRAID_PYTHON"] = ""
        for wrong in (str(folder), "~/another", "another"):
            setting.write_text(wrong, encoding="utf-8")
            with self.assertRaisesRegex(process.Refused, f"{setting} should name the Python .*, there is no program '{wrong}'"):
                process.python()

    def test_runs_on_linux_alone(self) -> None:
        for system in ("win32", "darwin"):
            with mock.patch.object(sys, "platform", system):
                for start in (process.Worker, lambda: nodes_module("nodes").LoadModel.run("a", "", "auto", "as stored", "auto")):
                    with self.assertRaisesRegex(process.Refused, f"runs on Linux and WSL2, this ComfyUI on {system}: Generate"):
                        start()

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

    def test_are_followed_as_long_as_events_come(self) -> None:
        """A proxy may cut each stream after a while."""
        streams: list[Any] = []

        def open_stream(*_: Any, **__: Any) -> Any:
            number = len(streams)
            name = "done" if number == 2 * generate.RETRIES else "progress"
            streams.append(io.BytesIO(f"id: {number}\nevent: {name}\ndata: {{}}\n\n".encode()))
            streams[-1].status = 200
            return mock.MagicMock(), streams[-1]

        server = types.SimpleNamespace(address="there", open=open_stream)
        with mock.patch.object(time, "sleep"):
            events = generate.Events(server, "job")
            names = [events.found.get(timeout=SOON)[0] for _ in range(2 * generate.RETRIES + 1)]
        self.assertEqual(names, ["progress"] * 2 * generate.RETRIES + ["done"])

    def test_tell_again_what_was_cut_off(self) -> None:
        asked: list[Any] = []
        told = "id: 1\nevent: progress\ndata: {}\n\nid: 2\nevent: done\ndata: {}\n\n"

        def open_stream(*_: Any, headers: dict[str, str]) -> Any:
            asked.append(headers)
            stream = io.BytesIO((told[:-3] if len(asked) == 1 else told[told.index("id: 2") :]).encode())
            stream.status = 200
            return mock.MagicMock(), stream

        server = types.SimpleNamespace(address="there", open=open_stream)
        events = generate.Events(server, "job")
        self.assertEqual([events.found.get(timeout=SOON)[0] for _ in range(2)], ["progress", "done"])
        self.assertEqual(asked, [{}, {"last-event-id": "1"}])

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
        self.assertEqual(generate.Server("http://there:80/braid/").address, "http://there:80/braid")

    def test_go_to_addresses(self) -> None:
        for address in ("http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://a b/", "http://[::1", "http://a..b", "http://h/a b", ""):
            with self.subTest(address), self.assertRaises(process.Refused) as caught:
                generate.Server(address)
            self.assertIn(f"server should be an address such as http://127.0.0.1:8189, it is {address!r}", str(caught.exception))
        for address in ("http://ink:secret@there", "ink:secret@there:80/", "ink@[::1", "http://ink:secret@there:none/?a=b"):
            with self.subTest(address), self.assertRaises(process.Refused) as caught:
                generate.Server(address)
            self.assertIn("without a user and password: the environment variable BRAID_API_KEY", str(caught.exception))
            self.assertNotIn("secret", str(caught.exception))
        for address, words in {"there?a=b": "the query '?a=b'", "http://there/#a?b": "the fragment '#a?b'"}.items():
            with self.assertRaises(process.Refused) as caught:
                generate.Server(address)
            self.assertIn(f"it has {words}", str(caught.exception))
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

    def test_bring_pictures_of_their_kinds(self) -> None:
        def shades(*shape: int) -> Any:
            return np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape).view(TensorLike)

        def opened(text: str) -> Any:
            return Image.open(io.BytesIO(base64.b64decode(text)))

        asked = self.asked(reference=shades(2, 8, 6, 4), mask=shades(1, 8, 6), control_image=shades(2, 4, 4, 3), layers=3)
        self.assertEqual([(one.mode, one.size) for one in map(opened, asked["reference"])], [("RGBA", (6, 8))] * 2)
        np.testing.assert_array_equal(opened(asked["mask"]), np.rint(np.asarray(shades(8, 6)) * 255))
        self.assertEqual([(one.mode, one.size) for one in map(opened, asked["control"])], [("RGB", (4, 4))] * 2)
        self.assertEqual(asked["layers"], 3)
        self.assertNotIn("strength", asked)
        self.assertFalse({"init", "mask", "reference", "control", "layers"} & set(self.asked()))
        with self.assertRaisesRegex(process.Refused, r"mask should be one mask \[1, height, width\], it is \[2, 8, 6\]"):
            self.asked(mask=shades(2, 8, 6))
        with self.assertRaisesRegex(process.Refused, "reference should be one picture or several, it has none"):
            self.asked(reference=np.zeros((0, 8, 6, 3), np.float32).view(TensorLike))

    def test_are_as_large_as_the_server_would_make_them(self) -> None:
        large = np.zeros((1, 300, 200, 3), np.float32).view(TensorLike)

        def size_of(**given: Any) -> tuple[int, int]:
            asked = generate.request_of("a red circle", steps=2, seed=7, batch=1, **given)
            with Image.open(io.BytesIO(base64.b64decode(asked["init"] if "init" in asked else asked["control"][0]))) as picture:
                return picture.size

        self.assertEqual(size_of(width=64, height=96, image=large), (64, 96))
        self.assertEqual(size_of(width=64, height=96, control_image=large), (64, 96))
        self.assertEqual(size_of(width=640, height=960, image=large), (200, 300), "not enlarged here")
        self.assertEqual(size_of(width=0, height=0, image=large), (200, 300), "which then decides the size")
        mask = np.zeros((1, 300, 200), np.float32).view(TensorLike)
        self.assertEqual(size_of(width=64, height=96, image=large, mask=mask), (200, 300), "the mask's")
        clear = np.zeros((1, 300, 200, 4), np.float32).view(TensorLike)
        self.assertEqual(size_of(width=64, height=96, image=clear), (200, 300), "the server lays it on white first")

    def test_are_refused_in_the_words_of_the_inputs(self) -> None:
        server = generate.Server("there")

        def sentence(status: int, **error: Any) -> str:
            return server.sentence(status, json.dumps({"error": error}).encode())

        self.assertEqual(sentence(400, message="'n' should be less", param="n"), "batch: 'n' should be less")
        self.assertEqual(sentence(400, message="no", param="steps"), "no")
        self.assertEqual(sentence(413, message="too long", param=None), "too long: ImageScaleToTotalPixels makes pictures smaller")
        self.assertIn("8188 is ComfyUI's usual port: braid serve --port 8189", server.sentence(405, b"405: Method Not Allowed"))


class Bar:
    """Stands for ComfyUI's."""

    def __init__(self, total: int) -> None:
        self.seen: list[tuple[int, int]] = []
        Bar.newest = self

    def update_absolute(self, value: int, total: int, preview: Any = None) -> None:
        self.seen.append((value, total))

    newest: "Bar"


class Served(unittest.TestCase):
    """By the program, as ComfyUI asks it."""

    @classmethod
    def setUpClass(cls) -> None:
        with mock.patch.object(sys, "path", [str(ROOT / "tools/serve"), *sys.path]):
            running = importlib.import_module("running")
        flags = [flag for name, path in MODELS.items() for flag in ("-m", path, "--served-model-name", name)]
        cls.server = running.Server(PROGRAM, "--no-key", *map(str, flags)).wait_until_ready()
        cls.addClassCleanup(cls.server.__exit__)

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(pictures.torch, "from_numpy", lambda array: array))
        self.enterContext(mock.patch.object(generate.comfy.utils, "ProgressBar", Bar))

    def drawn(self, **given: Any) -> tuple[Any, Any]:
        usual = {"prompt": "a red circle", "width": 96, "height": 64, "steps": 2, "seed": 7, "batch": 1}
        return generate.generate(server=self.server.address, **{**usual, **given})

    def generated(self, model: str, *flags: Any) -> list[Any]:
        line = [PROGRAM, "generate", "a red circle", "-m", MODELS[model], "--size", "96x64", "--steps", "2", "--seed", "7", "-q"]
        out = Path(tempfile.mkdtemp(dir=self.folder))
        subprocess.run([*map(str, line), *map(str, flags), "-o", f"{out}/"], check=True, capture_output=True)
        return [np.asarray(Image.open(file)) for file in sorted(out.iterdir())]

    def check_equal(self, images: Any, wanted: list[Any]) -> None:
        np.testing.assert_array_equal(np.rint(images * 255), np.stack(wanted))

    def saved(self, array: Any) -> tuple[Path, Any]:
        """A file, and what LoadImage makes of it."""
        path = self.folder / f"{len(list(self.folder.iterdir()))}.png"
        Image.fromarray(array).save(path)
        return path, (array[None].astype(np.float32) / 255).view(TensorLike)

    def noise(self, width: int, height: int, channels: int = 3) -> Any:
        return np.random.default_rng(3).integers(0, 256, (height, width, channels), np.uint8)

    def test_batches_are_as_large_as_a_request_may_be(self) -> None:
        fields = {field.name: field for field in nodes_module("nodes").Generate.fields()}
        self.assertEqual(fields["batch"].limits["max"], self.server.json("GET", "/v1/capabilities")["limits"]["pictures"])

    def test_pictures_that_start_from_larger_ones(self) -> None:
        path, image = self.saved(self.noise(400, 300))
        images, mask = self.drawn(model="demo", image=image, strength=0.5)
        self.check_equal(images, self.generated("demo", "--init", path, "--strength", "0.5"))
        self.assertEqual((mask.shape, mask.max()), ((1, 64, 96), 0))

    def test_pictures_under_a_mask(self) -> None:
        path, image = self.saved(self.noise(120, 80))
        hole = np.zeros((80, 120), np.uint8)
        hole[20:, 30:] = 255
        mask_path, mask = self.saved(hole)
        images, _ = self.drawn(model="demo", image=image, mask=mask, strength=1.0)
        self.check_equal(images, self.generated("demo", "--init", path, "--mask", mask_path, "--strength", "1"))
        _, small = self.saved(hole[:8, :8])
        with self.assertRaisesRegex(process.Refused, "the mask should have the size of the initial picture, 120x80, it has 8x8"):
            self.drawn(model="demo", image=image, mask=small)

    def test_pictures_that_follow_others(self) -> None:
        path, image = self.saved(self.noise(400, 300))
        images, _ = self.drawn(model="control", control_image=image)
        self.check_equal(images, self.generated("control", "--control", path))

    def test_pictures_that_look_at_others(self) -> None:
        path, image = self.saved(self.noise(96, 64))
        images, _ = self.drawn(model="qwen-image-edit", reference=image)
        self.check_equal(images, self.generated("qwen-image-edit", "--reference", path))

    def test_all_layers_with_their_alpha(self) -> None:
        path, image = self.saved(self.noise(96, 64, 4))
        images, mask = self.drawn(model="qwen-image-layered", reference=image, layers=3)
        wanted = self.generated("qwen-image-layered", "--reference", path, "--layers", "3")
        self.assertEqual((images.shape, mask.shape), ((3, 64, 96, 4), (3, 64, 96)))
        self.check_equal(images, wanted)
        np.testing.assert_array_equal(np.rint(mask * 255), 255 - np.stack(wanted)[..., 3])
        self.assertEqual(Bar.newest.seen[-1], (2, 2))

    def test_progress_of_the_steps_that_are_taken(self) -> None:
        _, image = self.saved(self.noise(256, 256))
        self.drawn(model="demo", width=256, height=256, steps=10, batch=2, image=image, strength=0.3)
        seen = Bar.newest.seen
        self.assertEqual({total for _, total in seen}, {6}, "3 of the 10 steps, twice")
        self.assertEqual(sorted(seen), seen)
        self.assertEqual(seen[-1], (6, 6))

    def test_refusals_by_the_servers_bounds(self) -> None:
        with self.assertRaisesRegex(process.Refused, "at most 4194304 pixels here, this one has 268435456"):
            self.drawn(model="demo", width=16384, height=16384)
        with self.assertRaisesRegex(process.Refused, "^batch: "):
            self.drawn(model="demo", batch=64)


class Files(unittest.TestCase):
    def test_are_those_that_comfyui_lists(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for file in ("unet/a.safetensors", "unet/B.SafeTensors", "unet/c.GGUF", "unet/d.ckpt", "models/a.safetensors",
                         "models/in/e.sft", "checkpoints/a.safetensors", "checkpoints/f.safetensors"):
                path = Path(folder, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            Path(folder, "checkpoints/c.GGUF").symlink_to(Path(folder, "unet/c.GGUF"))
            places = {"diffusion_models": ["unet", "models"], "checkpoints": ["checkpoints"]}
            lists = types.SimpleNamespace(get_folder_paths=lambda name: [f"{folder}/{place}" for place in places[name]])
            with mock.patch.dict(sys.modules, {"folder_paths": lists}):
                model_files = nodes_module("model_files")
                found = {name: str(Path(path).relative_to(folder)) for name, path in model_files.files().items()}
                with self.assertRaisesRegex(process.Refused, "there is no d.ckpt in ComfyUI's folders"):
                    model_files.path_of("d.ckpt")
        self.assertEqual(found, {
            "a.safetensors": "unet/a.safetensors", "B.SafeTensors": "unet/B.SafeTensors", "c.GGUF": "unet/c.GGUF",
            "in/e.sft": "models/in/e.sft", "checkpoints/a.safetensors": "checkpoints/a.safetensors",
            "f.safetensors": "checkpoints/f.safetensors",
        })


class Package(unittest.TestCase):
    def test_has_the_version_of_braid(self) -> None:
        project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
        self.assertEqual(project["version"], braid_engine.version())


class Inputs(unittest.TestCase):
    def test_keep_the_order_of_saved_workflows(self) -> None:
        """Which have the values of widgets by their order: 0.2.0's come first."""
        names = [field.name for field in nodes_module("nodes").Generate.fields()]
        self.assertEqual(names, ["server", "prompt", "width", "height", "steps", "seed", "batch", "guidance", "negative_prompt", "model",
                                 "lora", "image", "strength", "true_cfg", "reference", "mask", "control_image", "layers"])


class Splits(unittest.TestCase):
    def test_that_are_none_are_named(self) -> None:
        from braid_engine import _options  # noqa: PLC0415

        with mock.patch.object(sys, "path", [str(FOLDER / "worker"), *sys.path]):
            degrees_in = importlib.import_module("forecast").degrees_in
        self.assertEqual(degrees_in("tp=2,ring=2", _options), {"tp": 2, "ring": 2})
        for split in ("TP=2", "tp=2,tp=3"):
            with self.assertRaisesRegex(ValueError, f"split should be auto, or degrees such as tp=2,ring=2 .* it is '{split}'"):
                degrees_in(split, _options)


class Devices(unittest.TestCase):
    """On a machine with two cards, one of them a laptop's, which no data sheet is of."""

    GPUS = MappingProxyType({
        "0": {"name": "NVIDIA GeForce RTX 4090", "data_sheet": "rtx-4090"},
        "1": {"name": "NVIDIA GeForce RTX 4090 Laptop GPU", "data_sheet": None},
    })

    def setUp(self) -> None:
        with mock.patch.object(sys, "path", [str(FOLDER / "worker"), *sys.path]):
            self.forecast = importlib.import_module("forecast")

    def test_are_planned_by_their_data_sheets(self) -> None:
        planned = self.forecast.planned_devices
        self.assertEqual(planned(["cuda", "cuda:0"], self.GPUS), ("rtx-4090,rtx-4090", None))
        why_not = "its speed on NVIDIA GeForce RTX 4090 Laptop GPU is not known"
        self.assertEqual(planned(["cuda:0", "cuda:1"], self.GPUS), ("2xcpu", why_not))
        self.assertEqual(planned(["cpu", "cuda:0"], self.GPUS), ("2xcpu", "its speed on cpu is not known"))
        self.assertEqual(planned(["cpu", "cpu"], self.GPUS), ("2xcpu", None))

    def test_have_the_bytes_of_their_ranks(self) -> None:
        parts = dict.fromkeys(self.forecast.ALONE, 1)
        layout = {"bytes": {"first_rank": {**parts, "transformer": 100, "vae": 50}, "largest_other": {**parts, "transformer": 10, "vae": 50}}}
        rest = len(parts) - 1
        self.assertEqual(self.forecast.bytes_on(["cuda", "cuda:1", "cuda:0"], layout), {"cuda:0": 110 + 2 * rest, "cuda:1": 10 + rest})
        alone = {"bytes": {"first_rank": {**parts, "transformer": 7}}}
        self.assertEqual(self.forecast.bytes_on(["cpu"], alone), {"cpu": 7 + rest})

    def test_that_are_not_there_are_named(self) -> None:
        from braid_engine import _options  # noqa: PLC0415

        engine = types.SimpleNamespace(info=lambda: {"devices": {"cpu": {}, "cuda:0": {}, "cuda:1": {}}, "gpus": self.GPUS})
        for devices, missing in ((["cuda:0-2"], "cuda:2"), (["cuda:1-0"], "cuda:1-0"), (["cpu", "mps"], "mps")):
            with self.assertRaisesRegex(ValueError, f"there is no device '{missing}' here: there are cpu, cuda:0, cuda:1"):
                self.forecast.forecast(engine, _options, None, {"devices": devices})


if __name__ == "__main__":
    unittest.main()
