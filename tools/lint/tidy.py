#!/usr/bin/env python3
"""Runs clang-tidy for two minutes on the sources that this branch changes, each content once.

    tidy.py CLANG_TIDY FOLDER [--all]

FOLDER has a compile_commands.json and in headers/ the compiler headers that clang-tidy lacks, and
remembers what passed. A file that includes ATen takes ten seconds or more. Files left after two minutes
are listed and checked by the next run. --all checks every source without a time limit.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 120
ROOT = Path(__file__).parents[2]


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def changed_files():
    """Since the branch left main, else by the last commit."""
    here, left = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/main")
    since = left[0] if left and left != here else "HEAD~1"
    return git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")


def sources(folder, takes_all):
    """Compiled files of src/, smallest first."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    compiled = {Path(c["file"]).relative_to(ROOT) for c in commands if "/src/" in c["file"]}
    wanted = compiled if takes_all else compiled & {Path(f) for f in changed_files()}
    return sorted(wanted, key=lambda f: (ROOT / f).stat().st_size)


class Tidy:
    def __init__(self, program, folder, deadline):
        self.program, self.folder, self.deadline = program, folder, deadline
        self.rules = (ROOT / ".clang-tidy").read_bytes()
        self.left = []
        (folder / "passed").mkdir(exist_ok=True)

    def passes(self, file):
        """Also true for files left to the next run."""
        digest = hashlib.sha256(self.rules + (ROOT / file).read_bytes()).hexdigest()
        passed = self.folder / "passed" / digest
        if passed.exists():
            return True
        if time.monotonic() > self.deadline:
            self.left.append(str(file))
            return True
        headers = f"--extra-arg-before=-isystem{self.folder / 'headers'}"
        done = subprocess.run([self.program, "-p", self.folder, "--quiet", headers, file], cwd=ROOT,
                              capture_output=True, text=True)
        if done.returncode == 0:
            passed.touch()
        else:
            print(done.stdout or done.stderr, end="", flush=True)
        return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    flags = parser.parse_args()
    if not flags.all and not (shutil.which("git") and git("rev-parse", "HEAD")):
        print("no source was checked: only git knows which have changed; --tidy checks all")
        return 0
    files = sources(flags.folder, flags.all)
    deadline = time.monotonic() + (float("inf") if flags.all else SECONDS)
    tidy = Tidy(flags.program, flags.folder, deadline)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tidy.passes, files))
    print(f"{sum(results) - len(tidy.left)} of {len(files)} sources are tidy")
    if tidy.left:
        print(f"left for the next run: {' '.join(tidy.left)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
