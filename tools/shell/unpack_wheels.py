"""Unpacks wheels: python3 unpack_wheels.py WHEELS TARGET

Of torch only what a C++ build uses: 0.6 GB instead of 1.2 where cuBLAS is not among the wheels.
"""

import re
import stat
import sys
import zipfile
from pathlib import Path

UNUSED = re.compile(r"torch/(?!(?:lib|include|share)/)|torch/lib/libtorch_python\.so|"
                    r"torch/lib/.*\.dylib|"
                    r"torchgen/|functorch/")
CUDA = re.compile(r"torch/lib/libtorch_cuda\w*\.so")


def unpack(wheel, target, with_cuda):
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename
            if UNUSED.match(name) or not with_cuda and CUDA.match(name):
                continue
            path = Path(archive.extract(member, target))
            # Zip files keep the mode in the upper half; zipfile ignores it.
            if (member.external_attr >> 16) & stat.S_IXUSR:
                path.chmod(path.stat().st_mode | 0o111)


def main():
    wheels, target = map(Path, sys.argv[1:])
    try:
        with_cuda = any(wheels.glob("nvidia_cublas-*.whl"))
        for wheel in sorted(wheels.glob("*.whl")):
            unpack(wheel, target, with_cuda)
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
