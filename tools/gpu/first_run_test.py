#!/usr/bin/env python3
"""Tests the parts of first_run that need no GPU: python3 tools/gpu/first_run_test.py"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
import kit
import phases
import steps
from steps import Step

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
        for step in phases.PHASES["ranks"](Path("/kit")):
            self.assertEqual(step.needs, phases.SECOND_GPU, step.name)

    def test_sums_are_compared(self):
        by_name = {step.name: step for step in phases.PHASES["ranks"](Path("/kit"))}
        for name in ("tp 2", "tp 2, eager"):  # the same but for one flag
            own, native = by_name[name].command, by_name[f"{name}, native sums"].command
            self.assertEqual(native, [*own, "--collectives", "native"])

    def test_filters_name_tests(self):
        root = Path(__file__).resolve().parents[2]
        sources = "".join(path.read_text() for path in sorted((root / "tests/device").glob("*.cc")))
        words = phases.PHASES["ranks"](Path("/kit"))[0].command[-1]
        for pattern in words.removeprefix("--gtest_filter=").split(":"):
            suite, name = pattern.rstrip("*").split(".")
            self.assertIn(f"TEST_F({suite}, {name}", sources)

    def test_flags_are_those_of_the_program(self):
        """Every flag occurs in the sources of the flags, or of the bench that takes it."""
        root = Path(__file__).resolve().parents[2]
        known = "".join(path.read_text() for folder in ("src/app/flags", "bench", "tools/peers", "tools/gpu")
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


class PeersTest(unittest.TestCase):
    def test_are_those_of_the_oracle(self):
        root = Path(__file__).resolve().parents[2]
        carried = (root / "tools/gpu/peers.txt").read_text()
        for line in (root / "tools/parity/requirements.txt").read_text().splitlines():
            if line.startswith("diffusers=="):
                self.assertIn(line + " ", carried)


class KitTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.root, self.build, self.kit = (self.folder / name for name in ("root", "build", "kit"))
        (self.build / "bin").mkdir(parents=True)
        for name in kit.PROGRAMS:
            script(self.build / "bin", name, "echo here\n")
        self.wheel = self.folder / "peer-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            wheel.writestr("peer/__init__.py", "")
        for data in kit.DATA:
            (self.root / data).mkdir(parents=True)
            (self.root / data / "file").write_text("x")

    def pack(self, data=kit.DATA):
        with contextlib.redirect_stdout(io.StringIO()):
            return kit.pack(self.root, self.build, self.kit, data, [self.wheel])

    def test_has_programs_and_data(self):
        self.assertEqual(self.pack(), 0)
        for name in kit.PROGRAMS:
            self.assertTrue((self.kit / "bin" / name).exists(), name)
        for data in kit.DATA:
            self.assertTrue((self.kit / data / "file").exists(), data)
        self.assertTrue((self.kit / "site/peer/__init__.py").exists())
        with tarfile.open(self.kit.with_name("kit.tar.xz")) as archive:
            self.assertIn("kit/bin/braid-engine", archive.getnames())

    def test_is_not_larger_than_can_be_carried(self):
        (self.root / "models/demo/file").write_bytes(os.urandom(1 << 20))
        with mock.patch.object(kit, "MOST_BYTES", 1 << 20):
            with self.assertRaisesRegex(kit.CannotPack, "1 can be carried"):
                self.pack()

    def test_carries_what_is_there(self):
        for data in kit.DATA:
            self.assertTrue((Path(__file__).resolve().parents[2] / data).is_dir(), data)

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

    LINKED = """ 0x0001 (NEEDED)  Shared library: [libtorch_cpu.so]
 0x0001 (NEEDED)  Shared library: [libtorch_cuda.so]
 0x000f (RPATH)   Library rpath: [$ORIGIN/../lib:$ORIGIN/../torch/lib:/venv/torch/lib]
"""
    LISTED = """        libcudart.so.13 => /venv/nvidia/cu13/lib/libcudart.so.13 (0x1)
        libtorch_cuda.so => /venv/torch/lib/libtorch_cuda.so (0x1)
