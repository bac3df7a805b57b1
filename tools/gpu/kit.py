"""What is carried to a GPU machine, and what programs need to start there.

Programs look for libraries in lib/ and torch/lib/ beside their own folder. `torch` is a link, created
there, to the torch of that machine's python3.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

MOST_BYTES = 60 << 20  # of the archive
PROGRAMS = ("braid", "braid-engine", "device_test", "ops_test", "ceilings", "report", "parts")
DATA = ("models/demo", "tests/data/parity/basic", "tests/data/parity/blocks", "tests/data/parity/int8",
        "tests/data/parity/qwen21", "tools/gpu", "tools/peers")
RUN_PATH = "$ORIGIN/../torch/lib"
# Carried for systems with an older C++ runtime, though it may need a newer C library than the
# programs do.
CPP_RUNTIME = ("libstdc++.so.6", "libgcc_s.so.1")
# Found on any GPU system or in LibTorch's own folders.
AT_HOME = re.compile(r"/(?:libc|libm|libdl|librt|libpthread|libutil|ld-linux[^/]*|libcuda|libnvidia[^/]*)"
                     r"\.so|linux-vdso|/torch/lib/|/nvidia/")


class CannotPack(Exception):
    pass


class CannotRun(Exception):
    pass


def printed(*command):
    """What a program prints; empty if it fails or is missing."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def foreign_libraries(ldd_output):
    """Paths of libraries to carry, from the output of `ldd`."""
    found = re.findall(r"=> (/\S+)", ldd_output)
    return sorted({path for path in found if not AT_HOME.search(path)})


def check_links(program, readelf_output, ldd_output):
    """A program that links LibTorch must find torch elsewhere too, and load one CUDA runtime."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf_output)
    if not any(name.startswith("libtorch_cpu") for name in needed):
        return
    if not any(name.startswith("libtorch_cuda") for name in needed):
        raise CannotPack(f"{program} does not link libtorch_cuda.so: its kernels would not be there")
    if RUN_PATH not in readelf_output:
        raise CannotPack(f"{program} has no run path {RUN_PATH}: make it with `first_run prepare`")
    missing = re.findall(r"(\S+) => not found", ldd_output)
    if missing:
        raise CannotPack(f"{program} needs {', '.join(missing)}, not found here")
    runtimes = {os.path.realpath(path) for path in re.findall(r"=> (\S*libcudart\.so\S*)", ldd_output)}
    if len(runtimes) != 1:
        raise CannotPack(f"{program} loads {len(runtimes)} CUDA runtimes, should be one: "
                         f"{', '.join(sorted(runtimes))}")


def copy_program(program, target):
    shutil.copy2(program, target)
    subprocess.run(["strip", "--strip-unneeded", target], check=False, stderr=subprocess.DEVNULL)


def copy_programs(build, kit):
    """The programs; their libraries as paths."""
    libraries = set()
    for name in PROGRAMS:
        program = build / "bin" / name
        if not program.exists():
            raise CannotPack(f"{program} is not built")
        listed = printed("ldd", program)
        check_links(program, printed("readelf", "-d", program), listed)
        copy_program(program, kit / "bin" / name)
        libraries.update(foreign_libraries(listed))
    return libraries


def pack(root, build, kit, data=DATA, wheels=()):
    """Fills the folder `kit` and writes `kit`.tar.xz; 0 if that is complete and small enough."""
    if kit.exists() and any(kit.iterdir()):
        raise CannotPack(f"{kit} is not empty")
    for folder in ("bin", "lib", "site"):
        (kit / folder).mkdir(parents=True)
    libraries = copy_programs(build, kit)
    for library in sorted(libraries):
        shutil.copy2(library, kit / "lib" / Path(library).name)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(kit / "site")
    for folder in data:
        shutil.copytree(root / folder, kit / folder, ignore=shutil.ignore_patterns("__pycache__"))
    note = {"built_in": str(root), "torch": torch_version(linked_torch(build))}
    (kit / "kit.json").write_text(json.dumps(note) + "\n")
    archive = kit.with_name(kit.name + ".tar.xz")
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(kit, kit.name)
    size = archive.stat().st_size
    if size > MOST_BYTES:
        raise CannotPack(f"{archive} has {size >> 20} MiB, {MOST_BYTES >> 20} can be carried")
    print(f"{archive} has {size / (1 << 20):.1f} MiB, with {len(libraries)} libraries")
    return 0


def prepare(root, build, kit, data=DATA):
    """Fetches what is needed, builds for the GPU, and packs."""
    made = subprocess.run(["bash", root / "tools/gpu/prepare.sh", build], check=False,
                          stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise CannotPack("the build failed")
    return pack(root, build, kit, data, [Path(line) for line in made.stdout.split()])


def torch_folder():
    """The folder of the torch that `python3` finds; empty if there is none."""
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    return printed("python3", "-c", code).strip()


def linked_torch(build):
    """The folder of the LibTorch that programs were built with; None if it is not known."""
    cache = build / "CMakeCache.txt"
    found = re.search(r"^LibTorch_ROOT_DIR:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    return Path(found[1]) if found else None


def torch_version(torch):
    """What a LibTorch says; empty if it says nothing."""
    file = torch / "share/cmake/Torch/TorchConfigVersion.cmake" if torch else None
    found = re.search(r'PACKAGE_VERSION "([^"]+)"', file.read_text()) if file and file.exists() else None
    return found[1] if found else ""


def check_torch(wanted, torch):
    """Programs start with the LibTorch that they are linked with, and may crash with another."""
    found = torch_version(torch)
    if wanted and found and wanted != found:
        raise CannotRun(f"the kit's programs are linked with LibTorch {wanted}, but {torch} is {found}: "
                        f"have python3 find a torch=={wanted}, and remove the kit's link `torch` if there is one")


def make_link(place, target):
    """Does nothing if `place` exists."""
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)  # a dangling link
    place.symlink_to(target)


def can_be_loaded(library):
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    return subprocess.run(["python3", "-c", code, library], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def leave_newer_runtime(root):
    """Where this system is older than the one that packed, its own C++ runtime has to do."""
    carried = [root / "lib" / name for name in CPP_RUNTIME if (root / "lib" / name).exists()]
    if not all(can_be_loaded(library) for library in carried):
        for library in carried:
            library.unlink()


def link_data(root, built_in):
    """Lets device tests find their data where they were built, if this user may write there."""
    try:
        make_link(built_in, root)
    except OSError as cause:
        print(f"{built_in} cannot be made a link to {root} ({cause.strerror}): device tests will miss "
              "their data", file=sys.stderr)


def settle(root):
    """Prepares an unpacked kit, and the model where programs look for it."""
    if (root / "bin").is_dir():
        make_link(root / "share/braid/models", Path("../../models"))
    known = root / "kit.json"
    if not known.exists():
        return
    note = json.loads(known.read_text())
    link = root / "torch"
    torch = link.resolve() if link.exists() else torch_folder()
    if torch:
        check_torch(note.get("torch"), Path(torch))
        make_link(link, torch)
    link_data(root, Path(note["built_in"]))
    leave_newer_runtime(root)
    paths = [str(root / "site"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = ":".join(path for path in paths if path)
