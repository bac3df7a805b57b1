"""Generate (Braid server): a job of `braid serve`, with its progress and previews in ComfyUI."""

import http.client
import json
import logging
import math
import os
import queue
import re
import threading
import time
import urllib.parse

import comfy.model_management
import comfy.utils

from .pictures import base64_of, made_of, mask_in, one_in, pictures_in, preview_in, scaled_down
from .process import Failed, Refused

GLANCE = 0.05    # seconds between two looks at whether the user has interrupted
TIMEOUT = 60     # seconds that the server may take to answer
RETRIES = 5      # times that a lost stream of events is taken up again, while none comes
LOADING = 1.0    # seconds between two questions whether the model is loaded
NOT_ALLOWED, TOO_LARGE, NOT_READY = 405, 413, 503
EXAMPLE = "http://127.0.0.1:8189"
INPUTS = {"n": "batch", "init": "image", "control": "control_image"}  # of the node, for the request's fields of other names


def check_alone(address):
    """Raises Refused for what an address has beside scheme, host, port and path: it would be lost."""
    rest = address.partition("//")[2] or address
    if "@" in re.split("[/?#]", rest)[0]:  # not shown: it is a secret
        raise Refused("server should be an address without a user and password: the environment variable BRAID_API_KEY has the key")
    for mark, what in (("#", "fragment"), ("?", "query")):
        if mark in rest:
            raise Refused(f"server should be an address such as {EXAMPLE}, it has the {what} {mark + rest.split(mark, 1)[1]!r}")


def parts_of(address):
    """What urlsplit() finds in it. Raises Refused for what no connection can be made to."""
    check_alone(address)
    try:
        parts = urllib.parse.urlsplit(address if "//" in address else f"http://{address}")
        parts.hostname.encode("idna")
        http.client.HTTPConnection(parts.netloc, parts.port)  # which checks the name, and connects later
        is_path = parts.path.isascii() and parts.path.isprintable() and " " not in parts.path
    except (ValueError, AttributeError, http.client.InvalidURL):
        is_path = False
    if not is_path or parts.scheme not in ("http", "https"):
        raise Refused(f"server should be an address such as {EXAMPLE}, it is {address!r}")
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
        self.host, self.path = parts.netloc, parts.path.rstrip("/")
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
            error = json.loads(data)["error"]
            sentence = error["message"]
        except (ValueError, KeyError, TypeError):
            usual = " 8188 is ComfyUI's usual port: braid serve --port 8189 takes another" if status == NOT_ALLOWED else ""
            return f"{self.address} answers with status {status}: is it a server of Braid?{usual}"
        if status == TOO_LARGE:
            sentence += ": ImageScaleToTotalPixels makes pictures smaller"
        return f"{INPUTS[error['param']]}: {sentence}" if error.get("param") in INPUTS else sentence


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
        attempt = 0
        while attempt <= RETRIES:
            before = self.last
            try:
                self.read_stream()
                return
            except Exception as error:  # of any kind: next() waits for this thread
                lost = str(error) or type(error).__name__
                attempt = attempt + 1 if self.last == before else 0
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
            name, data, number = "", [], self.last
            for line in response:
                key, _, value = line.decode().rstrip("\r\n").partition(":")
                value = value.removeprefix(" ")
                if key == "event":
                    name = value
                elif key == "data":
                    data.append(value)
                elif key == "id":
                    number = value
                elif not key and not value and name:
                    self.found.put((name, json.loads("\n".join(data) or "{}")))
                    self.last = number  # one that was cut off before its end is asked for again
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


def check_finite(**numbers):
    """Raises Refused for what JSON has no number for."""
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise Refused(f"{name} should be a finite number, it is {value}")


def brought_in(width, height, image=None, strength=0.75, reference=None, mask=None, control_image=None):
    """The request's pictures. Where a mask belongs to a picture, the server compares their sizes."""
    brought = {}
    if image is not None:
        start = one_in("image", image)
        brought = {"init": base64_of(start if mask is not None else scaled_down(start, width, height)), "strength": strength}
    if mask is not None:
        brought["mask"] = base64_of(mask_in(mask))
    if reference is not None:
        brought["reference"] = [base64_of(picture) for picture in pictures_in("reference", reference)]
    if control_image is not None:
        followed = pictures_in("control_image", control_image)
        brought["control"] = [base64_of(scaled_down(picture, width, height)) for picture in followed]
    return brought


