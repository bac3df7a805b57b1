#!/usr/bin/env python3
"""Checks the rules of docs/architecture.md that no compiler checks: python3 tools/lint/lint.py"""

import sys
from pathlib import Path

import budgets
import compilers
import deployments
import families
import gpus
import layers
import names
import page
import rooms
import text
import words
from source import read_sources

RULES = (layers, rooms, families, deployments, words, text, names, budgets, compilers, gpus, page)


def complaints(root):
    sources = read_sources(root)
    for rule in RULES:
        yield from rule.check(sources, root)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    found = list(complaints(root))
    for path, line, complaint in found:
        print(f"{path}:{line}: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
