"""Type names are unique. Neither compiler nor linker reports two types of one name in two headers: one's
inline destructor is then used for the other, which frees invalid memory. Test files are compiled several
at once, so each keeps its names in its own namespace. A class is defined in one file; what stands for it
in builds without a library is in a second one, called no_*.
"""

import re

_NAMESPACE = re.compile(r"namespace\s*([\w:]*)\s*\{")
_TYPE = re.compile(r"(?:class|struct|union|enum class|enum)\s+(?:BRAID_API\s+)?(\w+)"
                   r"(?:\s+final)?\s*(?::[^:;]*)?\{")

# Which thing's name a function says is part of its own: it can be searched for.
_BARE_NAME = re.compile(r"\bname_of\(")

# "void Pages::enter(", "Tensor& Slot::operator=(", at the begin of a line, as clang-format has it.
_MEMBER = re.compile(r"(?:[\w:<>,*&]+[ *&]+)*([A-Z]\w*)::(?:~?\w+|operator\S+)\(")


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


def defined_classes(source):
    """The first line of each class that has functions defined here, out of its braces."""
    seen = {}
    for number, line in enumerate(source.code, 1):
        found = _MEMBER.match(line)
        if found and not line.rstrip().endswith(";"):
            seen.setdefault(found.group(1), number)
    return seen


def test_namespace(source):
    stem = source.path.rsplit("/", 1)[1].removesuffix(".cc")
    own = re.compile(rf"namespace braid::(?:\w+::)?{stem} \{{")
    if not any(own.match(line) for line in source.code):
        yield f"its names belong into namespace braid::{stem}"


def check(sources, root):
    del root
    seen, homes = {}, {}
    for source in sources:
        if source.path.startswith("tests/") and source.path.endswith("_test.cc"):
            for complaint in test_namespace(source):
                yield source.path, 1, complaint
        if not source.path.startswith(("src/", "include/")):
            continue
        for number, line in enumerate(source.code, 1):
            if _BARE_NAME.search(line):
                yield source.path, number, "'name_of' lacks its noun: 'phase_name', say"
        for number, name in open_types(source):
            where = seen.setdefault(name, source.path)
            if where != source.path:
                yield source.path, number, f"{where} has a type '{name}' too"
        if not source.path.endswith(".cc") or "/no_" in source.path:
            continue
        for name, number in defined_classes(source).items():
            where = homes.setdefault(name, source.path)
            if where != source.path:
                yield source.path, number, f"{where} defines functions of '{name}' too: a class has one place"
