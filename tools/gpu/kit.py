"""What is carried to a machine with a GPU, and what programs need to start there."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

MOST_BYTES = 60 << 20
PROGRAMS = ("braid", "braid-engine", "device_test", "ops_test", "gpu_kernels_test", "ceilings", "report",
            "parts")
OPTIONAL = {"gpu_kernels_test"}  # of builds without a GPU
DATA = ("models/demo", "tests/data/parity/ops", "tools/gpu", "tools/peers")
# What a system with a GPU, and LibTorch's own folders, have.
AT_HOME = re.compile(r"/(?:libc|libm|libdl|librt|libpthread|libutil|ld-linux[^/]*|libcuda|libnvidia[^/]*)"
                     r"\.so|linux-vdso|/torch/lib/|/nvidia/")


class CannotPack(Exception):
    pass


def foreign_libraries(ldd_output):
    """Paths of libraries to carry, of what `ldd` printed."""
    found = re.findall(r"=> (/\S+)", ldd_output)
    return sorted({path for path in found if not AT_HOME.search(path)})


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def copy_program(program, target):
    shutil.copy2(program, target)
    subprocess.run(["strip", "--strip-unneeded", target], check=False, stderr=subprocess.DEVNULL)


def pack(root, build, kit):
    """Fills `kit`; 0 when it is whole and small enough."""
    if kit.exists() and any(kit.iterdir()):
        raise CannotPack(f"{kit} is not empty")
    (kit / "bin").mkdir(parents=True)
    (kit / "lib").mkdir()
    libraries = set()
    for name in PROGRAMS:
        program = build / "bin" / name
        if not program.exists():
            if name in OPTIONAL:
                continue
            raise CannotPack(f"{program} is not built")
        copy_program(program, kit / "bin" / name)
        listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False)
        libraries.update(foreign_libraries(listed.stdout))
    for library in sorted(libraries):
        shutil.copy2(library, kit / "lib" / Path(library).name)
    for data in DATA:
        if (root / data).exists():
            shutil.copytree(root / data, kit / data, ignore=shutil.ignore_patterns("__pycache__"))
    (kit / "kit.json").write_text(json.dumps({"built_in": str(root)}) + "\n")
    size = bytes_of(kit)
    if size > MOST_BYTES:
        raise CannotPack(f"{kit} has {size >> 20} MiB, {MOST_BYTES >> 20} can be carried")
    print(f"{kit} has {size >> 20} MiB, with {len(libraries)} libraries")
    return 0


def torch_folders():
    """Of LibTorch and of the CUDA libraries beside it, as `python3` finds them."""
    code = ("import pathlib, torch; here = pathlib.Path(torch.__file__).parent; "
            "print(here / 'lib', *sorted(here.parent.glob('nvidia/**/lib')), sep='\\n')")
    found = subprocess.run(["python3", "-c", code], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.split("\n")[:-1]


def environment(root):
    """For programs of the kit: where their libraries are. Tests find their data where it was."""
    known = root / "kit.json"
    if known.exists():
        place = Path(json.loads(known.read_text())["built_in"])
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(root)
    own = [str(root / "lib")] if (root / "lib").exists() else []
    paths = own + torch_folders() + os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}
