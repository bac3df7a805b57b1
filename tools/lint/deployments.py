"""A run is settled once: only deploy() finds a model's files and opens its family.

All else takes both from the Deployment. A header of weights that nobody runs (braid info FILE) is not a model.
"""

import re

OPENERS = re.compile(r"\b(find_model|with_paths|placed_files|open_family)\s*\(")
OWN_PLACES = ("src/pipeline/deployment/", "src/pipeline/files/", "src/pipeline/families/family.")


def check(sources, root):
    del root
    for source in sources:
        if not source.path.startswith("src/") or source.path.startswith(OWN_PLACES):
            continue
        for number, line in enumerate(source.code, 1):
            found = OPENERS.search(line)
            if found:
                yield source.path, number, f"{found.group(1)}() is deploy()'s: take what the Deployment has"
