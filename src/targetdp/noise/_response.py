"""Randomized response, drawn exactly: whole numbers decide, and every person takes one word.

A probability is a number of words out of 2⁶⁴. Wrong answers are rounded up, and each next number is taken
from the *rounded* one before it: so no ratio of probabilities is above e^ε, which rounding each by itself
would not keep (`docs/noise.md`, section 6).
"""

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Integers, Words, check
from targetdp.noise._random_words import RowWords, WordSource

ALL_WORDS = 1 << 64
"""How many words there are: the whole of all chances."""
SMALLEST_LEVEL, LARGEST_LEVEL = 1e-4, 100.0
"""Of ε: below, a table would have millions of cells; above, no word is left to tell the difference."""

_DIGITS = Context(prec=60)
_SHIFT = 128
"""Binary digits of e^−ε."""
_AT_ONCE = 1 << 16


def exp_between(exponent: float) -> tuple[Fraction, Fraction]:
    """Two fractions with e^exponent between them: `decimal` rounds correctly, and each is one step off.

    Args:
        exponent: A float, which is taken exactly.

    Returns:
        A lower and an upper bound, 10⁻⁵⁸ apart (relative).

    Example:
        >>> low, high = exp_between(1.0)
        >>> low < high, float(low)
        (True, 2.718281828459045)
    """
    near = Decimal(exponent).exp(_DIGITS)
    return Fraction(near.next_minus(_DIGITS)), Fraction(near.next_plus(_DIGITS))


@lru_cache(maxsize=8)
def error_table(level: float, cells: int, answers: int = 2) -> tuple[int, ...]:
    """How many of 2⁶⁴ words make each wrong answer in the cells 0, 1, … of one side of a cut.

    q₀ = ⌈2⁶⁴/(answers − 1 + e^ε)⌉, and q_{k+1} = ⌈E·q_k⌉ with E a little above e^−ε. The table ends where it
    falls no more.

    Args:
        level: ε, from 0.0001 to 100.
        cells: The most cells that are wanted.
        answers: How many answers there are; only with two is there a second cell.

    Returns:
        The numbers, for at least one cell; those beyond the last are the last.

    Raises:
        ValueError: An argument is outside its range.

    Guarantees: for cells next to each other, and for the first ones of both sides, every answer's
    probabilities are within a factor of e^ε.

    Example:
        >>> [round(words / 2**64, 4) for words in error_table(4.0, 2)]
        [0.018, 0.0003]
    """
    level = check.number("level", level, at_least=SMALLEST_LEVEL, at_most=LARGEST_LEVEL)
    answers = check.integer("answers", answers, at_least=2, at_most=2**16)
    cells = check.integer("cells", cells, at_least=1)
    if cells > 1 and answers > 2:
        raise ValueError(f"cells = {cells} and answers = {answers}: only two answers have cells")
    table = [ceil(ALL_WORDS / (answers - 1 + exp_between(level)[0]))]
    fall = ceil(exp_between(-level)[1] * (1 << _SHIFT))
    while len(table) < cells:
        words = -(-table[-1] * fall >> _SHIFT)
        if words == table[-1]:
            break
        table.append(words)
    return tuple(table)


def one_word_each(people: int, words: WordSource | Words) -> Words:
    """One word for each person, whatever is asked of her.

    Args:
        people: How many there are.
        words: Where random bits come from; or the words themselves, drawn before.

    Returns:
        As many words.

    Raises:
        ValueError: The words belong to another number of people.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> one_word_each(3, PublicWords(1)).shape
        (3,)
    """
    drawn = np.empty(people, dtype=np.uint64)
    if not isinstance(words, RowWords | np.ndarray):
        words.fill(drawn)
        return drawn
    if len(words) != people:
        raise ValueError(f"words for {len(words)} rows were given for {people}: give one tag for each row")
    if isinstance(words, np.ndarray):
        return words
    for start in range(0, people, _AT_ONCE):
        stop = min(start + _AT_ONCE, people)
        drawn[start:stop] = words.of_rows(start, stop, 2)[:, 0]  # a block has two
    return drawn


def respond_by_cell(cells: Integers, table: tuple[int, ...], words: WordSource | Words) -> NDArray[np.bool_]:
    """Answer yes or no for people in cells of a score: yes from 0 up, no from −1 down.

    Args:
        cells: The cell of each person; −1, −2, … mirror 0, 1, ….
        table: As `error_table` makes it for two answers.
        words: Where random bits come from.

    Returns:
        A boolean for each person: which side she is on, or, for one word in so many as the table says, the
        other.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> respond_by_cell(np.array([0, -1]), error_table(40.0, 1), PublicWords(1))
        array([ True, False])
    """
    drawn = one_word_each(len(cells), words)
    yes = cells >= 0
    if len(table) == 1:  # the same for everybody
        return yes ^ (drawn < np.uint64(table[0]))
    place = np.minimum(np.where(yes, cells, -1 - cells), len(table) - 1)
    return yes ^ (drawn < np.array(table, dtype=np.uint64)[place])


def respond(truth: Integers, wrong: int, answers: int, words: WordSource | Words) -> Integers:
    """Answer one of a power of two of answers: the true one, or each wrong one for ``wrong`` of 2⁶⁴ words.

    Args:
        truth: The true answer of each person, from 0 to below ``answers``.
        wrong: The first number of `error_table`.
        answers: How many answers there are, a power of two.
        words: Where random bits come from.

    Returns:
        As many answers. Wrong ones are uniform: each has exactly as many words.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> respond(np.array([3, 0]), error_table(40.0, 1, 4)[0], 4, PublicWords(1))
        array([3, 0])
    """
    which = one_word_each(len(truth), words) // np.uint64(wrong)
    # The first `answers − 1` stretches of words are one for each other answer; what is left is the true one.
    change = np.where(which < answers - 1, which + np.uint64(1), np.uint64(0)).astype(np.int64)
    return truth ^ change
