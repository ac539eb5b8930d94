"""Things that declare themselves: a room finds them by importing its own files, and keeps no list in step."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


@cache
def import_all(room: str, pattern: str | None = None) -> None:
    """Import every file of a room, so that whatever declares itself there has done so.

    Args:
        room: The room's name, such as ``"targetdp.mechanisms"``.
        pattern: A regular expression: only files are imported that have a line that matches it.

    Example:
        >>> import_all("targetdp.accounting")
    """
    for path in _files(room):
        if pattern is None or re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE):
            import_module(f"{room}.{path.stem}")


NAMED = r'^@named\("([^"]+)"'
"""How a file declares something by a name."""


def declared(room: str, pattern: str = NAMED) -> tuple[str, ...]:
    """Names that the files of a room declare, sorted; read off their text, so that nothing slow is imported.

    Args:
        room: The room's name, such as ``"targetdp.mechanisms"``.
        pattern: A regular expression with one group, the name, that is looked for line by line: by default
            ``@named("…"``.

    Returns:
        Every match of the group.

    Example:
        >>> declared("targetdp.mechanisms")[0]
        'gaussian'
    """
    texts = (path.read_text(encoding="utf-8") for path in _files(room))
    return tuple(sorted(name for text in texts for name in re.findall(pattern, text, re.MULTILINE)))


def _files(room: str) -> Iterator[Path]:
    spec = find_spec(room)
    folders = () if spec is None else spec.submodule_search_locations or ()
    return (path for folder in folders for path in sorted(Path(folder).glob("_[!_]*.py")))
