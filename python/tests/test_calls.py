"""Callbacks, Ctrl-C, threads and asyncio."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from braid_engine import Cancelled, Error, InputError, Pipeline
from shared import PROMPT, RUN, pipeline

LONG = {"width": 256, "height": 256, "num_inference_steps": 5000}

INTERRUPTED = """
import os, signal, threading, time
from braid_engine import Pipeline
pipe = Pipeline.from_pretrained()
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    pipe("a red circle", width=256, height=256, num_inference_steps=5000)
except KeyboardInterrupt:
    print("interrupted after", round(time.monotonic() - began, 1))
image = pipe("a red circle", width=64, height=64, num_inference_steps=1).images[0]
print("went on")
"""

# Ctrl-C in a call that waits for another thread's.
INTERRUPTED_WAITING = """
import os, signal, threading, time
from braid_engine import Pipeline
pipe = Pipeline.from_pretrained()
run = {"width": 256, "height": 256}
threading.Thread(target=lambda: pipe("a red circle", num_inference_steps=5000, **run), daemon=True).start()
time.sleep(0.5)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    pipe("a red circle", num_inference_steps=1, **run)
except KeyboardInterrupt:
    print("interrupted after", round(time.monotonic() - began, 1), flush=True)
os._exit(0)
"""

# A signal that comes while a pipeline is released: the other thread runs as soon as that lets go of the interpreter.
INTERRUPTED_RELEASING = """
import os, signal, sys, threading, time
from braid_engine import Pipeline
pipe = Pipeline.from_pretrained()
waits = threading.Lock()
waits.acquire()
def interrupt():
    waits.acquire()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
time.sleep(0.5)
sys.setswitchinterval(60)
try:
    waits.release()
    pipe.close()
    time.sleep(5)
    print("swallowed")
except KeyboardInterrupt:
    print("interrupted")
"""

CALLING_ITSELF = """
from braid_engine import Pipeline
reported = False
def draw(*_):
    pipe("a red circle", **run)
run = {"width": 64, "height": 64, "num_inference_steps": 2, "generator": 3}
pipe = Pipeline.from_pretrained(progress=lambda told: reported and draw())
for reported, callbacks in ((False, {"callback_on_step_end": draw}), (False, {"preview": draw}), (True, {})):
    try:
        pipe("a red circle", **callbacks, **run)
    except RuntimeError as error:
        print(type(error).__name__, error, flush=True)
reported = False
print(len(pipe("a red circle", **run).images))
"""

# As torchrun starts it.
LAUNCHED = """
from braid_engine import Pipeline
def stop(*_):
    raise RuntimeError("no more")
pipe = Pipeline.from_pretrained(layout="tp=2", threads=1)
request = {"width": 64, "height": 64, "num_inference_steps": 1, "generator": 3}
print(len(pipe("a red circle", **request).images))
try:
    pipe("a red circle", **request, callback_on_step_end=stop)
except Exception as error:
    print(error)
