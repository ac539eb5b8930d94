"""Rooms: the door of each, and the things in it that declare themselves.

A door holds the names that other rooms may use, each imported when somebody first asks for it (PEP 562). The
names stand once, in the `__init__.pyi` beside the door, one line each::

    from targetdp.attacks._linkage import linkage as linkage

Type checkers and editors read that file as it is; `lazy_door` reads it when the first name is asked for.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (\S+) import (\w+) as (\w+)$", re.MULTILINE)


def lazy_door(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a room's `__init__` takes as its own ``__getattr__`` and ``__dir__``.

    Args:
        room: The room's ``__name__``.
        file: The ``__file__`` of its `__init__.py`; the names stand in the `.pyi` of the same name.

    Returns:
        A function that imports a name from its home on first use, and one that lists all names.

    Example:
        >>> import targetdp.accounting
        >>> "compose" in dir(targetdp.accounting)
        True
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        text = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
        return {public: (module, name) for module, name, public in _LINE.findall(text)}

    def __getattr__(name: str) -> Any:  # noqa: N807 (PEP 562's name for it)
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, attribute = homes()[name]
        value = (
            import_module(f"{room}.{attribute}")
            if module == room
            else getattr(import_module(module), attribute)
        )
        setattr(sys.modules[room], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted(homes())

    return __getattr__, __dir__


# Things that declare themselves: a room finds them by importing its own files, and keeps no list in step.


@cache
def import_all(room: str, pattern: str | None = None) -> None:
    """Import every file of a room and of the rooms in it, so that whatever declares itself there has done so.

    Args:
        room: The room's name, such as ``"targetdp.mechanisms"``.
        pattern: A regular expression: only files are imported that have a line that matches it.

    Example:
        >>> import_all("targetdp.accounting")
    """
    for module, path in _files(room):
        if pattern is None or re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE):
            import_module(module)


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
    texts = (path.read_text(encoding="utf-8") for _, path in _files(room))
    return tuple(sorted(name for text in texts for name in re.findall(pattern, text, re.MULTILINE)))


def _files(room: str) -> Iterator[tuple[str, Path]]:
    """Its files and those of the rooms in it, each with the name of its module."""
    spec = find_spec(room)
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("_[!_]*.py")):
            yield ".".join([room, *path.relative_to(folder).with_suffix("").parts]), path
