#!/usr/bin/env python3
"""Tests the steps of first_run, which need no GPU: python3 tools/gpu/first_run_test.py"""
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
import phases
import steps
from steps import Step

OPS_TEST = Path(__file__).resolve().parents[2] / "build/release/bin/ops_test"
BENCH = json.dumps({"step_s": 0.1, "load_s": 2.5, "peak_vram_max_single_gpu_gb": 24.5,
                    "text_stream": "own",
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
            return steps.run(these, self.folder / "phase.log", seconds)

    def log(self):
        return (self.folder / "phase.log").read_text()

    def test_a_step_that_fails_ends_no_other(self):
        rows = self.run_steps(Step("a", ["sh", "-c", "echo no; exit 3"], 9), Step("b", ["true"], 9),
                              Step("c", ["/nowhere/at/all"], 9))
        self.assertEqual([row["ended"] for row in rows],
                         ["failed (3)", "well", "not started: No such file or directory"])
        self.assertIn("== a\nno\n== b\n", self.log())

    def test_a_step_has_its_own_limit(self):
        rows = self.run_steps(Step("a", ["sh", "-c", "echo begun; exec sleep 60"], 0.3))
        self.assertEqual(rows[0]["ended"], "cut off at 0 s")
        self.assertLess(rows[0]["seconds"], 30)
        self.assertIn("begun", self.log())

    def test_a_step_that_is_cut_off_leaves_nothing_running(self):
        """What it started would hold the GPU for the steps after it."""
        self.run_steps(Step("a", ["sh", "-c", "sleep 300 & echo begun $!; wait"], 1))
        self.assert_ended(self.started())

    def test_a_phase_that_is_stopped_leaves_nothing_running(self):
        code = ("import signal, sys; from pathlib import Path; import steps; "
                "signal.signal(signal.SIGINT, signal.default_int_handler); "
                "steps.run([steps.Step('a', ['sh', '-c', 'sleep 300 & echo begun $! >&2; wait'], 200)], "
                "Path(sys.argv[1]))")
        phase = subprocess.Popen([sys.executable, "-B", "-c", code, self.folder / "phase.log"],
                                 cwd=Path(__file__).resolve().parent, stderr=subprocess.DEVNULL)
        try:
            process = self.started()
            phase.send_signal(signal.SIGINT)
            self.assertNotEqual(phase.wait(timeout=30), 0)
            self.assert_ended(process)
        finally:
            phase.kill()
            phase.wait()

    def until(self, holds):
        end = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def started(self):
        """The process that a step says it has begun."""
        said = re.compile(r"begun (\d+)\n")
        log = self.folder / "phase.log"
        self.until(lambda: log.exists() and said.search(log.read_text()))
        return int(said.search(log.read_text())[1])

    def assert_ended(self, process):
        def has_ended():
            try:
                return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
            except (FileNotFoundError, ProcessLookupError):
                return True
        self.until(has_ended)

    def test_a_step_has_its_own_settings(self):
        self.run_steps(Step("a", ["sh", "-c", "echo $KERNEL"], 9, settings={"KERNEL": "flash"}),
                       Step("b", ["sh", "-c", "echo _${KERNEL}_"], 9))
        self.assertIn("== a\nflash\n== b\n__\n", self.log())

    def test_a_phase_ends_in_time(self):
        rows = self.run_steps(Step("a", ["true"], 9), seconds=steps.FEWEST_SECONDS - 1)
        self.assertEqual(rows[0]["ended"], "no time")

    def test_what_is_not_here_is_left_out(self):
        rows = self.run_steps(Step("a", ["false"], 9, needs=str(self.folder / "peers.py")))
        self.assertEqual(rows[0]["ended"], "left out")
        self.assertIn("peers.py", rows[0]["why"])

    def test_what_cannot_be_here_is_left_out(self):
        rows = self.run_steps(Step("a", ["false"], 9, why_not=lambda: "it takes two"),
                              Step("b", ["true"], 9, why_not=lambda: ""))
        self.assertEqual([row["ended"] for row in rows], ["left out", "well"])
        self.assertEqual(rows[0]["why"], "it takes two")

    def test_figures_are_of_what_was_printed(self):
        rows = self.run_steps(Step("a", ["echo", BENCH], 9, steps.of_bench),
                              Step("b", ["echo", "cut {"], 9, steps.of_bench))
        self.assertEqual(rows[0]["step_ms"], 100)
        self.assertEqual(rows[0]["failure"], "a step could not be recorded")
        self.assertNotIn("step_ms", rows[1])
        shown = steps.table(rows)
        self.assertIn("step_ms 100, load_s 2.5, peak_gb 24.5, text_stream own, replays 11", shown)
        self.assertEqual(len(shown.splitlines()), 2)

    def test_ceilings_are_the_best_rates(self):
        self.assertEqual(steps.of_ceilings("....\n" + CEILINGS),
                         {"memory_gb_per_s": 3000, "copy_gb_per_s": 55, "bfloat16_tera": 750,
                          "int8_tera": 1200, "attention_tera": 600})

    def test_peers_are_medians_of_contenders(self):
        rows = "\n".join(f"{name:18} {contender:28} {seconds:9.3f} s  (0.100 to 0.200)  1.00 x Braid's"
                         for name, contender, seconds in (
                             ("transformer-1024", "diffusers bfloat16", 0.2),
                             ("", "diffusers bfloat16, compiled", 0.15), ("", "braid", 0.1)))
        self.assertEqual(steps.of_peers("date 2026, machine H100\n" + rows),
                         {"diffusers bfloat16_ms": 200, "diffusers bfloat16, compiled_ms": 150,
                          "braid_ms": 100})

    def test_the_first_picture_is_told_by_phases(self):
        picture = {"seconds": {"load": 9.5, "startup": 11.0, "total": 14.0},
                   "seconds_per_step": 0.1, "graph": {"replays": 3}}
        self.assertEqual(steps.of_first_picture(json.dumps(picture)),
                         {"load_s": 9.5, "startup_s": 11, "total_s": 14, "seconds_per_step": 0.1,
                          "replays": 3})

    def test_tests_are_counted(self):
        self.assertEqual(steps.of_tests(TESTS), {"passed": 10, "skipped": 1, "failed": 1})


class PhasesTest(unittest.TestCase):
    def test_what_matters_fits_into_a_call(self):
        for name, phase in phases.PHASES.items():
            first = phase(Path("/kit"))[0]
            self.assertLessEqual(first.limit, steps.PHASE_SECONDS, name)
            names = [step.name for step in phase(Path("/kit"))]
            self.assertEqual(len(names), len(set(names)), name)

    def test_steps_compare_what_flux_is_computed_by(self):
        by_name = {step.name: step for step in phases.PHASES["steps"](Path("/kit"))}
        self.assertEqual(by_name["FlashAttention 2"].settings, {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"})
        self.assertEqual(by_name["graph"].settings, {})
        for name in ("eager", "fp8", "int8", "int8-dynamic", "diffusers"):
            self.assertIn(name, by_name)
        for name in ("graph", "eager", "fp8"):  # the same but for one flag
            shared, own = by_name[name].command, by_name[f"{name}, text stream"].command
            self.assertEqual(own, [*shared, "--text-stream", "own"])

    def test_ranks_are_left_out_on_one_gpu(self):
        """A machine's GPUs are those that nvidia-smi lists, parts of them not counted."""
        one = "GPU 0: NVIDIA H100 (UUID: GPU-a)\n  MIG 1g.10gb Device 0: (UUID: MIG-b)\n"
        for listed, why in ((one + "GPU 1: NVIDIA H100 (UUID: GPU-c)\n", ""), (one, "lists 1"),
                            ("", "lists 0")):
            with mock.patch.object(phases, "printed", lambda *command: listed):
                for step in phases.PHASES["ranks"](Path("/kit")):
                    self.assertEqual(step.why_not() == "", why == "", step.name)
                    self.assertIn(why, step.why_not())

    def test_the_sanitizer_is_found_in_the_toolkit_or_left_out(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict(os.environ, {"PATH": "/nowhere"}), \
                mock.patch.object(phases, "TOOLKIT", folder):
            step = phases.PHASES["sanity"](Path("/kit"))[-1]
            self.assertIn("there is no compute-sanitizer", step.why_not())
            program = script(Path(folder), "compute-sanitizer", "true\n")
            step = phases.PHASES["sanity"](Path("/kit"))[-1]
            self.assertEqual(step.why_not(), "")
            self.assertEqual(step.command[0], str(program))

    def test_scripts_are_left_out_without_their_modules(self):
        self.assertEqual(phases.lacks_modules("json", "os")(), "")
        self.assertIn("import no_such_module", phases.lacks_modules("json", "no_such_module")())
        by_name = {step.name: step for name in ("steps", "memory")
                   for step in phases.PHASES[name](Path("/kit"))}
        with mock.patch.object(phases, "printed", lambda *command: ""):
            for name in ("diffusers", "a random model"):
                self.assertIn("cannot import diffusers, transformers", by_name[name].why_not())

    def test_sums_are_compared(self):
        by_name = {step.name: step for step in phases.PHASES["ranks"](Path("/kit"))}
        for name in ("tp 2", "tp 2, eager"):  # the same but for one flag
            own, native = by_name[name].command, by_name[f"{name}, native sums"].command
            self.assertEqual(native, [*own, "--collectives", "native"])

    def test_filters_name_tests(self):
        root = Path(__file__).resolve().parents[2]
        sources = "".join(path.read_text() for path in sorted((root / "tests/device").glob("*.cc")))
        filters = [step.command[-1] for step in phases.PHASES["ranks"](Path("/kit"))
                   if "--gtest_filter" in str(step.command[-1])]
        self.assertEqual(len(filters), 2)
        for words in filters:
            for pattern in words.removeprefix("--gtest_filter=").split(":"):
                suite, name = pattern.rstrip("*").split(".")
                self.assertIn(f"TEST_F({suite}, {name}", sources)

    def sanitized(self):
        filters = {str(word) for step in phases.PHASES["sanity"](Path("/kit")) for word in step.command
                   if Path(str(step.command[0])).name == phases.SANITIZER and "gtest_filter" in str(word)}
        self.assertEqual(len(filters), 1)
        return filters.pop().removeprefix("--gtest_filter=").split(":")

    def test_what_is_sanitized_names_tests(self):
        """Of a few tests, which end in time: for each kernel a test that starts it."""
        root = Path(__file__).resolve().parents[2]
        sources = "".join(path.read_text() for path in sorted((root / "tests/ops/gpu").glob("*.cc")))
        for pattern in self.sanitized():
            instance, suite, _ = pattern.split("/")
            suite, name = suite.split(".")
            self.assertRegex(sources, rf"INSTANTIATE_TEST_SUITE_P\({instance}, {suite},")
            self.assertIn(f"TEST_P({suite}, {name.rstrip('*')}", sources)

    @unittest.skipUnless(OPS_TEST.exists(), "ops_test is not built")
    def test_what_is_sanitized_has_an_odd_and_an_even_shape(self):
        shapes = {}
        for pattern in self.sanitized():
            listed = subprocess.run([OPS_TEST, "--gtest_list_tests", f"--gtest_filter={pattern}"],
                                    capture_output=True, text=True, check=True).stdout
            tests = re.findall(r"^  (.+?)/\S+ +# GetParam\(\) = (.+)$", listed, re.MULTILINE)
            self.assertTrue(tests, pattern)
            for test, shape in tests:
                shapes.setdefault((pattern.split(".")[0], test), []).append(shape)
        self.assertLess(sum(map(len, shapes.values())), 60)
        widths = {of: [int(re.search(r"x(\d+) lie 0", shape)[1]) % 2 for shape in these]
                  for of, these in shapes.items() if of[0] == "Shapes/GpuKernels"}
        self.assertGreater(len(widths), 10)
        for of, odd in widths.items():
            self.assertEqual(sorted(odd), [0, 1], of)

    def test_flags_are_those_of_the_program(self):
        """Every flag occurs in the sources of the flags, or of the bench that takes it."""
        root = Path(__file__).resolve().parents[2]
        known = "".join(path.read_text() for folder in ("src/app/flags", "bench", "tools/peers", "tools/gpu")
                        for path in sorted((root / folder).iterdir()) if path.is_file())
        for phase in phases.PHASES.values():
            for step in phase(Path("/kit")):
                words = [str(word) for word in step.command]
                if Path(words[0]).name == phases.SANITIZER:
                    continue
                for flag in (word for word in words if word.startswith("--")):
                    name = flag.split("=")[0]
                    self.assertTrue(name.startswith("--gtest") or f'"{name}"' in known,
                                    f"{step.name}: {flag}")


class PeersTest(unittest.TestCase):
    def test_are_those_of_the_oracle(self):
        root = Path(__file__).resolve().parents[2]
        carried = (root / "tools/gpu/peers.txt").read_text()
        for line in (root / "tools/parity/requirements.txt").read_text().splitlines():
            if line.startswith("diffusers=="):
                self.assertIn(line + " ", carried)


if __name__ == "__main__":
    unittest.main()
