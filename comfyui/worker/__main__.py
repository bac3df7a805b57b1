"""A process of Braid that evaluates a transformer for ComfyUI: python comfyui/worker FD.

FD is a socket whose other end is in ComfyUI's process. The process ends when that end closes. A message "cancel" ends
the work on an earlier message; all others are answered in order.
"""

import _thread
import os
import queue
import signal
import socket
import sys
import threading
import traceback

from channel import Closed, receive, send
from forecast import forecast


class Cancelled(Exception):
    pass


class Inbox:
    """Reads messages on a thread of its own, so that a running evaluation can be cancelled and an end is noticed."""

    def __init__(self, connection):
        self.connection = connection
        self.messages = queue.Queue()
        self.lock = threading.Lock()
        self.running = None    # the number of the message that is worked on
        self.cancelled = None  # the last one that should not be
        signal.signal(signal.SIGINT, self.interrupt)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while True:
                self.take(*receive(self.connection))
        except Closed:
            os._exit(0)  # nobody is left to answer, and the work may take long
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # nobody would read what comes, and ComfyUI would wait for ever

    def take(self, message, arrays):
        if message["do"] != "cancel":
            self.messages.put((message, arrays))
            return
        with self.lock:
            self.cancelled = message["number"]
            if self.running == self.cancelled:
                _thread.interrupt_main()

    def interrupt(self, *_):
        """SIGINT's handler, on the main thread: an interrupt that comes late, after the work, is none."""
        if self.running is not None and self.running == self.cancelled:
            raise KeyboardInterrupt

    def work(self, message, arrays, do):
        with self.lock:
            if message["number"] == self.cancelled:
                raise Cancelled
            self.running = message["number"]
        try:
            return do(message, arrays)
        except KeyboardInterrupt:
            raise Cancelled from None
        finally:
            self.running = None


class Denoiser:
    def __init__(self):
        import braid_engine  # noqa: PLC0415  its errors are answered
        from braid_engine import _core, _options, _program  # noqa: PLC0415

        self.engine, self.core, self.options, self.program = braid_engine, _core, _options, _program
        self.transformer = None

    def hello(self, message, arrays):
        return {"version": self.engine.version(), "libtorch": self.engine.LIBTORCH_VERSION}, {}

    def plan(self, message, arrays):
        return forecast(self.engine, self.options, self.program.answer_of, message["options"]), {}

    def load(self, message, arrays):
        self.transformer = None  # before the next one, not beside it
        given = message["options"]
        options = self.core.PipelineOptions()
        options.model = given["model"]
        options.published = self.options.MODELS / "published"
        if given["components"]:
            options.components = given["components"]
        options.dtype = self.options.dtype_of(given["dtype"])
        options.devices = self.options.devices_of(given["devices"])
        options.threads = given["threads"]
        options.adapters = [self.core.Adapter(file, scale) for file, scale in message["adapters"]]
        options.layout = self.options.layout_of(given["split"] or {}, len(options.devices))
        options.memory = self.options.memory_of(None, None, given["quantization"], None, given["offload"])
        warnings = []
        self.transformer = self.core.Transformer(options, warnings.append)
        return {"warnings": warnings}, {}

    def velocity(self, message, arrays):
        evaluation = self.core.TransformerInput(arrays["latents"], arrays["text"])
        if "pooled" in arrays:
            evaluation.set_pooled(arrays["pooled"])
        if "latent_ids" in arrays:
            evaluation.set_ids(arrays["latent_ids"], arrays["text_ids"])
        for name in message.get("doubles", []):
            evaluation.add_double_residual(arrays[name])
        for name in message.get("singles", []):
            evaluation.add_single_residual(arrays[name])
        evaluation.timesteps = message["timesteps"]
        evaluation.guidance = message["guidance"]
        evaluation.width, evaluation.height = message["width"], message["height"]
        evaluation.num_references = message["num_references"]
        return {}, {"velocity": self.transformer.velocity(evaluation)}


WORK = ("hello", "plan", "load", "velocity")


def sentence_of(error):
    return str(error).strip() or type(error).__name__


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    inbox = Inbox(connection)
    denoiser = None
    while True:
        message, arrays = inbox.messages.get()
        number = message["number"]
        try:
            try:
                if denoiser is None:
                    denoiser = Denoiser()
                if message["do"] not in WORK:
                    raise ValueError(f"Braid's process has no {message['do']!r}: its files are of another version")
                answer, arrays = inbox.work(message, arrays, getattr(denoiser, message["do"]))
                send(connection, {"number": number, "state": "done", **answer}, arrays)
            except (Cancelled, KeyboardInterrupt):  # the latter if it came just before the work, or just after
                inbox.running = None
                send(connection, {"number": number, "state": "cancelled"})
            except (Exception, SystemExit) as error:
                kind = "input" if isinstance(error, (ValueError, ImportError)) else "failure"
                send(connection, {"number": number, "state": kind, "sentence": sentence_of(error)})
        except Closed:
            os._exit(0)


main()
