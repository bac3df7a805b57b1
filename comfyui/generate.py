"""Generate (Braid server): a job of `braid serve`, with its progress and previews in ComfyUI."""

import base64
import http.client
import io
import json
import logging
import math
import os
import queue
import threading
import time
import urllib.parse

import comfy.model_management
import comfy.utils
import numpy as np
import torch
from PIL import Image

from .process import Failed, Refused

GLANCE = 0.05    # seconds between two looks at whether the user has interrupted
TIMEOUT = 60     # seconds that the server may take to answer
RETRIES = 5      # times that a lost stream of events is taken up again
LOADING = 1.0    # seconds between two questions whether the model is loaded
BUSY, NOT_READY, GONE = 429, 503, 404
MOST_CHANNELS = 4  # of a picture


def parts_of(address):
    """What urlsplit() finds in it. Raises Refused for what no connection can be made to."""
    try:
        parts = urllib.parse.urlsplit(address if "//" in address else f"http://{address}")
        parts.hostname.encode("idna")
        http.client.HTTPConnection(parts.netloc.rpartition("@")[2], parts.port)  # which checks the name, and connects later
        is_path = parts.path.isascii() and parts.path.isprintable() and " " not in parts.path
    except (ValueError, AttributeError, http.client.InvalidURL):
        is_path = False
    if not is_path or parts.scheme not in ("http", "https"):
        raise Refused(f"server should be an address such as http://127.0.0.1:8188, it is {address!r}")
    return parts


def key_headers():
    """The first line is the key, as for the server; none without one. What is refused of it is not shown."""
    lines = os.environ.get("BRAID_API_KEY", "").removeprefix("\ufeff").splitlines()
    key = lines[0].strip() if lines else ""
    if not key.isascii() or not key.isprintable():
        raise Refused("BRAID_API_KEY should have printable ASCII characters alone")
    return {"authorization": f"Bearer {key}"} if key else {}


class Server:
    def __init__(self, address):
        parts = parts_of(address)
        self.kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.host, self.path = parts.netloc.rpartition("@")[2], parts.path.rstrip("/")
        self.address = f"{parts.scheme}://{self.host}{self.path}"
        self.headers = key_headers()

    def open(self, method, path, body=None, headers=None):
        """(connection, response). Raises Failed naming the server if there is none."""
        data = None if body is None else json.dumps(body)
        own = {"content-type": "application/json"} if data else {}
        connection = self.kind(self.host, timeout=TIMEOUT)
        try:
            connection.request(method, self.path + path, data, {**self.headers, **own, **(headers or {})})
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Failed(f"no server answers at {self.address}: {error or type(error).__name__}") from error

    def ask(self, method, path, body=None):
        """(status, bytes)"""
        connection, response = self.open(method, path, body)
        try:
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"the connection to {self.address} was lost: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, data = self.ask(method, path, body)
        if status >= http.client.MULTIPLE_CHOICES:
            raise (Refused if status < http.client.INTERNAL_SERVER_ERROR else Failed)(self.sentence(status, data))
        try:
            return json.loads(data)
        except ValueError as error:
            raise Failed(f"{self.address} is no server of Braid: it answers something else than JSON") from error

    def sentence(self, status, data):
        try:
            return json.loads(data)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            return f"{self.address} answers with status {status}: is it a server of Braid?"


def check_interrupted():
    comfy.model_management.throw_exception_if_processing_interrupted()


