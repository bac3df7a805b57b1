"""Braid's process as ComfyUI's sees it: started, asked, and ended without fail."""

import itertools
import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

from .worker.channel import Closed, receive, send

FOLDER = Path(__file__).resolve().parent
SETTING = FOLDER / "python.txt"
ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
OTHER_ALLOCATOR = "cudaMallocAsync"
OF_ONE_PYTHON = ("PYTHONHOME", "PYTHONPATH")  # where its own packages are
GLANCE = 0.05  # seconds between two looks at whether the user has interrupted
END = 5.0      # seconds that a process may take to end
ANSWER = 60.0  # seconds that it may take to answer what was cancelled


class Refused(ValueError):
    """What was asked for cannot be done; the sentence says why."""


class Failed(RuntimeError):
    """Something failed while running."""


class Interrupted(Exception):
    """The user interrupted; the process serves the next question."""


def python():
    """The interpreter that has braid_engine: BRAID_PYTHON, the first line of python.txt, else ComfyUI's own. A path, which
    may begin with ~, or a name on PATH."""
    said = os.environ.get("BRAID_PYTHON", "")
    where = "BRAID_PYTHON"
    if not said and SETTING.is_file():
        said, where = SETTING.read_text(encoding="utf-8-sig").split("\n", 1)[0].strip(), str(SETTING)
    found = shutil.which(os.path.expanduser(said)) if said else sys.executable
    if found is None:
        raise Refused(f"{where} should name the Python that has braid_engine, there is no program {said!r}")
    return found


def environment_for(program, environment):
    """Braid's, of ComfyUI's `environment`: without what was set for ComfyUI's torch and Python alone."""
    kept = {name: value for name, value in environment.items() if name not in ALLOCATORS or OTHER_ALLOCATOR not in value}
    if os.path.abspath(shutil.which(program) or program) != os.path.abspath(sys.executable):
        kept = {name: value for name, value in kept.items() if name not in OF_ONE_PYTHON}
    return {**kept, "BRAID_LAUNCHER": "none", "PYTHONDONTWRITEBYTECODE": "1"}


def check_system():
    """Raises Refused where there is no Braid."""
    if sys.platform != "linux":
        raise Refused(f"Braid's process runs on Linux and WSL2, this ComfyUI on {sys.platform}: Generate (Braid server) asks a "
                      "server elsewhere")


def end(process, connection):
    """Closes the connection, upon which the process ends; a process that does not is killed. None is left behind."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
    try:
        process.wait(END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Worker:
    """One process. It lives until close(), until this object is collected, or until ComfyUI ends in any way."""

    def __init__(self):
        check_system()
        program = python()
        self.connection, theirs = socket.socketpair()
        line = [program, str(FOLDER / "worker"), str(theirs.fileno())]
        try:
            with theirs:
                # A session of its own: Ctrl-C in ComfyUI's terminal is ComfyUI's to act on.
                self.process = subprocess.Popen(
                    line, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
                    env=environment_for(program, os.environ),
                )
        except OSError as error:
            self.connection.close()
            raise Refused(f"Braid's process could not be started with {program}: {error.strerror}") from error
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.ending = weakref.finalize(self, end, self.process, self.connection)
        try:
            self.facts, _ = self.ask("hello")
        except Refused as error:
            self.close()
            missing = "No module named 'braid_engine'" in str(error)
            raise Refused(
                f"{program} has no braid_engine: install it there (pip install ./python in Braid's folder), or let the "
                f"environment variable BRAID_PYTHON or {SETTING} name the Python that has it"
                if missing else str(error)
            ) from None
        except Failed:
            self.close()
            raise

    @property
    def is_alive(self):
        return self.ending.alive and self.process.poll() is None

    def close(self):
        self.ending()

    def ask(self, do, message=None, arrays=None, interrupted=lambda: False):
        """Braid's answer: (object, arrays). Raises Refused, Failed, or Interrupted once `interrupted()` is true."""
        with self.lock:
            number = next(self.numbers)
            try:
                send(self.connection, {**(message or {}), "do": do, "number": number}, arrays)
                self.wait(number, interrupted)
                answer, made = receive(self.connection)
            except Closed:
                raise Failed(self.obituary()) from None
            except BaseException:
                self.close()  # an answer may be on its way, which the next question would take for its own
                raise
        state = answer.pop("state")
        del answer["number"]
        if state == "cancelled":
            raise Interrupted
        if state != "done":
            raise (Refused if state == "input" else Failed)(answer["sentence"])
        return answer, made

    def wait(self, number, interrupted):
        """Returns when there is something to receive. What was interrupted is cancelled, and its answer awaited; without
        one, this raises Interrupted, and whoever asked closes the process."""
        until = None
        readable = select.poll()  # select() takes no descriptors from 1024 on
        readable.register(self.connection, select.POLLIN)
        while not readable.poll(GLANCE * 1000):
            if until is None and interrupted():
                send(self.connection, {"do": "cancel", "number": number})
                until = time.monotonic() + ANSWER
            if until is not None and time.monotonic() > until:
                logging.warning("Braid's process did not stop within %g s: it is ended, the next run starts another", ANSWER)
                raise Interrupted

    def obituary(self):
        self.close()
        code = self.process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        memory = ", which is what a system does that has no memory left" if code == -9 else ""
        return f"Braid's process {how}{memory}; the next run starts another"
