"""A pipeline that is loaded again works on, whatever comes of it."""

import threading
import unittest
from typing import Any

import braid_engine
import numpy as np
from shared import PROMPT, RUN

RUN = {**RUN, "generator": 7}


class Reloads(unittest.TestCase):
    def setUp(self) -> None:
        self.told: Any = lambda report: None
        self.pipe = braid_engine.Pipeline.from_pretrained(dtype="float32", progress=lambda report: self.told(report))

    def drawn(self) -> np.ndarray:
        return np.asarray(self.pipe(PROMPT, **RUN).images[0])

    def test_that_fail_leave_it_as_it_was(self) -> None:
        wanted = self.drawn()
        for change in (
            lambda: self.pipe.to("cuda:7"),
            lambda: self.pipe.to("cuda:7", "bfloat16"),
            lambda: self.pipe.enable_model_cpu_offload(gpu_id=7),
            lambda: self.pipe.enable_sequential_cpu_offload(device="cuda:7"),
            lambda: self.pipe.enable_group_offload("cuda:7", offload_to_disk_path="/nowhere"),
            lambda: self.pipe.enable_group_offload("cuda:7", num_blocks_per_group="two"),
        ):
            with self.assertRaisesRegex((braid_engine.InputError, TypeError), "cuda:7|blocks cannot be 'two'"):
                change()
            np.testing.assert_array_equal(self.drawn(), wanted)

    def test_let_other_threads_wait(self) -> None:
        loads, goes_on = threading.Event(), threading.Event()
        found: list[Any] = []

        def ask() -> None:
            try:
                found.append(self.pipe.info.family)
                found.append(len(self.pipe(PROMPT, **RUN).images))
            except braid_engine.InputError as error:
                found.append(error)

        def told(report: Any) -> None:
            if report.phase == braid_engine._core.Phase.load:
                loads.set()
                goes_on.wait(30)

        self.told = told
        threads = [threading.Thread(target=lambda: self.pipe.to(dtype="bfloat16")), threading.Thread(target=ask)]
        threads[0].start()
        self.assertTrue(loads.wait(30))
        threads[1].start()
        threads[1].join(0.5)
        waited = threads[1].is_alive()
        goes_on.set()
        for thread in threads:
            thread.join()
        self.assertEqual((waited, found), (True, [self.pipe.info.family, 1]))

    def test_refuse_callbacks_that_call_the_pipeline(self) -> None:
        self.told = lambda report: self.pipe.info
        with self.assertRaisesRegex(braid_engine.Error, "a callback of this pipeline cannot call it: it is loading"):
            self.pipe.to(dtype="bfloat16")
        self.told = lambda report: None
        self.assertEqual(self.drawn().shape, (48, 64, 3))

    def test_do_not_open_what_is_closed(self) -> None:
        self.pipe.close()
        for call in (lambda: self.pipe.to(dtype="bfloat16"), self.pipe.enable_model_cpu_offload, self.drawn):
            with self.assertRaisesRegex(braid_engine.InputError, "the pipeline is closed"):
                call()


if __name__ == "__main__":
    unittest.main()
