"""`python -m braid_engine ...` is the program `braid ...`."""

import os
import sys

from ._program import PROGRAM


def main() -> None:
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
