"""What all TOML files share: reading them, and saying in one line what is wrong with them."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

MOST_PROBLEMS = 8
"""How many problems a message names: a file of thousands of lines may have one in each."""

DEEPEST = 20
"""Tables in tables, or lists in lists: no file of ours needs more than a few."""

_TOO_DEEP = f"it has more than {DEEPEST} tables or lists inside each other"
_LONG_KEY = re.compile(rf"""(?m)^[ \t\[]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEEPEST}}}""")
_LONGEST_VALUE, _MOST_NAMED = 200, 12
_BARE = re.compile("[A-Za-z0-9_-]+")


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: Its name.
        kind: What messages call it, such as ``"scales file"``.

    Returns:
        Its content as plain data.

    Raises:
        ValueError: It cannot be read, is no TOML, or is nested too deeply; the message says which.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "program.toml"
        >>> _ = path.write_text("quota = 0.29")
        >>> read_toml(path, "program file")
        {'quota': 0.29}
    """
    try:
        text = path.read_bytes().decode("utf-8")
        if _LONG_KEY.search(text):  # reading it would take long, and each dot is a table
            raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}")
        content = tomllib.loads(text)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{kind} {path} cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}") from error
    if _is_deep(content):  # whatever looks at it would give up, too
        raise ValueError(f"{kind} {path} cannot be read: {_TOO_DEEP}")
    return content


def _is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Whether there are so many levels of tables or lists in a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deep(part, levels - 1) for part in parts)


