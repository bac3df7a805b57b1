"""Writes src/text/unicode/unicode_tables.cc: where the reference's Unicode differs from the system's.

The reference (the `tokenizers` wheel) carries several Unicode versions: 9 in its normalisation and in
what it calls punctuation, 16 in its regular expressions and grapheme clusters, 17 in lower-casing and
numbers. Debian's utf8proc and Oniguruma have 14 or 15. The tables list the differences, found by asking
the reference about every code point.

    pip install tokenizers==0.23.3 sentencepiece unicodedata2
    python tools/parity/dump_unicode.py src/text/unicode/unicode_tables.cc     # Python 3.11, Unicode 14

`unicodedata2` says what later Unicode versions assign, so that a newer utf8proc changes nothing either.
"""
import argparse
import io
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import sentencepiece
import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers
from transformers.utils import sentencepiece_model_pb2_new as model_proto

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HEADER = """// Written by tools/parity/dump_unicode.py from tokenizers {version}; do not edit.
#include "text/unicode/unicode_tables.h"

namespace braid::unicode {{
"""


def ranges(code_points, key=lambda c: None):
    """Runs of consecutive code points with the same key: (first, last, key)."""
    out = []
    for c in sorted(code_points):
        if out and out[-1][1] == c - 1 and out[-1][2] == key(c):
            out[-1][1] = c
        else:
            out.append([c, c, key(c)])
    return out


def is_new(c):
    """Not yet assigned in Unicode 14, the oldest on a supported system."""
    return unicodedata.category(chr(c)) == "Cn"


def matched_by(pattern):
    kept = normalizers.Replace(Regex(pattern), "").normalize_str("".join(map(chr, CODE_POINTS)))
    kept = set(map(ord, kept))
    return [c for c in CODE_POINTS if c not in kept]


def has_combining_class(char):
    """Whether the reference reorders `char`: below 230 it moves before U+0301, above 220 after U+0316."""
    nfd = normalizers.NFD().normalize_str
    return nfd("\u0301" + char) != "\u0301" + char or nfd(char + "\u0316") != char + "\u0316"


def inert():
    """Code points that later Unicode versions reorder, decompose, compose or call a mark, unlike the reference."""
    nfkd = normalizers.NFKD().normalize_str
    strip = normalizers.StripAccents().normalize_str
    found = {0x105D2, 0x105DA, 0x16D63, 0x16D67}  # compose with an old mark, or with a non-mark
    for c in CODE_POINTS:
        char = chr(c)
        mark = unicodedata2.category(char)[0] == "M"
        newer_class = unicodedata2.combining(char) and not has_combining_class(char)
        newer_mark = mark and strip(char) == char
        if newer_class or newer_mark or unicodedata2.normalize("NFKD", char) != nfkd(char):
            found.add(c)
    return ranges(found)


def lower_case():
    lower = normalizers.Lowercase().normalize_str
    changed = [c for c in CODE_POINTS if len(lower(chr(c))) == 1 and lower(chr(c)) != chr(c).lower()]
    return ranges(changed, key=lambda c: ord(lower(chr(c))) - c)


def later_categories():
    assigned = set(CODE_POINTS) - set(matched_by(r"\p{Cn}"))
    new = [c for c in assigned if is_new(c)]
    return ranges(new, key=lambda c: f'"{unicodedata2.category(chr(c))}"')


def split_by(pre_tokenizer):
    return {c for c in CODE_POINTS if len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) > 1}


def later_numbers():
    return ranges(c for c in split_by(pre_tokenizers.Digits(individual_digits=True)) if is_new(c))


def not_punctuation():
    """Punctuation now, but not in Unicode 9."""
    now = {c for c in CODE_POINTS if unicodedata2.category(chr(c))[0] == "P"}
    return ranges(now - split_by(pre_tokenizers.Punctuation()))


def charsmap(frm, to):
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(f"{ord(frm):X}\t{ord(to):X}\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["b c d e f g h i"] * 50), model_writer=model, vocab_size=14,
            normalization_rule_tsv=rules.name, minloglevel=2, hard_vocab_limit=False)
    return model_proto.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap


def later_extenders():
    """Code points that join a preceding `a` in one grapheme cluster: the cluster is then replaced whole."""
    normalize = normalizers.Precompiled(charsmap("a", "X")).normalize_str
    joins = [c for c in CODE_POINTS if c > 127 and normalize("a" + chr(c)) == "X"]
    return ranges(c for c in joins if is_new(c))


def table(name, kind, rows):
    lines = [f"std::span<const {kind}> {name}() {{", f"  static constexpr {kind} table[] = {{"]
    for first, last, key in rows:
        lines.append(f"      {{0x{first:X}, 0x{last:X}{'' if key is None else f', {key}'}}},")
    return "\n".join(lines + ["  };", "  return table;", "}", "", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    assert unicodedata.unidata_version.startswith("14."), "needs a Python whose Unicode is 14 (3.11)"
    import tokenizers
    text = HEADER.format(version=tokenizers.__version__)
    text += table("inert", "Range", inert())
    text += table("lower_case_shifts", "Shift", lower_case())
    text += table("later_categories", "Category", later_categories())
    text += table("later_numbers", "Range", later_numbers())
    text += table("not_punctuation", "Range", not_punctuation())
    text += table("later_extenders", "Range", later_extenders())
    output.write_text(text + "}  // namespace braid::unicode\n")
    subprocess.run(["clang-format", "-i", output], check=True)


if __name__ == "__main__":
    main()
