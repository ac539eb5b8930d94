"""A room's door: the names that other rooms may use, each imported when somebody first asks for it (PEP 562).

The names stand once, in the `__init__.pyi` beside the door, one line each::

    from targetdp.attacks._linkage import linkage as linkage

Type checkers and editors read that file as it is; `lazy_door` reads it when the first name is asked for.
"""

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
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
