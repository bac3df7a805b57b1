#!/usr/bin/env python3
"""Tests what first_run packs, and makes of it there: python3 tools/gpu/kit_test.py"""
import contextlib
import importlib
import io
import json
import os
import re
import shutil
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

BUILT = Path(__file__).resolve().parents[2] / "build/release/bin/braid-engine"


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


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

    def test_carries_what_device_tests_read(self):
        """Every folder of data that the sources of device_test name."""
        root = Path(__file__).resolve().parents[2]
        listed = re.search(r"set\(device_tests ([^)]*)\)",
                           (root / "tests/device/CMakeLists.txt").read_text())[1].split()
        named = set()
        for source in listed:
            text = (root / "tests/device" / source).read_text()
            named.update("tests/data/parity/" + path for path in re.findall(r'kParity / "([^"]+)"', text))
            named.update(path for path in re.findall(r'BRAID_SOURCE_DIR\)? ?/? ?"/?([^"]+)"', text)
                         if path != "tests/data/parity")
        self.assertIn("tests/data/parity/blocks/flux.gguf", named)
        self.assertIn("models/demo", named)
        for path in named:
            self.assertTrue((root / path).exists(), path)
            self.assertTrue(any(f"{path}/".startswith(f"{data}/") for data in kit.DATA), path)

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

    def made_torch(self, name, version):
        """The folder of a LibTorch, which has nothing but its version."""
        config = self.folder / name / "share/cmake/Torch/TorchConfigVersion.cmake"
        config.parent.mkdir(parents=True)
        config.write_text(f'set(PACKAGE_VERSION "{version}")\n')
        return self.folder / name

    def test_refuses_another_libtorch_than_that_of_its_programs(self):
        linked = self.made_torch("linked", "2.11.0")
        (self.build / "CMakeCache.txt").write_text(f"A:PATH=b\nLibTorch_ROOT_DIR:PATH={linked}\n")
        self.pack()
        note = json.loads((self.kit / "kit.json").read_text())
        self.assertEqual(note["torch"], "2.11.0")
        (self.kit / "kit.json").write_text(json.dumps(note | {"built_in": str(self.folder / "elsewhere")}))
        with self.assertRaisesRegex(kit.CannotRun, r"linked with LibTorch 2\.11\.0, but .*/other is 2\.10\.0: "
                                    r"have python3 find a torch==2\.11\.0"):
            self.settled(self.made_torch("other", "2.10.0"))
        self.assertFalse((self.kit / "torch").exists())
        self.settled(self.made_torch("same", "2.11.0"))
        self.assertEqual((self.kit / "torch").resolve(), (self.folder / "same").resolve())
        (self.kit / "torch").unlink()
        self.settled(self.folder)  # one that does not say
        self.assertEqual((self.kit / "torch").resolve(), self.folder.resolve())
        (self.kit / "torch").unlink()
        (self.kit / "torch").symlink_to(self.folder / "other")
        with self.assertRaisesRegex(kit.CannotRun, "remove the kit's link `torch`"):
            self.settled(self.folder / "same")

    def test_has_the_model_where_programs_look_for_it(self):
        """PROGRAM/../share/braid/models/demo, as app/machine/bundled_model.cc has it."""
        root = Path(__file__).resolve().parents[2]
        lookup = (root / "src/app/machine/bundled_model.cc").read_text()
        up = re.search(r"program((?:\.parent_path\(\))+)((?: / \"\w+\")+);", lookup)
        place = self.kit / "bin/braid-engine"
        for _ in range(up[1].count("parent_path")):
            place = place.parent
        place = place.joinpath(*re.findall(r'"(\w+)"', up[2]))
        self.pack()
        (self.kit / "kit.json").write_text(json.dumps({"built_in": str(self.folder / "elsewhere")}))
        self.settled(self.folder)
        self.assertEqual((place / "demo/file").read_text(), "x")
        self.kit = self.kit.rename(self.folder / "moved")  # a link within the kit
        self.assertEqual((self.kit / place.relative_to(self.folder / "kit") / "demo/file").read_text(), "x")

    def test_has_the_model_without_a_note_of_where_it_was_built(self):
        self.pack()
        (self.kit / "kit.json").unlink()
        self.settled(self.folder)
        self.assertTrue((self.kit / "share/braid/models/demo/file").exists())

    @unittest.skipUnless(BUILT.exists(), "no program is built")
    def test_gives_its_model_to_the_program(self):
        """The program that is built here, run from a kit."""
        (self.kit / "bin").mkdir(parents=True)
        (self.kit / "models").symlink_to(Path(__file__).resolve().parents[2] / "models")
        for name in ("braid", "braid-engine"):
            shutil.copy2(BUILT.parent / name, self.kit / "bin" / name)

        def plans():
            return subprocess.run([self.kit / "bin/braid", "plan", "--size", "64x64"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn("the model that comes with Braid is not in", plans().stdout)
        self.settled(self.folder)
        planned = plans()
        self.assertEqual(planned.returncode, 0, planned.stdout)

    def test_goes_on_where_the_packers_folder_cannot_be_written(self):
        self.pack()
        (self.folder / "file").write_text("")  # no folder, whoever asks
        place = self.folder / "file" / "root"
        (self.kit / "kit.json").write_text(json.dumps({"built_in": str(place)}))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.settled(self.folder), f"{self.kit}/site:/others")
        self.assertIn("device tests will miss their data", said.getvalue())
        self.assertIn(str(place), said.getvalue())

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


class RandomModelTest(unittest.TestCase):
    """With stand-ins for LibTorch's Python and diffusers."""

    class Module:
        def __init__(self, fails=False):
            self.fails = fails

        def save_pretrained(self, folder, max_shard_size):
            Path(folder).mkdir()
            (Path(folder) / f"of_{max_shard_size}").touch()
            if self.fails:
                raise OSError("the disk is full")

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name) / "flux"
        with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in (
                "torch", "diffusers", "transformers")}):
            sys.modules.pop("random_model", None)
            self.program = importlib.import_module("random_model")
        self.addCleanup(sys.modules.pop, "random_model", None)
        patched = mock.patch.object(self.program, "drawn", lambda make, device: make())
        patched.start()
        self.addCleanup(patched.stop)

    def write(self, **modules):
        with contextlib.redirect_stdout(io.StringIO()):
            self.program.write(self.folder, modules, "cpu")

    def test_is_whole_once_it_has_an_index(self):
        with self.assertRaises(OSError):
            self.write(vae=self.Module, transformer=lambda: self.Module(fails=True))
        self.assertTrue((self.folder / "vae").exists())
        self.assertFalse((self.folder / "model_index.json").exists())
        self.write(transformer=self.Module)  # again, over what was cut off
        self.assertTrue((self.folder / "model_index.json").exists())
        self.assertTrue((self.folder / "tokenizer").exists())
        self.assertFalse((self.folder / "vae").exists())
        self.write(transformer=self.Module)

    def test_is_not_written_over_the_files_of_others(self):
        self.folder.mkdir()
        (self.folder / "thesis.txt").touch()
        with self.assertRaises(self.program.NotOurs):
            self.write(transformer=self.Module)
        self.assertTrue((self.folder / "thesis.txt").exists())


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
