"""A C++ file as the rules see it: its lines, and the same lines without comments and strings."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cu"}
FOLDERS = ("src", "include", "tests", "bench", "examples", "fuzz")

_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


@dataclass(frozen=True)
class Source:
    path: str  # relative to the root, with '/'
    text: str

    @cached_property
    def lines(self):
        return self.text.splitlines()

    @cached_property
    def code(self):
        """The lines with comments and strings blanked out; #include lines keep their file name."""
        code = _COMMENT_OR_STRING.sub(_blank, self.text).splitlines()
        return [full if full.lstrip().startswith("#include") else line
                for full, line in zip(self.lines, code)]

    @property
    def includes(self):
        """(line number, file) of every #include."""
        for number, line in enumerate(self.code, 1):
            found = re.match(r'\s*#include\s+["<]([^">]+)[">]', line)
            if found:
                yield number, found.group(1)

    @property
    def folder(self):
        """'nn' for src/nn/linear.h; None outside src/."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def read_sources(root):
    """Every C++ file of the project, in order of path."""
    paths = [p for folder in FOLDERS for p in Path(root, folder).rglob("*") if p.suffix in SUFFIXES]
    return [Source(p.relative_to(root).as_posix(), p.read_text(encoding="utf-8"))
            for p in sorted(paths)]
