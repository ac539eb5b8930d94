"""How people write numbers, phone numbers and ids: what is read as a number, and what is spelled oddly.

Nothing here returns a person's value: sentences hold counts only.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA",
    "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""Cells that the reader of a CSV takes for missing numbers: Arrow's own list."""

_REST = r"(?:e[+-]?[0-9]+)?|inf|infinity|nan)[ \t]*$"
_SPACES = r"[ \x{A0}\x{202F}\x{2009}]"
_DIGITS_AND_SIGNS = r"^[\s+-]*[0-9][0-9\s.,'’_\x{A0}\x{202F}]*$"
_PHONE = r"^(?:(?:\+|00)?[1-9][0-9]{6,14}|0[1-9][0-9]{6,13})$"
_SEPARATORS = r"[ .\-]"
_MOST = 0.9
"""The share of ids that must look like phone numbers."""


@dataclass(frozen=True)
class Numerals:
    """How numbers are spelled in text.

    Args:
        decimal: What stands before a fraction.
        thousands: What parts groups of three digits, if anything; a space is any kind of space.

    Example:
        >>> read_numbers(pa.array(["1 234,5"]), Numerals(",", " "))[0].to_pylist()
        [1234.5]
    """

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def mark(self) -> str:
        """A pattern of what parts thousands."""
        return {" ": _SPACES, "'": "['’]", ".": r"\.", ",": ",", "": ""}[self.thousands]

    @cached_property
    def pattern(self) -> str:
        """The pattern of a number; grouped ones begin with no zero, so that 0.125 is never one."""
        point = r"\." if self.decimal == "." else ","
        grouped = rf"[1-9][0-9]{{0,2}}(?:{self.mark}[0-9]{{3}})+(?:{point}[0-9]*)?|" if self.thousands else ""
        plain = rf"(?:[0-9]+{point}?[0-9]*|{point}[0-9]+)"
        return rf"(?i)^[ \t]*[+-]?(?:(?:{grouped}{plain}){_REST}"


PLAIN_NUMERALS = Numerals()


def read_numbers(
    texts: pa.StringArray, numerals: Numerals = PLAIN_NUMERALS
) -> tuple[pa.DoubleArray, pa.BooleanArray]:
    """Text as numbers, as the reader of a CSV reads them.

    Args:
        texts: Any text.
        numerals: How numbers are spelled.

    Returns:
        Numbers, missing where a cell is a gap or no number; and which cells are no numbers.

    Example:
        >>> numbers, wrong = read_numbers(pa.array(["3", "N/A", "3,5"]))
        >>> numbers.to_pylist(), wrong.to_pylist()
        ([3.0, None, None], [False, False, True])
    """
    nothing = pa.scalar(None, pa.string())
    present = pc.if_else(pc.is_in(texts, value_set=pa.array(GAPS)), nothing, texts)
    right = pc.fill_null(pc.match_substring_regex(present, numerals.pattern), False)
    wrong = pc.and_not(pc.is_valid(present), right)
    return _plain(pc.if_else(right, present, nothing), numerals).cast(pa.float64()), wrong


def _plain(numbers: pa.StringArray, numerals: Numerals) -> pa.StringArray:
    """Texts that are numbers, as everybody spells them."""
    plain = pc.utf8_trim(numbers, " \t")
    if numerals.thousands:
        plain = pc.replace_substring_regex(plain, numerals.mark, "")
    return plain if numerals.decimal == "." else pc.replace_substring(plain, numerals.decimal, ".")


def plainly_spelled(texts: pa.StringArray, numerals: Numerals) -> pa.StringArray:
    """The same cells as a plain CSV has them: what is no number here must be none there.

    Args:
        texts: Cells of a column of numbers, some of which are none.
        numerals: How its numbers are spelled.

    Returns:
        Numbers in the plain spelling; words as they are, in quotes where they would be read as numbers.

    Example:
        >>> plainly_spelled(pa.array(["3,5", "3.5", "unknown"]), Numerals(",")).to_pylist()
        ['3.5', "'3.5'", 'unknown']
    """
    numbers, wrong = read_numbers(texts, numerals)
    mistaken = pc.and_(wrong, pc.invert(read_numbers(texts)[1]))
    quoted = pc.binary_join_element_wise("'", texts, "'", "")
    return pc.if_else(pc.is_valid(numbers), _plain(texts, numerals), pc.if_else(mistaken, quoted, texts))


def with_numbers(
    batch: pa.RecordBatch, names: Collection[str], numerals: Numerals = PLAIN_NUMERALS
) -> pa.RecordBatch:
    """A batch of text with numbers in the place of those columns whose cells are all numbers or gaps.

    Args:
        batch: Columns of text.
        names: Columns that should be numbers.
        numerals: How numbers are spelled.

    Returns:
        The batch, in which columns with a cell that is no number are text still.

    Example:
        >>> batch = pa.record_batch({"calls": ["3", ""], "texts": ["?", "1"]})
        >>> with_numbers(batch, ["calls", "texts"]).schema.types
        [DataType(double), DataType(string)]
    """
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        numbers, wrong = read_numbers(column, numerals) if name in names else (column, None)
        columns[name] = column if wrong is None or wrong.true_count else numbers
    return pa.record_batch(columns)


