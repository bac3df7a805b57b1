#!/usr/bin/env python3
"""What first_run does that needs no GPU: python3 tools/gpu/first_run_test.py"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import kit
import phases
import steps
from steps import Step

BENCH = json.dumps({"step_s": 0.1, "load_s": 2.5, "peak_vram_max_single_gpu_gb": 24.5,
                    "graph": {"replays": 11, "failure": "a step could not be recorded"}})
CEILINGS = json.dumps({
    "memory_gb_per_s": 3000.0, "copy_gb_per_s": 55.0,
    "products": [{"dtype": "bfloat16", "best_tera_per_s": 700.0},
                 {"dtype": "bfloat16", "best_tera_per_s": 750.0},
                 {"dtype": "int8", "best_tera_per_s": 1200.0}],
    "attention": [{"ways": {"a": {"tera_per_s": 400.0}, "b": {"tera_per_s": 600.0}}}]})
TESTS = """[ RUN      ] A.B
[==========] 12 tests from 3 test suites ran. (9 ms total)
[  PASSED  ] 10 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.B
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.C
"""


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


class StepsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_steps(self, *these, seconds=60):
        with contextlib.redirect_stdout(io.StringIO()):
            return steps.run(these, self.folder, dict(os.environ), seconds)

    def test_a_step_that_fails_ends_no_other(self):
        rows = self.run_steps(Step("a", ["sh", "-c", "echo no; exit 3"], 9), Step("b", ["true"], 9),
                              Step("c", ["/nowhere/at/all"], 9))
        self.assertEqual([row["ended"] for row in rows],
                         ["failed (3)", "well", "not started: No such file or directory"])
        self.assertIn("no", (self.folder / "a.log").read_text())

    def test_a_step_has_its_own_limit(self):
        rows = self.run_steps(Step("a", ["sh", "-c", "echo begun; exec sleep 60"], 0.3))
        self.assertEqual(rows[0]["ended"], "cut off at 0 s")
        self.assertLess(rows[0]["seconds"], 30)
        self.assertIn("begun", (self.folder / "a.log").read_text())

    def test_a_phase_ends_in_time(self):
        rows = self.run_steps(Step("a", ["true"], 9), seconds=steps.FEWEST_SECONDS - 1)
        self.assertEqual(rows[0]["ended"], "no time")

    def test_what_is_not_here_is_left_out(self):
        rows = self.run_steps(Step("a", ["false"], 9, needs=str(self.folder / "peers.py")))
        self.assertEqual(rows[0]["ended"], "left out")
        self.assertIn("peers.py", rows[0]["why"])

    def test_figures_are_of_what_was_printed(self):
        rows = self.run_steps(Step("a", ["echo", BENCH], 9, steps.of_bench),
                              Step("b", ["echo", "cut {"], 9, steps.of_bench))
        self.assertEqual(rows[0]["step_ms"], 100)
        self.assertEqual(rows[0]["failure"], "a step could not be recorded")
        self.assertNotIn("step_ms", rows[1])
        shown = steps.table(rows)
        self.assertIn("step_ms 100, load_s 2.5, peak_gb 24.5, replays 11", shown)
        self.assertEqual(len(shown.splitlines()), 2)

    def test_ceilings_are_the_best_rates(self):
        self.assertEqual(steps.of_ceilings("....\n" + CEILINGS),
                         {"memory_gb_per_s": 3000, "copy_gb_per_s": 55, "bfloat16_tera": 750,
                          "int8_tera": 1200, "attention_tera": 600})

    def test_tests_are_counted(self):
        self.assertEqual(steps.of_tests(TESTS), {"passed": 10, "skipped": 1, "failed": 1})


class PhasesTest(unittest.TestCase):
    def test_what_matters_fits_into_a_call(self):
        for name, phase in phases.PHASES.items():
            first = phase(Path("/kit"))[0]
            self.assertLessEqual(first.limit, steps.PHASE_SECONDS, name)
            names = [step.name for step in phase(Path("/kit"))]
            self.assertEqual(len(names), len(set(names)), name)

    def test_flags_are_those_of_the_program(self):
        """Every flag stands in the sources of the flags, or of the bench that takes it."""
        root = Path(__file__).resolve().parents[2]
        known = "".join(path.read_text() for folder in ("src/app/flags", "bench", "tools/peers")
                        for path in sorted((root / folder).iterdir()) if path.is_file())
        for phase in phases.PHASES.values():
            for step in phase(Path("/kit")):
                words = [str(word) for word in step.command]
                if words[0] == "compute-sanitizer":
                    continue
                for flag in (word for word in words if word.startswith("--")):
                    name = flag.split("=")[0]
                    self.assertTrue(name.startswith("--gtest") or f'"{name}"' in known,
                                    f"{step.name}: {flag}")


class KitTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.root, self.build, self.kit = (self.folder / name for name in ("root", "build", "kit"))
        (self.build / "bin").mkdir(parents=True)
        for name in kit.PROGRAMS:
            script(self.build / "bin", name, "echo here\n")
        for data in kit.DATA:
            (self.root / data).mkdir(parents=True)
            (self.root / data / "file").write_text("x")

    def pack(self):
        with contextlib.redirect_stdout(io.StringIO()):
            return kit.pack(self.root, self.build, self.kit)

    def test_has_programs_and_data(self):
        self.assertEqual(self.pack(), 0)
        for name in kit.PROGRAMS:
            self.assertTrue((self.kit / "bin" / name).exists(), name)
        for data in kit.DATA:
            self.assertTrue((self.kit / data / "file").exists(), data)

    def test_is_not_larger_than_can_be_carried(self):
        with (self.root / "models/demo/file").open("wb") as file:
            file.truncate(kit.MOST_BYTES)
        with self.assertRaisesRegex(kit.CannotPack, "60 can be carried"):
            self.pack()

    def test_says_what_is_not_built(self):
        (self.build / "bin/device_test").unlink()
        with self.assertRaisesRegex(kit.CannotPack, "device_test is not built"):
            self.pack()

    def test_carries_libraries_that_are_not_there(self):
        listed = """linux-vdso.so.1 (0x1)
        libtorch_cpu.so => /venv/torch/lib/libtorch_cpu.so (0x1)
        libcudart.so.13 => /venv/nvidia/cu13/lib/libcudart.so.13 (0x1)
        libcuda.so.1 => /usr/lib/x86_64-linux-gnu/libcuda.so.1 (0x1)
        libstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x1)
        libpng16.so.16 => /lib/x86_64-linux-gnu/libpng16.so.16 (0x1)
        libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x1)
        /lib64/ld-linux-x86-64.so.2 (0x1)
        libnccl.so.2 => not found
"""
        self.assertEqual(kit.foreign_libraries(listed),
                         ["/lib/x86_64-linux-gnu/libpng16.so.16",
                          "/lib/x86_64-linux-gnu/libstdc++.so.6"])

    def test_data_is_found_where_it_was_built(self):
        self.pack()
        known = self.kit / "kit.json"
        place = self.folder / "elsewhere" / "root"
        known.write_text(json.dumps({"built_in": str(place)}))
        paths = kit.environment(self.kit)["LD_LIBRARY_PATH"]
        self.assertEqual(paths.split(":")[0], str(self.kit / "lib"))
        self.assertEqual((place / "models/demo/file").read_text(), "x")

    def test_a_phase_runs_in_the_kit(self):
        """The whole of it, with programs that only say that they are there."""
        self.root = Path(__file__).resolve().parents[2]
        self.pack()
        out = self.folder / "out"
        ran = subprocess.run([sys.executable, self.kit / "tools/gpu/first_run", "memory", "--out", out],
                             stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 0)
        rows = json.loads((out / "memory.json").read_text())
        self.assertEqual([row["ended"] for row in rows], ["well"] * 6)
        self.assertIn("here", (out / "copies.log").read_text())


if __name__ == "__main__":
    unittest.main()
