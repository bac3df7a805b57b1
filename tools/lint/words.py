"""Models know one device: no ranks, groups, streams or vendors, not even in comments.

Identifiers are split at underscores, digits and changes of case, so `cuda_event`, `kCUDA` and
`RankTable` are found but `chip`, `ostringstream` and `frank` are not. `group` and `stream` are also
words of the papers: as parts of longer names (group_norm, num_groups, GroupNorm) they pass. Only the
bare word, or the name of comm/'s type, is refused.
"""

import re

BANNED_PARTS = {"rank", "world", "mesh", "cuda", "hip", "ranks", "meshes"}
BANNED_WORDS = {"group", "stream", "streams"} | BANNED_PARTS

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def banned_word(identifier):
    """The banned word in `identifier`, or None."""
    if identifier.lower() in BANNED_WORDS:
        return identifier.lower()
    parts = (part.lower() for part in _PART.findall(identifier))
    return next((part for part in parts if part in BANNED_PARTS), None)


def check(sources, root):
    del root
    for source in sources:
        if source.folder != "models":
            continue
        for number, line in enumerate(source.lines, 1):
            for identifier in _IDENTIFIER.findall(line):
                word = banned_word(identifier)
                if word:
                    yield source.path, number, f"'{word}' does not belong in models/"
