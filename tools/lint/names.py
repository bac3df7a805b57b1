"""Type names are unique. Neither compiler nor linker reports two types of one name in two headers: one's
inline destructor is then used for the other, which frees invalid memory. Test files are compiled several
at once, so each keeps its names in its own namespace.
"""

import re

_NAMESPACE = re.compile(r"namespace\s*([\w:]*)\s*\{")
_TYPE = re.compile(r"(?:class|struct|union|enum class|enum)\s+(?:BRAID_API\s+)?(\w+)"
                   r"(?:\s+final)?\s*(?::[^:;]*)?\{")


def open_types(source):
    """(line number, full name) of the types other files can see, in clang-format's layout."""
    namespaces = []
    for number, (line, full) in enumerate(zip(source.code, source.lines), 1):
        opened, found = _NAMESPACE.match(line), _TYPE.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif namespaces and re.match(r"\}.*// namespace", full):
            namespaces.pop()
        elif found and "" not in namespaces:
            yield number, "::".join(namespaces + [found.group(1)])


def test_namespace(source):
    stem = source.path.rsplit("/", 1)[1].removesuffix(".cc")
    own = re.compile(rf"namespace braid::(?:\w+::)?{stem} \{{")
    if not any(own.match(line) for line in source.code):
        yield f"its names belong into namespace braid::{stem}"


def check(sources, root):
    del root
    seen = {}
    for source in sources:
        if source.path.startswith("tests/") and source.path.endswith("_test.cc"):
            for complaint in test_namespace(source):
                yield source.path, 1, complaint
        if not source.path.startswith(("src/", "include/")):
            continue
        for number, name in open_types(source):
            where = seen.setdefault(name, source.path)
            if where != source.path:
                yield source.path, number, f"{where} has a type '{name}' too"