"""


class Launched(unittest.TestCase):
    def test_the_first_rank_has_the_pictures_and_callbacks(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        torchrun = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", LAUNCHED],
                env={**os.environ, **torchrun, "RANK": rank, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": "2"},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in "01"
        ]
        first, second = (rank.communicate(timeout=120)[0].splitlines() for rank in ranks)
        self.assertEqual(first, ["1", "no more"])
        self.assertEqual(second, ["0", "rank 0 failed: a callback raised an exception"])


class Callbacks(unittest.TestCase):
    def test_see_latents_and_may_change_them(self) -> None:
        pipe = pipeline()
        seen = {}

        def note(given: object, step: int, timestep: float, inputs: dict) -> dict:
            self.assertIs(given, pipe)
            self.assertGreater(timestep, 0)
            seen[step] = np.array(inputs["latents"])
            return inputs

        wanted = pipe(PROMPT, generator=5, callback_on_step_end=note, **RUN).images[0]
        self.assertEqual(sorted(seen), [0, 1, 2])
        self.assertEqual(seen[0].shape, (1, 12, 64))

        def replace(_: object, step: int, timestep: float, inputs: dict) -> dict:
            return {"latents": seen[1]} if step == 1 else {}

        replaced = pipe(PROMPT, generator=8, callback_on_step_end=replace, **RUN).images[0]
        np.testing.assert_array_equal(np.asarray(replaced), np.asarray(wanted))

    def test_may_change_latents_in_place(self) -> None:
        """As in diffusers, where what is not returned is the tensor that the callback got."""

        def halved(_: object, step: int, timestep: float, inputs: dict) -> dict:
            return {"latents": inputs["latents"] * np.float32(0.5)} if step == 1 else {}

        def in_place(_: object, step: int, timestep: float, inputs: dict) -> None:
            if step == 1:
                inputs["latents"] *= np.float32(0.5)

        def both(*given: Any) -> dict:
            in_place(*given)
            return {}

        def rebound(_: object, step: int, timestep: float, inputs: dict) -> dict:
            inputs["latents"] = inputs["latents"] * 0
            return {}

        def drawn(callback: Any) -> Any:
            return np.asarray(pipeline()(PROMPT, generator=5, callback_on_step_end=callback, **RUN).images[0])

        usual, wanted = drawn(None), drawn(halved)
        self.assertFalse(np.array_equal(wanted, usual))
        np.testing.assert_array_equal(drawn(in_place), wanted)
        np.testing.assert_array_equal(drawn(both), wanted)
        np.testing.assert_array_equal(drawn(rebound), usual, "diffusers' own latents stay the old ones")

    def test_may_leave_out_their_inputs(self) -> None:
        given = []
        pipeline()(
            PROMPT,
            callback_on_step_end=lambda *a: given.append(a[3]),
            callback_on_step_end_tensor_inputs=[],
            **RUN,
        )
        self.assertEqual(given, [{}, {}, {}])
        with self.assertRaisesRegex(InputError, "it has 'prompt_embeds'"):
            pipeline()(
                PROMPT,
                callback_on_step_end=print,
                callback_on_step_end_tensor_inputs=["prompt_embeds"],
                **RUN,
            )

    def test_end_the_call_by_raising(self) -> None:
        steps = []

        def fail(_: object, step: int, timestep: float, inputs: dict) -> None:
            steps.append(step)
            raise LookupError("enough")

        for layout in (None, "tp=2"):
            pipe = pipeline(layout=layout) if layout else pipeline()
            with self.subTest(layout), self.assertRaisesRegex(LookupError, "enough"):
                pipe(PROMPT, callback_on_step_end=fail, **RUN)
            self.assertEqual(len(pipe(PROMPT, **RUN).images), 1)
        self.assertEqual(steps, [0, 0])

    def test_interrupt_the_steps_that_follow(self) -> None:
        """As in diffusers: what is there is decoded. Pictures of a call end at the same step."""
        pipe = pipeline()
        count = {"num_images_per_prompt": 2, "generator": 5}
        for name, batch_size in (("_interrupt", 1), ("interrupt", 2)):
            steps: list[int] = []

            def stop(given: object, step: int, timestep: float, inputs: dict, name: str = name, steps: list = steps) -> dict:
                steps.append(step)
                if step == 1:
                    setattr(given, name, True)
                return {"latents": 0.5 * inputs["latents"]}

            run = {**RUN, **count, "batch_size": batch_size, "output_type": "latent"}
            drawn = pipe(PROMPT, **run, callback_on_step_end=stop).images
            self.assertEqual(steps, [0, 1] * (2 // batch_size))
            self.assertTrue(pipe.interrupt)
            seen: list[np.ndarray] = []

            def note(given: object, step: int, timestep: float, inputs: dict, seen: list = seen) -> dict:
                latents = 0.5 * np.asarray(inputs["latents"])
                if step == 1:
                    seen.append(latents)
                return {"latents": latents}

            pipe(PROMPT, **run, callback_on_step_end=note)
            self.assertFalse(pipe.interrupt)
            np.testing.assert_array_equal(np.asarray(drawn), np.concatenate(seen))

    def test_that_call_their_pipeline_are_refused(self) -> None:
        line = [sys.executable, "-c", CALLING_ITSELF]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        refused = "Error a callback of this pipeline cannot call it: it is drawing"
        self.assertEqual(done.stdout.splitlines(), [refused] * 3 + ["1"], done.stderr)

    def test_of_previews_get_pictures(self) -> None:
        shapes = []
        pipeline()(PROMPT, preview=lambda preview: shapes.append(preview.rgb.shape), **RUN)
        self.assertEqual(shapes, [(6, 8, 3)] * 3)

    def test_run_on_the_calling_thread(self) -> None:
        threads = set()
        pipeline()(PROMPT, callback_on_step_end=lambda *_: threads.add(threading.get_ident()), **RUN)
        self.assertEqual(threads, {threading.get_ident()})

    def test_warnings_are_pythons(self) -> None:
        with self.assertWarnsRegex(UserWarning, "the width 70 is rounded down to 64"):
            pipeline()(PROMPT, **{**RUN, "width": 70})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(UserWarning, "rounded"):
                pipeline()(PROMPT, **{**RUN, "width": 70})


class Interruptions(unittest.TestCase):
    def test_end_a_call_and_leave_the_pipeline_usable(self) -> None:
        done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
        self.assertIn("interrupted after", done.stdout, done.stderr)
        self.assertIn("went on", done.stdout)
        self.assertLess(float(done.stdout.split()[2]), 5)

    def test_end_a_call_that_waits_for_another(self) -> None:
        line = [sys.executable, "-c", INTERRUPTED_WAITING]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("interrupted after", done.stdout, done.stderr)
        self.assertLess(float(done.stdout.split()[2]), 3)

    def test_that_come_while_a_pipeline_is_released_come_afterwards(self) -> None:
        done = subprocess.run([sys.executable, "-c", INTERRUPTED_RELEASING], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.split(), ["interrupted"], done.stderr)

    def test_of_tasks_end_a_call_that_waits_for_another(self) -> None:
        pipe = pipeline()

        async def cancelled(num_threads: int) -> None:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(num_threads))
            first = asyncio.create_task(pipe.generate(PROMPT, **LONG))
            await asyncio.sleep(0.3)
            second = asyncio.create_task(pipe.generate(PROMPT, **RUN))
            await asyncio.sleep(0.3)
            second.cancel()
            await asyncio.wait([second], timeout=3)
            ended = second.cancelled(), first.done()
            first.cancel()
            await asyncio.wait([first, second])
            self.assertEqual(ended, (True, False))

        for num_threads in (2, 1):  # it waits for the pipeline, or for a thread
            with self.subTest(num_threads):
                asyncio.run(cancelled(num_threads))
        self.assertEqual(len(pipe(PROMPT, **RUN).images), 1)

    def test_of_tasks_end_a_call(self) -> None:
        pipe = pipeline()

        async def cancelled() -> float:
            task = asyncio.create_task(pipe.generate(PROMPT, **LONG))
            await asyncio.sleep(0.5)
            began = time.monotonic()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return time.monotonic() - began

        self.assertLess(asyncio.run(cancelled()), 5)
        self.assertTrue(issubclass(Cancelled, RuntimeError))


class Threads(unittest.TestCase):
    def test_share_a_pipeline_and_run_while_it_draws(self) -> None:
        pipe = pipeline()
        wanted = np.asarray(pipe(PROMPT, generator=3, **RUN).images[0])
        drawn: list[np.ndarray] = []
        threads = [
            threading.Thread(target=lambda: drawn.append(np.asarray(pipe(PROMPT, generator=3, **RUN).images[0])))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        ticks = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.001)
            ticks += 1
        self.assertGreater(ticks, 10)
        self.assertEqual(len(drawn), 3)
        for picture in drawn:
            np.testing.assert_array_equal(picture, wanted)

    def test_may_be_awaited(self) -> None:
        pipe = pipeline()

        async def both() -> list:
            return await asyncio.gather(*(pipe.generate(PROMPT, generator=seed, **RUN) for seed in (1, 2)))

        one, other = asyncio.run(both())
        np.testing.assert_array_equal(
            np.asarray(one.images[0]), np.asarray(pipe(PROMPT, generator=1, **RUN).images[0])
        )
        self.assertFalse(np.array_equal(np.asarray(one.images[0]), np.asarray(other.images[0])))

    def test_of_asyncio_stay_free_while_calls_are_awaited(self) -> None:
        pipe = pipeline()

        async def beside() -> str:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
            calls = [asyncio.create_task(pipe.generate(PROMPT, **LONG)) for _ in range(4)]
            await asyncio.sleep(0.5)
            try:
                return await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 3)
            finally:
                for call in calls:
                    call.cancel()
                await asyncio.wait(calls)

        self.assertEqual(asyncio.run(beside()), "free")

    def test_of_pipelines_end_with_them(self) -> None:
        def num_threads() -> int:
            return sum(thread.name.startswith("braid") for thread in threading.enumerate())

        before = num_threads()
        pipe = Pipeline.from_pretrained()
        asyncio.run(pipe.generate(PROMPT, **RUN))
        self.assertEqual(num_threads(), before + 1)
        del pipe
        gc.collect()
        until = time.monotonic() + 10
        while num_threads() > before and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(num_threads(), before)

    def test_of_asyncio_that_call_their_own_pipeline_are_refused(self) -> None:
        pipe = pipeline()

        def draw(*_: Any) -> None:
            asyncio.run(pipe.generate(PROMPT, **RUN))

        with self.assertRaisesRegex(Error, "a callback of this pipeline cannot call it"):
            asyncio.run(asyncio.wait_for(pipe.generate(PROMPT, callback_on_step_end=draw, **RUN), 30))


if __name__ == "__main__":
    unittest.main()
