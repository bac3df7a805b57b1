"""A comment is a sentence with a noun and a verb. Verbs cannot be told from nouns here, but a short first
sentence that begins with a preposition and has no comma has none: "For forecasts.", "By size.".
"""

import re

MOST_WORDS = 6

_COMMENT = re.compile(r"\s*// ?(.*)")
_FRAGMENT = re.compile(
    r"(?:Of|By|For|In|At|To|With|From|On|As|Over|Without|Per|Like|Among|Between|Behind) [^,.:;]*\.?$")


def first_sentences(source):
    """(line number, first sentence) of every comment that has lines of its own."""
    text, begin = [], 0
    for number, line in enumerate(source.lines + [""], 1):
        found = _COMMENT.match(line)
        if found:
            begin = begin if text else number
            text.append(found.group(1))
        elif text:
            yield begin, re.split(r"(?<=[.:;]) ", " ".join(text))[0]
            text = []


def check(sources, root):
    del root
    for source in sources:
        for number, sentence in first_sentences(source):
            if _FRAGMENT.match(sentence) and len(sentence.split()) <= MOST_WORDS:
                yield source.path, number, f"'{sentence}' is no sentence: say who does what"
