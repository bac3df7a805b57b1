"""The page of `braid serve`: small modules, addresses relative to the page's, stored texts only through
storage.js, and no name of another module that is not imported: nothing compiles these files. `sessionStorage.key` is a method of every browser's Storage, not a stored text."""

import re

FOLDER = "src/serve/page"
LINES = 260
COLUMNS = 130

_STORAGE = re.compile(r"\b(?:localStorage|sessionStorage)\b")
_FROM_ROOT = re.compile(r"""(?:fetch|reach|ask|askJson|post|import|from|URL)\s*\(?\s*["'`]/(?!/)|\b(?:href|src)=["']/""")
_ELSEWHERE = re.compile(r"""["'`(]https?://(?!www\.w3\.org/)""")


def complaint_about(name, line):
    if name != "storage.js" and _STORAGE.search(line):
        return "only storage.js touches what the browser stores"
    if _FROM_ROOT.search(line):
        return "the page may be served below a path: addresses are relative"
    if _ELSEWHERE.search(line):
        return "the page loads nothing from elsewhere"
    if len(line) > COLUMNS and name.endswith(".js"):
        return f"{len(line)} columns, the budget is {COLUMNS}"
    return None


_EXPORT = re.compile(r"^export (?:async )?(?:const|let|class|function\*?) ([\w$]+)", re.M)
_IMPORT = re.compile(r"import \{([^}]*)\} from")


def missing_imports(modules):
    """(file, line, name) of calls of what another module exports, by {file: text}."""
    exported = {name for text in modules.values() for name in _EXPORT.findall(text)}
    for file, text in modules.items():
        imported = {name.split(" as ")[-1].strip() for names in _IMPORT.findall(text) for name in names.split(",")}
        for name in sorted(exported - imported):
            escaped = re.escape(name)
            own = rf"(?:const|let|class|function\*?) {escaped}(?![\w$])|[\[,({{] ?{escaped} ?[\]),=}}:]"
            called = re.search(rf"^(?!\s*//).*?(?<![\w$.]){escaped}\(", text, re.M)
            if called and not re.search(own, text):
                yield file, text.count("\n", 0, called.start()) + 1, name


def check(sources, root):
    del sources
    modules = {path.name: path.read_text(encoding="utf-8") for path in sorted((root / FOLDER).glob("*.js"))}
    for name, number, called in missing_imports(modules):
        yield f"{FOLDER}/{name}", number, f"{called}() is another module's: import it"
    for path in sorted((root / FOLDER).glob("*.*")):
        if path.suffix not in (".js", ".html", ".css"):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".js" and len(lines) > LINES:
            yield f"{FOLDER}/{path.name}", 1, f"{len(lines)} lines, the budget is {LINES}"
        for number, line in enumerate(lines, 1):
            code = re.sub(r"^\s*//.*", "", line)
            if complaint := complaint_about(path.name, code):
                yield f"{FOLDER}/{path.name}", number, complaint