def pause(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        check_interrupted()
        time.sleep(GLANCE)


def await_model(server):
    """Returns once the server's model is loaded."""
    while True:
        status, data = server.ask("GET", "/readyz")
        if status != NOT_READY:
            return
        try:
            state = json.loads(data).get("status")
        except ValueError:
            state = None
        if state != "loading":
            raise Failed(server.sentence(status, data) if state is None else f"the server at {server.address} is {state}")
        pause(LOADING)


class Events:
    """A job's events, read on a thread of its own so that the user can interrupt meanwhile."""

    def __init__(self, server, job):
        self.server, self.job = server, job
        self.last = None
        self.found = queue.Queue()
        self.connection = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for attempt in range(RETRIES + 1):
            try:
                self.read_stream()
                return
            except Exception as error:  # of any kind: next() waits for this thread
                lost = str(error) or type(error).__name__
                time.sleep(0.2 * attempt)
        self.found.put(("lost", {"message": f"the connection to {self.server.address} was lost: {lost}"}))

    def read_stream(self):
        headers = {"last-event-id": self.last} if self.last else {}
        self.connection, response = self.server.open("GET", f"/v1/jobs/{self.job}/events", headers=headers)
        try:
            if response.status >= http.client.MULTIPLE_CHOICES:
                sentence = self.server.sentence(response.status, response.read())
                self.found.put(("lost", {"message": sentence}))
                return
            name, data = "", []
            for line in response:
                key, _, value = line.decode().rstrip("\r\n").partition(":")
                value = value.removeprefix(" ")
                if key == "event":
                    name = value
                elif key == "data":
                    data.append(value)
                elif key == "id":
                    self.last = value
                elif not key and not value and name:
                    self.found.put((name, json.loads("\n".join(data) or "{}")))
                    if name in ("done", "failed", "cancelled"):
                        return
                    name, data = "", []
            raise OSError("the stream of events ended before the job")
        finally:
            self.connection.close()

    def next(self):
        """The next (name, data), or raises ComfyUI's interruption."""
        while True:
            check_interrupted()
            try:
                return self.found.get(timeout=GLANCE)
            except queue.Empty:
                continue


def loras_of(text):
    """ "ink=0.8,hands" -> [{"name": "ink", "scale": 0.8}, {"name": "hands", "scale": 1.0}]"""
    loras = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, given, scale = one.partition("=")
        try:
            number = float(scale) if given else 1.0
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise Refused(f"lora should be names with scales such as ink=0.8,hands, {one!r} is not")
        loras.append({"name": name.strip(), "scale": number})
    return loras


def png_of(image):
    """Base64 of the picture of [1, H, W, C]."""
    if len(image) != 1:
        raise Refused(f"image should be one picture to start from, a batch of {len(image)} was given: ImageFromBatch chooses one")
    if image.ndim == 4 and image.shape[-1] == 1:  # Pillow has grey pictures without channels
        image = image[..., 0]
    if image.ndim != 3 and not (image.ndim == 4 and 1 <= image.shape[-1] <= MOST_CHANNELS):
        raise Refused(f"image should be a picture [1, height, width, channels] of 1 to {MOST_CHANNELS} channels, it is {list(image.shape)}")
    pixels = np.rint(image[0].detach().cpu().float().numpy().clip(0, 1) * 255).astype(np.uint8)
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


def pixels_of(data):
    """[1, H, W, 3] in 0 to 1, of a PNG."""
    with Image.open(io.BytesIO(data)) as picture:
        return torch.from_numpy(np.asarray(picture.convert("RGB"), np.float32) / 255)[None]


def check_finite(**numbers):
    """Raises Refused for what JSON has no number for."""
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise Refused(f"{name} should be a finite number, it is {value}")


def request_of(prompt, width, height, steps, seed, batch, guidance=-1.0, negative_prompt="", model="", lora="", image=None,
               strength=0.75, true_cfg=1.0):
    check_finite(guidance=guidance, strength=strength, true_cfg=true_cfg)
    request = {"prompt": prompt, "seed": seed, "n": batch, "previews": True}
    if (width > 0) != (height > 0):
        raise Refused(f"width and height should both be given, or both be 0, they are {width} and {height}")
    numbers = {"width": width, "height": height, "steps": steps}
    request.update({name: value for name, value in numbers.items() if value > 0})
    if guidance >= 0:
        request["guidance"] = guidance
    if true_cfg > 1:
        request["true_cfg"] = true_cfg
    words = {"negative_prompt": negative_prompt, "model": model.strip()}
    request.update({name: value for name, value in words.items() if value})
    if loras := loras_of(lora):
        request["lora"] = loras
    if image is not None:
        request.update({"init": png_of(image), "strength": strength})
    return request


def show(bar, total, data, preview=None):
    steps = max(1, total["steps"])
    bar.update_absolute(min(data.get("picture", 0) * steps + data.get("step", 0), total["all"]), total["all"], preview)


def preview_of(data):
    with Image.open(io.BytesIO(base64.b64decode(data["b64_json"]))) as picture:
        return "JPEG", picture.convert("RGB"), None


def warn(sentence):
    logging.warning("Braid: %s", sentence)


def follow(server, job):
    """Shows the job's events until its end. Raises Failed with the server's sentence."""
    warned = job.get("warnings", [])  # others come as events
    for sentence in warned:
        warn(sentence)
    request = job["request"]
    total = {"steps": request["steps"], "all": request["steps"] * request["n"]}
    bar = comfy.utils.ProgressBar(total["all"])
    events = Events(server, job["id"])
    while True:
        name, data = events.next()
        if name == "progress" and data.get("phase") == "denoise":
            show(bar, total, data)
        elif name == "preview":
            show(bar, total, data, preview_of(data))
        elif name == "warning" and data["message"] not in warned:
            warn(data["message"])
        elif name in ("failed", "cancelled", "lost"):
            raise Failed(data.get("message") or f"the job was {name}")
        elif name == "done":
            return


def generate(server, **request):
    """[B, H, W, 3]. Raises Refused or Failed with the server's sentence; an interruption cancels the job."""
    server = Server(server.strip())
    body = request_of(**request)
    await_model(server)
    job = server.json("POST", "/v1/jobs", body)
    path = f"/v1/jobs/{job['id']}"
    try:
        follow(server, job)
        made = []
        for number in range(job["request"]["n"]):
            check_interrupted()
            status, data = server.ask("GET", f"{path}/pictures/{number}")
            if status != http.client.OK:
                raise Failed(server.sentence(status, data))
            made.append(pixels_of(data))
        return torch.cat(made)
    except BaseException:
        try:
            server.ask("DELETE", path)  # nobody will ask for the pictures
        except Failed:
            pass
        raise