def request_of(prompt, width, height, steps, seed, batch, guidance=-1.0, negative_prompt="", model="", lora="",
               strength=0.75, true_cfg=1.0, layers=0, **pictures):
    check_finite(guidance=guidance, strength=strength, true_cfg=true_cfg)
    request = {"prompt": prompt, "seed": seed, "n": batch, "previews": True}
    if (width > 0) != (height > 0):
        raise Refused(f"width and height should both be given, or both be 0, they are {width} and {height}")
    numbers = {"width": width, "height": height, "steps": steps, "layers": layers}
    request.update({name: value for name, value in numbers.items() if value > 0})
    if guidance >= 0:
        request["guidance"] = guidance
    if true_cfg > 1:
        request["true_cfg"] = true_cfg
    words = {"negative_prompt": negative_prompt, "model": model.strip()}
    request.update({name: value for name, value in words.items() if value})
    if loras := loras_of(lora):
        request["lora"] = loras
    return {**request, **brought_in(width, height, strength=strength, **pictures)}


class Bar:
    """ComfyUI's progress bar over a job's rounds, each of as many steps as the server takes: fewer than were asked for where
    it starts from a picture. A round makes one picture, or all layers or frames of one."""

    def __init__(self, request):
        self.rounds, self.steps = request["n"], max(1, request["steps"])
        self.bar = comfy.utils.ProgressBar(self.rounds * self.steps)

    def show(self, number, data, preview=None):
        """After a step of the round of this number."""
        self.steps = max(1, data.get("steps", self.steps))
        total = self.rounds * self.steps
        self.bar.update_absolute(min(number * self.steps + data.get("step", 0), total), total, preview)

    def show_progress(self, data):
        files_per_round = max(1, data.get("pictures", self.rounds) // self.rounds)
        self.show(data.get("picture", 0) // files_per_round, data)

    def show_preview(self, data):
        self.show(data.get("picture", 0), data, preview_in(data["b64_json"]))

    def end(self):
        self.bar.update_absolute(self.rounds * self.steps, self.rounds * self.steps)


def warn(sentence):
    logging.warning("Braid: %s", sentence)


def follow(server, job):
    """Shows the job's events until its end. Raises Failed with the server's sentence."""
    warned = job.get("warnings", [])  # others come as events
    for sentence in warned:
        warn(sentence)
    bar = Bar(job["request"])
    events = Events(server, job["id"])
    while True:
        name, data = events.next()
        if name == "progress" and data.get("phase") == "denoise":
            bar.show_progress(data)
        elif name == "preview":
            bar.show_preview(data)
        elif name == "warning" and data["message"] not in warned:
            warn(data["message"])
        elif name in ("failed", "cancelled", "lost"):
            raise Failed(data.get("message") or f"the job was {name}")
        elif name == "done":
            bar.end()
            return


def files_of(server, path):
    """The PNGs that the job has made: layers and frames are one each."""
    files = []
    for number in range(len(server.json("GET", path)["pictures"])):
        check_interrupted()
        status, data = server.ask("GET", f"{path}/pictures/{number}")
        if status != http.client.OK:
            raise Failed(server.sentence(status, data))
        files.append(data)
    return files


def generate(server, **request):
    """([B, H, W, C], [B, H, W]): pictures, and what is transparent in them. Raises Refused or Failed with the server's
    sentence; an interruption cancels the job."""
    server = Server(server.strip())
    body = request_of(**request)
    await_model(server)
    job = server.json("POST", "/v1/jobs", body)
    path = f"/v1/jobs/{job['id']}"
    try:
        follow(server, job)
        return made_of(files_of(server, path))
    except BaseException:
        try:
            server.ask("DELETE", path)  # nobody will ask for the pictures
        except Failed:
            pass
        raise
