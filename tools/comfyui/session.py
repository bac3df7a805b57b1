"""What all cases share: a running ComfyUI, and how results are compared."""

import time
import types
import unittest

import torch
from checkout import Failure
from workflows import Job, drawn

CLOSE = 2e-5  # of the largest latent: float32 rounding, through the steps
SOON = 10.0   # seconds that a process may take to end
here = types.SimpleNamespace(checkout=None, comfy=None, base=None, braid=None, python=None, known=set())


def changed(job, **values):
    return Job(**{**vars(job), **values})


def with_components(job, name, suffix=".safetensors"):
    """`job` with the file of that name, and its configurations where the tests have some."""
    folder = here.base / "components" / name
    given = {"components": str(folder)} if folder.is_dir() else {}
    return changed(job, file=f"{name}{suffix}", more={**given, **job.more})


class Case(unittest.TestCase):
    def needs(self, *names):
        """Skips the test where ComfyUI lacks one of these: nodes, classes of models, marks of files."""
        lacking = [name for name in names if name not in here.known]
        if lacking:
            self.skipTest(f"this ComfyUI has no {' and no '.join(lacking)}")

    def assert_close(self, made, wanted, bound=CLOSE):
        self.assertEqual(made.shape, wanted.shape)
        self.assertTrue(torch.isfinite(wanted).all())
        self.assertGreater(wanted.abs().max().item(), 0.1)
        self.assertLess(((made - wanted).abs().max() / wanted.abs().max()).item(), bound)

    def assert_equals_comfy(self, job, name, bound=CLOSE, **theirs):
        job = with_components(job, name)
        wanted = drawn(here.comfy, changed(job, **theirs), "comfy", "wanted")
        made = drawn(here.comfy, job)
        self.assert_close(made, wanted, bound)
        return made

    def assert_refused(self, job, *words):
        with self.assertRaises(Failure) as caught:
            drawn(here.comfy, job)
        sentence = str(caught.exception)
        for word in words:
            self.assertIn(word, sentence)
        self.assertEqual(len(sentence.splitlines()), 1, sentence)

    def workers(self):
        return here.comfy.descendants()

    def assert_soon(self, condition, seconds=SOON):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "it did not happen in time")
            time.sleep(0.05)

    def free(self, **also):
        """Has ComfyUI unload its models. It is asked again and again: its queue loses a wish that comes
        between its look at wishes and its wait for the next prompt."""
        def are_gone():
            here.comfy.ask("POST", "/free", {"unload_models": True, **also})
            time.sleep(0.5)
            return not self.workers()
        self.assert_soon(are_gone)
