"""Folders include downwards only, and the link lines of CMake say the same.

    base < comm < weights < ops < nn < {models, parallel} < pipeline < serve < app

text and image see only base, net sees these and base. Folders in the same braces do not see each other.
"""

import re
from pathlib import Path

ORDER = [["base"], ["comm"], ["weights"], ["ops"], ["nn"], ["models", "parallel"], ["pipeline"],
         ["serve"], ["app"]]
ASIDE = {"text", "image"}  # see base; seen by the pipeline and above
NET = {"net"}  # seen above the pipeline: what computes asks no other machine
FOLDERS = {folder for level in ORDER for folder in level} | ASIDE | NET


def visible_from(folder):
    """The folders that `folder` may include and link."""
    if folder in ASIDE:
        return {"base"}
    if folder in NET:
        return {"base"} | ASIDE
    level = next(i for i, names in enumerate(ORDER) if folder in names)
    below = {name for names in ORDER[:level] for name in names}
    if level > ORDER.index(["pipeline"]):
        return below | ASIDE | NET
    return below | ASIDE if level == ORDER.index(["pipeline"]) else below


def check_includes(sources):
    for source in sources:
        if source.folder is None:
            continue
        if source.folder not in FOLDERS:
            yield source.path, 1, f"src/{source.folder} has no place in the layer order"
            continue
        allowed = visible_from(source.folder) | {source.folder}
        for number, file in source.includes:
            target = file.split("/")[0]
            if target in FOLDERS and target not in allowed:
                yield source.path, number, f"{source.folder} must not include {target}"


def link_lines(root):
    """{folder: folders that it links}, from src/*/CMakeLists.txt."""
    links = {}
    for path in sorted(Path(root, "src").glob("*/CMakeLists.txt")):
        text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
        found = links.setdefault(path.parent.name, set())
        for call in re.findall(r"target_link_libraries\s*\(([^)]*)\)", text):
            found.update(name for name in re.findall(r"\bbraid_(\w+)", call) if name in FOLDERS)
        found.discard(path.parent.name)
    return links


def reachable(links, folder):
    seen, todo = set(), [folder]
    while todo:
        for name in links.get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def check_links(sources, root):
    links = link_lines(root)
    for folder, linked in links.items():
        if folder not in FOLDERS:
            continue
        for name in sorted(linked - visible_from(folder)):
            yield f"src/{folder}/CMakeLists.txt", 1, f"{folder} must not link braid_{name}"
    for source in sources:
        if source.folder not in links:
            continue
        linked = reachable(links, source.folder) | {source.folder}
        for number, file in source.includes:
            target = file.split("/")[0]
            if target in FOLDERS and target not in linked:
                yield source.path, number, f"includes {target}, but the CMake target does not link it"


def check(sources, root):
    yield from check_includes(sources)
    yield from check_links(sources, root)
