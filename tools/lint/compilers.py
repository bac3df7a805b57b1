"""What one compiler of ours takes and another refuses.

std::uint8_t and the like come from <cstdint>, included or by a header of ours, LibTorch's or a test's:
GCC 12's <string> brings them along, GCC 13's does not. Views of <ranges> in GCC 12's library are
refused by Debian 12's Clang 14, which builds the fuzz targets.
"""

import re

_USE = re.compile(r"\bstd::u?int(?:8|16|32|64|ptr|max)_t\b")
_VIEW = re.compile(r"\bstd::(?:views|ranges::views)\b|\bstd::ranges::\w+_view\b")
_BRINGS = re.compile(r"(c?stdint|stdint\.h)$|(ATen|c10|torch|nlohmann|gtest|gmock|boost|benchmark)/")
_ROOTS = ("src/", "include/", "tests/", "bench/", "")


class _Includes:
    def __init__(self, sources):
        self.by_path = {source.path: source for source in sources}
        self.known = {}

    def brings(self, path):
        """Whether the file or one that it includes brings the integers."""
        if path not in self.known:
            self.known[path] = False  # until proven, also for headers that include each other
            self.known[path] = any(self._is_enough(file, path)
                                   for _, file in self.by_path[path].includes)
        return self.known[path]

    def _is_enough(self, file, by):
        if _BRINGS.match(file):
            return True
        places = [root + file for root in _ROOTS] + [by.rpartition("/")[0] + "/" + file]
        return any(place in self.by_path and self.brings(place) for place in places)


def check(sources, root):
    del root
    includes = _Includes(sources)
    for source in sources:
        uses = [number for number, line in enumerate(source.code, 1) if _USE.search(line)]
        if uses and not includes.brings(source.path):
            yield source.path, uses[0], "the integers of <cstdint> need #include <cstdint>"
        if not source.path.startswith("src/"):
            continue
        for number, line in enumerate(source.code, 1):
            if _VIEW.search(line):
                yield source.path, number, "Clang 14 refuses the views of <ranges>: write the loop"
