"""What all TOML files share: reading them, and saying in one line what is wrong with them."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

MOST_PROBLEMS = 8
"""How many problems a message names: a file of thousands of lines may have one in each."""

DEEPEST = 20
"""Tables in tables, or lists in lists: no file of ours needs more than a few."""

_TOO_DEEP = f"it has more than {DEEPEST} tables or lists inside each other"
_LONG_KEY = re.compile(rf"""(?m)^[ \t\[]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEEPEST}}}""")
_LONGEST_VALUE = 200
_BARE = re.compile("[A-Za-z0-9_-]+")


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """A TOML file, or a ValueError that says what kind of file could not be read, and why."""
    try:
        text = path.read_bytes().decode("utf-8")
        if _LONG_KEY.search(text):  # reading it would take long, and each dot is a table
            raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}")
        found = tomllib.loads(text)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{kind} {path} cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}") from error
    if _is_deep(found):  # whatever looks at it would give up, too
        raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}")
    return found


def _is_deep(found: dict[str, Any]) -> bool:
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [
            part
            for value in level if isinstance(value, dict | list)
            for part in (value.values() if isinstance(value, dict) else value)
        ]  # fmt: skip
    return bool(level)


def explain(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """One line for people from what pydantic found; the ``model`` describes what is missing."""
    found = []
    problems = error.errors()
    for problem in problems[:MOST_PROBLEMS]:
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        if not place or message.startswith(place):
            found.append(message)
        elif problem["type"] == "missing":
            field = None if model is None else model.model_fields.get(place)
            found.append(f"{place} must be given" + (f": {field.description}" if field is not None else ""))
        else:
            found.append(f"{place} = {shown(problem.get('input'))}: {message}")
    if len(problems) > MOST_PROBLEMS:
        found.append(f"and {len(problems) - MOST_PROBLEMS:,} more problems")
    return "; ".join(found)


def shown(value: Any) -> str:
    """A value as a message shows it: somebody else may have made it very long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def toml_key(name: str) -> str:
    """A name as a TOML key: bare where that is allowed."""
    return name if _BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Plain data as TOML: JSON's texts, numbers and lists are TOML's, but for the delete character."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(str(key))} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if value is None:
        raise ValueError("TOML has no word for nothing: leave the field out")
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")