def words_as_gaps(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """A batch of a CSV with gaps in the place of cells that are no numbers, where they should be.

    Args:
        batch: Columns of text or numbers.
        names: Columns that should be numbers.

    Returns:
        The batch, these columns as numbers.

    Example:
        >>> words_as_gaps(pa.record_batch({"calls": ["3", "?"]}), ["calls"]).column("calls").to_pylist()
        [3.0, None]
    """
    columns = {
        name: read_numbers(column)[0] if name in names and pa.types.is_string(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.record_batch(columns)


def describe_words(texts: pa.StringArray) -> str:
    """Say of what sort cells are that are no numbers, without showing one.

    Args:
        texts: The cells that `read_numbers` calls wrong.

    Returns:
        Counts of commas, of other signs between digits, and of other words.

    Example:
        >>> describe_words(pa.array(["3,5", "1 234", "unknown", "?"]))
        '4 cells that are no numbers: 1 with a comma, 1 with spaces or signs between digits, 2 with words'
    """
    signs = texts.filter(pc.match_substring_regex(texts, _DIGITS_AND_SIGNS))
    commas = _count(signs, ",")
    counts = {
        "with a comma": commas,
        "with spaces or signs between digits": len(signs) - commas,
        "with words": len(texts) - len(signs),
    }
    sorts = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    cells = "1 cell that is no number" if len(texts) == 1 else f"{len(texts):,} cells that are no numbers"
    return f"{cells}: {sorts}"


def looks_like_phone_numbers(texts: pa.StringArray) -> bool:
    """Whether ids look like phone numbers, by which anybody can find the person.

    The rule: without spaces, dots and hyphens, nine in ten are 7 to 15 digits that do not begin with 0, or
    such digits behind ``+``, ``00`` or a single 0; at least half are different; and most begin with ``+``, or
    they are no counter, which has the same step between more than half of its neighbors in order. Most
    numbers of a counter that is padded with zeros (``0000123``) fail by their zeros. Fewer than three
    different ones tell nothing.

    Args:
        texts: Ids as text.

    Returns:
        Whether they do.

    Does not guarantee: to tell phone numbers from other long numbers, such as those of identity cards.

    Example:
        >>> looks_like_phone_numbers(pa.array(["+228 90 12 34 56", "+228 91 87 65 43", "+228 70 55 44 33"]))
        True
        >>> looks_like_phone_numbers(pa.array([f"{i:08d}" for i in range(1000)]))
        False
    """
    plain = _without_separators(texts)
    phones = plain.filter(pc.match_substring_regex(plain, _PHONE))
    if len(phones) < _MOST * len(plain):
        return False
    numbers = np.unique(pc.utf8_ltrim(phones, "+").cast(pa.int64()).to_numpy())
    if len(numbers) < max(3, len(plain) / 2):
        return False
    if pc.sum(pc.starts_with(plain, "+")).as_py() > len(plain) / 2:
        return True
    _, often = np.unique(np.diff(numbers), return_counts=True)
    return bool(often.max() <= (len(numbers) - 1) / 2)


def spelling_problems(texts: pa.StringArray) -> tuple[str, ...]:
    """Say what is odd about the spelling of ids: somebody may be there twice, or match no other table.

    Args:
        texts: Ids as text.

    Returns:
        Sentences with counts, and no id in them; none if all is well.

    Example:
        >>> spelling_problems(pa.array(["ann", "Ann", "bob"]))
        ('1 id differs from another one only in capital letters: spell each person in one way',)
    """
    texts = pc.drop_null(texts)
    trimmed = pc.utf8_trim_whitespace(texts)
    said = []
    if spaced := pc.sum(pc.not_equal(texts, trimmed)).as_py():
        begin = "ids begin or end" if spaced > 1 else "id begins or ends"
        said.append(f"{spaced:,} {begin} with a space: trim all ids, or the same id elsewhere is another one")
    if looks_like_phone_numbers(trimmed):
        said += _phone_spellings(trimmed)
    if alike := _different(trimmed) - _different(pc.utf8_lower(trimmed)):
        said.append(f"{_ids_differ(alike)} only in capital letters: spell each person in one way")
    return tuple(said)


def _phone_spellings(texts: pa.StringArray) -> list[str]:
    """Several forms of phone numbers, and one number in several of them."""
    plain = _without_separators(texts)
    forms = {
        "begin with +": r"^\+", "begin with 00": "^00", "begin with a single 0": "^0[1-9]",
        "begin with another digit": "^[1-9]",
    }  # fmt: skip
    used = [f"{count:,} {what}" for what, form in forms.items() if (count := _count(plain, form))]
    said = []
    if len(used) > 1:
        said.append(f"phone numbers have {len(used)} forms ({', '.join(used)}): write all of them in one")
    parted = _count(texts, _SEPARATORS)
    if 0 < parted < len(texts):
        said.append(
            f"{parted:,} of {len(texts):,} phone numbers are written with spaces, dots or hyphens: write all "
            "of them in one form"
        )
    if twice := _different(texts) - _different(pc.replace_substring_regex(plain, r"^(?:\+|00)", "")):
        said.append(
            f"{_ids_differ(twice)} only in the form of the phone number: keep one row for each person"
        )
    return said


def _without_separators(texts: pa.StringArray) -> pa.StringArray:
    """Ids that are there, without spaces, dots and hyphens."""
    plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(pc.drop_null(texts)), _SEPARATORS, "")
    return plain.filter(pc.not_equal(plain, ""))


def _ids_differ(count: int) -> str:
    return f"{count:,} ids differ from others" if count > 1 else "1 id differs from another one"


def _different(texts: pa.StringArray) -> int:
    return int(pc.count_distinct(texts).as_py())


def _count(texts: pa.StringArray, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0)
