"""A family of models is named only in its own folders, nowhere else in the library.

Identifiers are checked, and strings outside app/, whose help shows examples. Comments may name a model
as the source of a figure or formula.
"""

import re

OWN_FOLDERS = ("src/models/", "src/text/", "src/pipeline/families/")
# It reads the words that people write on files, of which some stand for a model: "krea" is a dev.
WORDS_ON_FILES = "src/pipeline/files/model_words.cc"
NAMES = re.compile(
    r"flux|(?<![a-z0-9])t5(?![0-9])|clip(?!_grad|board)|qwen|mistral|zimage|z_image|joyai|siglip"
    r"|krea(?=[^a-z]|$)|num_double|num_single|double_block|single_block", re.IGNORECASE)
# Innocent uses: a picture is clipped, float16 is clipped; a field of the web UI's.
INNOCENT = re.compile(r"\bclip_skip\b|\bclipp(?:ed|ing)\b|\bclips?\b(?=\s+(?:to|at))|eclipse")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def _named(text):
    found = NAMES.search(INNOCENT.sub("", text))
    return found.group() if found else None


def check(sources, root):
    del root
    for source in sources:
        if not source.path.startswith(("src/", "include/")) or source.path.startswith(OWN_FOLDERS):
            continue
        if source.path == WORDS_ON_FILES:
            continue
        in_app = source.path.startswith("src/app/")
        for number, (code, full) in enumerate(zip(source.code, source.lines), 1):
            words = _IDENTIFIER.findall(code)
            if full.lstrip().startswith("#include"):
                continue
            if not in_app:
                words += _STRING.findall(re.sub(r"//.*", "", full))
            for word in words:
                name = _named(word)
                if name:
                    yield source.path, number, f"'{name}' belongs to a family: ask through its door"
