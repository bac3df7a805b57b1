"""What importing braid_engine sets, warns of and refuses."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from braid_engine import LIBTORCH_VERSION, _loading
from braid_engine._build import LIBTORCH

OURS = _loading.loaded_file(_loading.LIBRARY)
SPINNING = """
import ctypes, warnings, sys
ctypes.CDLL(sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import braid_engine
print(len(caught), *(str(w.message) for w in caught))
"""


def run(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    line = [sys.executable, "-c", code, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, env={**kept, **variables})


def fake_torch(folder: str, version: str) -> Path:
    """A torch of its own, with a library that only looks like LibTorch's."""
    package = Path(folder) / "torch"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    (package / "lib" / _loading.LIBRARY).write_bytes(b"")
    return package


class Environment(unittest.TestCase):
    def test_lets_waiting_threads_sleep(self) -> None:
        code = "import os, braid_engine; print(os.environ['OMP_WAIT_POLICY'])"
        self.assertEqual(run(code).stdout.strip(), "passive")
        self.assertEqual(run(code, OMP_WAIT_POLICY="active").stdout.strip(), "active")

    def test_warns_once_where_it_is_too_late(self) -> None:
        library = str(_loading.loaded_file(_loading.OPENMP))
        said = run(SPINNING, library).stdout
        self.assertTrue(said.startswith("1 "), said)
        self.assertIn("ten times as long", said)
        self.assertTrue(run(SPINNING, library, OMP_WAIT_POLICY="passive").stdout.startswith("0"))


class Torch(unittest.TestCase):
    def test_of_another_version_is_refused_once_ours_is_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            fake_torch(folder, "9.9.9")
            code = "import sys; import braid_engine; sys.path.insert(0, sys.argv[1]); import torch"
            said = run(code, folder).stderr
        self.assertIn("ImportError: braid_engine has loaded the LibTorch in", said)
        self.assertIn("two copies in one process would mix", said)

    def test_of_another_version_is_found_without_an_error(self) -> None:
        """Packages look whether there is a torch, without importing it."""
        with tempfile.TemporaryDirectory() as folder:
            package = fake_torch(folder, "9.9.9")
            code = "import importlib.util, sys; import braid_engine; sys.path.insert(0, sys.argv[1]); "
            said = run(code + "print(importlib.util.find_spec('torch').origin)", folder)
        self.assertEqual(said.stdout.strip(), str(package / "__init__.py"), said.stderr)

    def test_of_another_file_is_refused_once_it_is_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = fake_torch(folder, "9.9.9") / "lib" / _loading.LIBRARY
            library.write_bytes((OURS.parent / "libc10.so").read_bytes())
            code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); import braid_engine"
            said = run(code, str(library)).stderr
        self.assertIn(f"this process has already loaded {library}", said)

    def test_of_the_environment_is_used_if_its_version_is_that_compiled_with(self) -> None:
        built = Path(LIBTORCH)
        with tempfile.TemporaryDirectory() as folder:
            torch = fake_torch(folder, f"{LIBTORCH_VERSION}+cpu")
            self.assertEqual(_loading.chosen_libtorch(built, torch), torch)
        with tempfile.TemporaryDirectory() as folder:
            torch = fake_torch(folder, "9.9.9")
            self.assertEqual(_loading.chosen_libtorch(OURS.parent.parent, torch), OURS.parent.parent)
            with self.assertRaisesRegex(ImportError, "and this environment has torch 9.9.9: install"):
                _loading.chosen_libtorch(Path(folder) / "nowhere", torch)
            with self.assertRaisesRegex(ImportError, "it is not in .*nowhere any more: install"):
                _loading.chosen_libtorch(Path(folder) / "nowhere", None)


if __name__ == "__main__":
    unittest.main()
