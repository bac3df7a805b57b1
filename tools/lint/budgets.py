"""Files stay small enough to read at once; a file over budget is split by concept, a class stands in one."""

from pathlib import PurePosixPath

HEADER_LINES = 160
SOURCE_LINES = 400
COLUMNS = 100
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def check(sources, root):
    del root
    for source in sources:
        path = PurePosixPath(source.path)
        budget = HEADER_LINES if path.suffix == ".h" else SOURCE_LINES
        if len(source.lines) > budget:
            yield source.path, 1, f"{len(source.lines)} lines, the budget is {budget}"
        for number, line in enumerate(source.lines, 1):
            if len(line) > COLUMNS:
                yield source.path, number, f"{len(line)} columns, the budget is {COLUMNS}"
        if path.stem in VAGUE_NAMES:
            yield source.path, 1, f"'{path.stem}' says nothing: name the concept"