"""

    def test_links_are_those_of_a_gpu_machine(self):
        kit.check_links("braid", self.LINKED, self.LISTED)
        kit.check_links("launcher", " 0x0001 (NEEDED)  Shared library: [libc.so.6]\n", "")
        for linked, listed, why in (
                (self.LINKED.replace("[libtorch_cuda.so]", "[libm.so.6]"), self.LISTED, "libtorch_cuda"),
                (self.LINKED.replace("/../torch/lib", "/torch/lib"), self.LISTED, "run path"),
                (self.LINKED, self.LISTED + "  libnccl.so.2 => not found\n", "libnccl.so.2"),
                (self.LINKED, self.LISTED + "  libcudart.so.13 => /opt/libcudart.so.13 (0x1)\n", "2 CUDA"),
                (self.LINKED, "", "0 CUDA")):
            with self.assertRaisesRegex(kit.CannotPack, why):
                kit.check_links("braid", linked, listed)

    def settled(self, torch):
        with mock.patch.object(kit, "torch_folder", lambda: str(torch)), \
                mock.patch.dict(os.environ, {"PYTHONPATH": "/others"}):
            kit.settle(self.kit)
            return os.environ["PYTHONPATH"]

    def test_is_made_ready_where_it_was_unpacked(self):
        self.pack()
        known = self.kit / "kit.json"
        place, torch = self.folder / "elsewhere" / "root", self.folder / "venv/torch"
        torch.mkdir(parents=True)
        known.write_text(json.dumps({"built_in": str(place)}))
        self.assertEqual(self.settled(torch), f"{self.kit}/site:/others")
        self.assertEqual((place / "models/demo/file").read_text(), "x")
        self.assertEqual((self.kit / "torch").resolve(), torch.resolve())
        self.settled(torch)  # once more, for the next phase

    def test_takes_the_systems_runtime_where_its_own_wants_a_newer_system(self):
        self.pack()
        (self.kit / "kit.json").write_text(json.dumps({"built_in": str(self.folder / "elsewhere")}))
        own = [self.kit / "lib" / name for name in kit.CPP_RUNTIME]
        for library in own:
            library.write_text("of another system")
        with mock.patch.object(kit, "can_be_loaded", lambda library: True):
            self.settled(self.folder)
        self.assertTrue(all(library.exists() for library in own))
        self.settled(self.folder)
        self.assertFalse(any(library.exists() for library in own))
        self.assertTrue(kit.can_be_loaded("libm.so.6"))

    def test_a_phase_runs_in_the_kit(self):
        """A whole phase, with stub programs."""
        self.root = Path(__file__).resolve().parents[2]
        self.pack(("tools/gpu",))
        out = self.folder / "out"
        ran = subprocess.run([sys.executable, self.kit / "tools/gpu/first_run", "ceilings", "--out", out],
                             stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 0)
        rows = json.loads((out / "ceilings.json").read_text())
        self.assertEqual([row["ended"] for row in rows], ["well"] * 4)
        self.assertIn("== operations\nhere", (out / "ceilings.log").read_text())
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["ceilings.json", "ceilings.log"])


class WheelsTest(unittest.TestCase):
    def unpacked(self, *others):
        """The names in torch/lib, of wheels of torch and of `others`."""
        with tempfile.TemporaryDirectory() as folder:
            wheels = Path(folder) / "wheels"
            wheels.mkdir()
            files = {"torch-2.11.0-cp312.whl": ("torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so",
                                                "torch/lib/libtorch_python.so", "torch/nn/x.py")}
            for wheel, names in (files | {other: ("nvidia/lib/x.so",) for other in others}).items():
                with zipfile.ZipFile(wheels / wheel, "w") as archive:
                    for name in names:
                        archive.writestr(name, "x")
            root = Path(__file__).resolve().parents[2]
            subprocess.run([sys.executable, root / "tools/shell/unpack_wheels.py", wheels, folder],
                           check=True)
            self.assertFalse((Path(folder) / "torch/nn").exists())
            return sorted(path.name for path in (Path(folder) / "torch/lib").iterdir())

    def test_keep_cudas_kernels_only_where_they_can_be_linked(self):
        runtime = "nvidia_cuda_runtime-13.0.96-py3-none-any.whl"  # needed even without a GPU
        self.assertEqual(self.unpacked(runtime), ["libtorch_cpu.so"])
        self.assertEqual(self.unpacked(runtime, "nvidia_cublas-13.1.0.3-py3-none-any.whl"),
                         ["libtorch_cpu.so", "libtorch_cuda.so"])


if __name__ == "__main__":
    unittest.main()
