"""A type has its name once. Two types of one name in two headers are no error for the compiler or
the linker: one's inline destructor is then taken for the other's, and memory is freed that is none.
"""

import re

_TYPE = re.compile(r"(?:class|struct|union|enum class|enum)\s+(?:BRAID_API\s+)?(\w+)"
                   r"(?:\s+final)?\s*(?::[^:;]*)?\{")


def open_types(source):
    """(line number, name) of the types at namespace scope that other files can see."""
    hidden = False
    for number, line in enumerate(source.code, 1):
        if re.match(r"namespace\s*\{", line):
            hidden = True
        elif hidden and line.startswith("}"):
            # The type's own brace closes with a semicolon, the namespace's does not.
            hidden = line.rstrip().endswith(";") or source.lines[number - 1].find("namespace") < 0
        found = _TYPE.match(line)
        if found and not hidden:
            yield number, found.group(1)


def check(sources, root):
    del root
    seen = {}
    for source in sources:
        if not source.path.startswith(("src/", "include/")):
            continue
        for number, name in open_types(source):
            where = seen.setdefault(name, source.path)
            if where != source.path:
                yield source.path, number, f"{where} has a type '{name}' too"
