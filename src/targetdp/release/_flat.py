"""Refusing files that take minutes to read, before they are read: somebody else wrote them."""

import re

_MOST_DOTS, _MOST_DOTS_IN_ALL, _MOST_HEADERS = 16, 100_000, 100
"""In a line and in all lines, apart from their numbers: each may nest a name, and these take long to read."""
_OF_NUMBERS = "0123456789.,+-_eE[] \t\r"

_LONG, _LONG_LITERAL = '"' * 3, "'" * 3
_TEXTS = re.compile(rf"""{_LONG}|{_LONG_LITERAL}|"(?:\\.|[^"\\])*"|'[^']*'|#.*""")
"""Texts on one line, what begins one on several, and comments, from left to right."""
_NUMBERS = re.compile(r"=[ \t]*\[[0-9.,+_eE \t-]*\]")
"""A list of numbers, such as a curve's knots: it names nothing, and so nests nothing."""


def must_be_flat(text: str) -> None:
    """Refuse what takes minutes to read, before it is read: a request is plain fields and a few tables."""
    headers = dots_in_all = 0
    for line in text.split("\n"):  # as TOML does; other ends of lines may be part of a name
        if line.lstrip().startswith("#"):
            continue
        tokens = _TEXTS.findall(
            line
        )  # dots in a quoted name nest nothing; texts over several lines hide some
        if any(token in {_LONG, _LONG_LITERAL} for token in tokens):
            raise ValueError("it has a text of several lines: a request has plain fields and a few tables")
        line = _NUMBERS.sub("=", _TEXTS.sub("", line))  # noqa: PLW2901
        header = line.lstrip().startswith("[")
        headers += header
        name, _, value = line.rpartition("=")
        # What follows the last = and holds nothing but numbers names nothing, and so nests nothing.
        only_numbers = not header and not value.strip(_OF_NUMBERS)
        dots = (name if only_numbers else line).count(".")
        dots_in_all += dots
        if dots > _MOST_DOTS or dots_in_all > _MOST_DOTS_IN_ALL or headers > _MOST_HEADERS:
            raise ValueError("it is nested too deeply: a request has plain fields and a few tables")
