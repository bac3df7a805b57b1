"""Rules for single lines: preprocessor conditions, printing, expensive headers, flags in strings,
comments that begin like half a sentence."""

import re

# Vendor and version choices live here; everything else of the library is chosen at link time.
MAY_TEST = {"src/base/gpu_runtime.cu", "src/ops/gpu/gpu.cu"}
MAY_PRINT = {"app", "serve"}
TEXT_STREAMS = "src/base/text_stream.h"
TORCH_FREE = {"base", "text", "image", "net"}

_CONDITION = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif)\b")
_PRINT = re.compile(
    r"\bstd::(?:cout|cerr|clog)\b|\b(?:printf|vprintf|fprintf|vfprintf|puts|putchar|perror)\s*\(")
_PLAIN_STREAM = re.compile(r"\bstd::w?[io]?stringstream\b")
_SLOW_HEADER = re.compile(r"torch/(?:torch|types|extension|all|script)\.h$")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_FLAG = re.compile(r"(?<![\w-])--[a-z]")
# What such a comment is about stands in the line below it, and its verb nowhere.
_BEGINS_MIDWAY = re.compile(r"\s*// (?:Of|By) ")
_COMMENT = re.compile(r"\s*//")
_TORCH_HEADER = re.compile(r"(?:ATen|c10|torch)/")


def check_line(source, line):
    of_library = source.path.startswith(("src/", "include/"))
    if of_library and _CONDITION.match(line) and source.path not in MAY_TEST:
        yield "#if belongs in base/gpu_runtime.cu or ops/gpu/gpu.cu"
    if source.folder and source.folder not in MAY_PRINT and _PRINT.search(line):
        yield "only app/ and serve/ print"
    if of_library and source.path != TEXT_STREAMS and _PLAIN_STREAM.search(line):
        yield "a host's locale changes what this stream writes; use one of base/text_stream.h"


def check_include(source, file):
    if _SLOW_HEADER.match(file):
        yield f"{file} costs ten seconds a file; include the ATen header that has what you need"
    if source.folder in TORCH_FREE and _TORCH_HEADER.match(file):
        yield f"{source.folder} does not see LibTorch"


# The library's errors state facts; only the program says what to type.
def flags_in_strings(source):
    if not source.folder or source.folder in MAY_PRINT:
        return
    for number, full in enumerate(source.lines, 1):
        for string in _STRING.findall(re.sub(r"//.*", "", full)):
            if _FLAG.search(string):
                yield number, "only app/ and serve/ speak of flags"


def check_comments(source):
    for number, line in enumerate(source.lines, 1):
        follows = number > 1 and _COMMENT.match(source.lines[number - 2])
        if _BEGINS_MIDWAY.match(line) and not follows:
            yield number, "a comment is a sentence with a noun and a verb: this one begins midway"


def check(sources, root):
    del root
    for source in sources:
        for rule in (flags_in_strings, check_comments):
            for number, complaint in rule(source):
                yield source.path, number, complaint
        for number, line in enumerate(source.code, 1):
            for complaint in check_line(source, line):
                yield source.path, number, complaint
        for number, file in source.includes:
            for complaint in check_include(source, file):
                yield source.path, number, complaint
        if source.path.endswith(".h") and "#pragma once" not in source.lines:
            yield source.path, 1, "a header needs #pragma once"
