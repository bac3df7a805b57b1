#!/usr/bin/env python3
"""Count the instructions of fixed work, and compare two builds.

    instructions.py [--tolerance 2] PROGRAM [BASE]

PROGRAM is bench/instructions of this tree, BASE that of another one, built with the same compiler and LibTorch.
Each runs under valgrind as on a processor with AVX2, which is the most that valgrind emulates. Exit code 1 if any
work takes more instructions than BASE's, by more than the tolerance in percent.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTED = "braid_counted"


def settings_of(isa):
    """What limits our loops and LibTorch's to an instruction set."""
    for line in (ROOT / "tools/shell/instruction_sets.txt").read_text().splitlines():
        name, *settings = line.split()
        if name == isa:
            return dict(setting.split("=") for setting in settings) | {"BRAID_ISA": isa}
    raise SystemExit(f"instructions.py: instruction_sets.txt has no {isa}")


def count(program):
    """The instructions of each piece of work, by name, and of its functions."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}", f"--dump-after={COUNTED}",
                   f"--callgrind-out-file={folder}/counts", program]
        run = subprocess.run(command, env=os.environ | settings_of("avx2") | {"OMP_NUM_THREADS": "1"}, text=True,
                             capture_output=True)
        if run.returncode != 0:
            raise SystemExit(f"instructions.py: {program} failed under valgrind:\n{run.stderr[-2000:]}")
        names = run.stdout.split()
        files = [Path(f"{folder}/counts.{i + 1}") for i in range(len(names))]
        if not names or not all(file.exists() for file in files):
            raise SystemExit(f"instructions.py: valgrind counted no call of {COUNTED} in {program}")
        return {name: total_in(file.read_text()) for name, file in zip(names, files)}


def total_in(profile):
    return int(re.search(r"^(?:summary|totals): (\d+)", profile, re.MULTILINE).group(1))


def compare(counts, base, tolerance):
    """Lines of a table, and the names of work that takes more than the base's."""
    lines, more = [], []
    for name, now in counts.items():
        before = base.get(name)
        ratio = now / before if before else None
        mark = ""
        if ratio and ratio > 1 + tolerance / 100:
            more.append(name)
            mark = "  more"
        lines.append(f"{name:32} {now:10} {before or '-':>10} {f'{ratio:.3f}' if ratio else '-':>7}{mark}")
    lines += [f"{name:32} {'-':>10} {before:10} {'-':>7}" for name, before in base.items() if name not in counts]
    return lines, more


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=2, help="percent")
    parser.add_argument("program")
    parser.add_argument("base", nargs="?")
    flags = parser.parse_args()
    counts = count(flags.program)
    base = count(flags.base) if flags.base else {}
    lines, more = compare(counts, base, flags.tolerance)
    print(f"{'instructions':32} {'here':>10} {'base':>10} {'ratio':>7}")
    print("\n".join(lines))
    if more:
        print(f"instructions.py: {', '.join(more)}: more instructions than in the base, by more than "
              f"{flags.tolerance:g} %", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
