"""Processes that end while pipelines draw, and children of fork()."""

import copy
import os
import pickle
import subprocess
import sys
import unittest
from unittest import mock

from braid_engine import InputError, _core
from shared import pipeline

# Two threads that Python does not wait for, of which one waits for the other's call.
LEFT_DRAWING = """
import threading, time
from braid_engine import Pipeline
pipe = Pipeline.from_pretrained()
begun = threading.Event()
def draw():
    while True:
        pipe("a red circle", width=256, height=256, num_inference_steps=5000, callback_on_step_end=lambda *_: begun.set())
for _ in range(2):
    threading.Thread(target=draw, daemon=True).start()
begun.wait()
time.sleep(0.3)
print("leaves")
"""

FORKED = """
import asyncio, os, signal, sys
from braid_engine import Pipeline
run = {"width": 64, "height": 64, "num_inference_steps": 1, "generator": 3}
pipe = Pipeline.from_pretrained(threads=1)
asyncio.run(pipe.generate("a red circle", **run))
if os.fork():
    _, status = os.wait()
    print(os.waitstatus_to_exitcode(status), len(pipe("a red circle", **run).images))
else:
    signal.alarm(50)  # what waits for ever ends, too
    for draw in (pipe, lambda *a, **k: asyncio.run(pipe.generate(*a, **k))):
        try:
            draw("a red circle", **run)
        except RuntimeError as error:
            print(type(error).__name__, error)
    pipe.close()
    print(len(Pipeline.from_pretrained(threads=1)("a red circle", **run).images), flush=True)
    sys.exit(7)
"""


HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALRANKID": "0"}
SLURM = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "here"}


class Launchers(unittest.TestCase):
    def is_launched(self, variables: dict[str, str]) -> bool:
        others = {k: v for k, v in os.environ.items() if not k.startswith(("BRAID_LAUNCHER", "OMPI_", "PMI_", "SLURM_"))}
        with mock.patch.dict(os.environ, {**others, **variables}, clear=True):
            return _core.is_launched()

    def test_in_the_order_that_the_ranks_are_found_by(self) -> None:
        """Hydra starts its proxies by srun, so that one process of mpirun has a step of several tasks."""
        self.assertFalse(self.is_launched({}))
        self.assertTrue(self.is_launched(SLURM))
        self.assertFalse(self.is_launched({**SLURM, **HYDRA}))
        self.assertTrue(self.is_launched({**HYDRA, "PMI_SIZE": "2"}))
        self.assertFalse(self.is_launched({**SLURM, "BRAID_LAUNCHER": "none"}))

    def test_by_variables_that_cannot_be_read_are_named(self) -> None:
        with self.assertRaisesRegex(InputError, "the variable PMI_SIZE should be a number between 1 and 1024, it is 'x'"):
            self.is_launched({**HYDRA, "PMI_SIZE": "x"})


class Processes(unittest.TestCase):
    def finished(self, program: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    def test_end_while_threads_draw(self) -> None:
        done = self.finished(LEFT_DRAWING)
        self.assertEqual((done.returncode, done.stdout), (0, "leaves\n"), done.stderr)

    def test_that_are_forked_cannot_use_what_was_loaded_before(self) -> None:
        done = self.finished(FORKED)
        said = "Error this model was loaded before fork(): load it in the child, or start processes with spawn"
        self.assertEqual(done.stdout.splitlines(), [said, said, "1", "7 1"], done.stderr)

    def test_get_pipelines_by_loading_them(self) -> None:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "a pipeline cannot be pickled or copied: call from_pretrained"):
                copied(pipeline())


if __name__ == "__main__":
    unittest.main()