def explain(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Say in one line what pydantic did not accept.

    Args:
        error: What pydantic raised.
        model: The model that was read; its descriptions say what a missing field is.

    Returns:
        The first `MOST_PROBLEMS` problems, and how many more there are.

    Example:
        >>> class Settings(BaseModel):
        ...     quota: float
        >>> try:
        ...     Settings(quota="many")
        ... except ValidationError as error:
        ...     explain(error)
        "quota = 'many': must be a valid number, unable to parse string as a number"
    """
    lines = []
    problems = error.errors()
    for problem in problems[:MOST_PROBLEMS]:
        parts, fields = _place_in(model, problem["loc"])
        place, kind, context = ".".join(parts), problem["type"], problem.get("ctx", {})
        message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        if kind == "extra_forbidden":
            lines.append(f"{place} is no field: {did_you_mean(parts[-1], fields) or _one_of(fields)}")
        elif kind in {"union_tag_not_found", "union_tag_invalid"}:
            name = context["discriminator"].strip("'")
            tags = [tag for tag, _ in fields.items()] or [context.get("expected_tags", "")]
            given = context.get("tag")
            told = f"{place}.{name} " + ("must be given" if given is None else f"= {given!r}")
            lines.append(f"{told}: {did_you_mean(given or '', tags) or _one_of(tags)}")
        elif not place or message.startswith(place):
            lines.append(message)
        elif kind == "missing":
            field = fields.get(parts[-1])
            said = getattr(field, "description", None)
            lines.append(f"{place} must be given" + (f": {said}" if said else ""))
        else:
            lines.append(f"{place} = {shown(problem.get('input'))}: {message}")
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS:,} more problems")
    return "; ".join(lines)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask whether another name was meant.

    Args:
        name: What was given; somebody else may have written it.
        names: What there is.

    Returns:
        A question, or nothing if no name is near.

    Example:
        >>> did_you_mean("relese", ["release", "decide"])
        "did you mean 'release'?"
    """
    by_lower = {one.lower(): one for one in names}
    close = get_close_matches(name[:_LONGEST_VALUE].lower(), by_lower, n=1, cutoff=0.7)
    return f"did you mean {by_lower[close[0]]!r}?" if close else ""


def _one_of(names: Iterable[str]) -> str:
    listed = list(names)
    more = ", …" if len(listed) > _MOST_NAMED else ""
    return f"it may be {', '.join(listed[:_MOST_NAMED])}{more}" if listed else "leave it out"


def _place_in(model: Any, loc: Sequence[int | str]) -> tuple[list[str], dict[str, Any]]:
    """Where a problem is, without the tags of unions, and what there may be in that place."""
    here, parts, fields = model, [], dict[str, Any]()
    for part in loc:
        here, kind = _plain(here)
        fields = {}
        if isinstance(kind, dict):  # models by their tags, of which pydantic names the one
            fields, here = kind, kind.get(str(part))
            if here is not None:
                continue
        elif isinstance(here, type) and issubclass(here, BaseModel):
            fields = dict(here.model_fields)
            field = fields.get(str(part))
            here = None if field is None else field
        else:
            inner = get_args(here)
            here = inner[1] if get_origin(here) is dict else inner[0] if inner else None
        parts.append(str(part))
    kind = _plain(here)[1]
    return (parts or [""]), (kind if isinstance(kind, dict) else fields)


def _plain(here: Any) -> tuple[Any, Any]:
    """A type without what is written around it; of models that differ in a tag, all by their tags."""
    tag = getattr(here, "discriminator", None)
    if isinstance(here, FieldInfo):
        here = here.annotation
    while get_origin(here) is Annotated:
        tag = next(
            (one.discriminator for one in get_args(here)[1:] if getattr(one, "discriminator", None)), tag
        )
        here = get_args(here)[0]
    if get_origin(here) in {Union, UnionType}:
        inner = [one for one in get_args(here) if one is not type(None)]
        if isinstance(tag, str):
            return here, {get_args(one.model_fields[tag].annotation)[0]: one for one in inner}
        if len(inner) == 1:
            return _plain(inner[0])
    return here, None


def _summary_only(schema: dict[str, Any]) -> None:
    if "description" in schema:
        schema["description"] = schema["description"].split("\n\n")[0]


class StrictModel(BaseModel):
    """A file, or a part of one: unknown fields are refused, and nothing can be changed.

    Of a model's docstring, only the first paragraph goes into its JSON schema.

    Example:
        >>> class Settings(StrictModel):
        ...     quota: float
        >>> Settings.model_json_schema()["additionalProperties"]
        False
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_summary_only)


def shown(value: Any) -> str:
    """Show a value in a message; what is very long is cut.

    Args:
        value: Anything; somebody else may have made it.

    Returns:
        Its ``repr``, at most 200 characters and an ellipsis.

    Example:
        >>> shown("text")
        "'text'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def canonical(value: Any) -> str:
    """Write plain data as the one JSON text that stands for it, so that it can be hashed and signed.

    Args:
        value: Texts, finite numbers, booleans, None, and lists or mappings of them.

    Returns:
        JSON with sorted names and no spaces.

    Raises:
        ValueError: JSON cannot say it.

    Example:
        >>> canonical({"b": 1, "a": [0.5]})
        '{"a":[0.5],"b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value!r} cannot be recorded ({error}): give plain, finite data") from error


def toml_key(name: str) -> str:
    """Write a name as a TOML key: bare where that is allowed.

    Args:
        name: Any text.

    Returns:
        The key, quoted if it must be.

    Example:
        >>> toml_key("night_calls"), toml_key("night calls")
        ('night_calls', '"night calls"')
    """
    return name if _BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Write plain data as TOML: JSON's texts, numbers and lists are TOML's, but for the delete character.

    Args:
        value: Texts, finite numbers, booleans, and lists or mappings of them.

    Returns:
        The value on one line.

    Raises:
        ValueError: It holds None or a number that is not finite, which TOML files of ours never have.

    Example:
        >>> toml_value({"B": [0.25, 1]})
        '{ B = [0.25, 1] }'
    """
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(str(key))} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if value is None:
        raise ValueError("TOML has no word for nothing: leave the field out")
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def one_line(text: str) -> str:
    r"""Keep a text on the line that it stands in: a comment, say, may hold anything.

    Args:
        text: Anything; somebody else may have written it.

    Returns:
        The same with a space in place of what is not printable.

    Example:
        >>> one_line("one\ntwo")
        'one two'
    """
    return "".join(c if c.isprintable() else " " for c in text)
