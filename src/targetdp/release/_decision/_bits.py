"""One bit for each person, batch by batch: her side of the cut that the bits before hers have made.

Who comes when is told by a hash of the id as it is published, under a seed that is made of the release's own
id: public, drawn for nothing else, and the same whatever the rows are. So whoever has the release finds the
batches again, and every cut from the bits alone.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Integers, Words, kernel
from targetdp.mechanisms import STEPS, DecisionLaw
from targetdp.release._decision._cuts import CutRule, batch_ends
from targetdp.release._ids import tags_of

Bits = NDArray[np.bool_]
Turns = NDArray[np.uint8]
"""Of each person the number of her batch."""
Rule = CutRule | int
"""How cuts follow from bits; or the one cut, where nothing follows."""
Cuts = tuple[tuple[int, ...], ...]
"""For each decision the cuts of all batches."""

APART = STEPS >> 30
"""How far ids may move a score, in steps: equal scores are on both sides of a cut that falls on them."""


def marks_of(ids: pa.StringArray, release: str) -> tuple[Words, Integers]:
    """What tells when people are asked, and by how little their scores are moved apart.

    Args:
        ids: As they are published.
        release: The release's id.

    Returns:
        For each person a tag, whoever has a lower one is asked no later, and whole steps that her score is
        moved by; both are the same whatever her row is.
    """
    tags = tags_of(ids, hashlib.sha256(f"targetdp turns {release}".encode()).digest()).view(np.uint64)
    return tags[:, 0].copy(), (tags[:, 1] % np.uint64(APART)).astype(np.int64)


def batches_of(tags: Words, people: int) -> Turns:
    """The batches in which those with these tags are asked, of so many people in all."""
    ends = np.array([(end << 64) // people for end in batch_ends(people)[:-1]], dtype=np.uint64)
    batches = np.empty(len(tags), dtype=np.uint8)
    _find_batches(tags, ends, batches)
    return batches


@kernel
def _find_batches(tags: Words, ends: Words, batches: Turns) -> None:
    """How many ends are not above each tag: from the last one, since most people are in the last batches."""
    for i in range(len(tags)):
        batch = len(ends)
        while batch > 0 and tags[i] < ends[batch - 1]:
            batch -= 1
        batches[i] = batch


def turns_of(ids: pa.StringArray, release: str, people: int) -> tuple[Turns, Integers]:
    """In which batch people are asked, and by how little their scores are moved apart.

    Args:
        ids: As they are published.
        release: The release's id.
        people: How many there are in all.

    Returns:
        For each person the number of her batch, and whole steps that her score is moved by; both are the same
        whatever her row is.
    """
    tags, moved = marks_of(ids, release)
    return batches_of(tags, people), moved


@dataclass(frozen=True)
class Decided:
    """The bits of people, a column for each decision, and the cuts."""

    bits: Bits
    cuts: Cuts


def decide(
    batches: Turns, scores: Integers, rules: Sequence[Rule], law: DecisionLaw, words: Words
) -> Decided:
    """Draw everybody's bits.

    Args:
        batches: Of each person the number of her batch.
        scores: A row for each person, a column for each decision, in whole steps of 2⁻⁵⁰; each is of one
            person's row alone.
        rules: One for each decision.
        law: The chances of a wrong answer.
        words: One secret word for each person, drawn whatever her score is.

    Returns:
        Bits and cuts.

    Guarantees: a person's row enters her own bits and nothing else. The cuts that she is held against are
    made of the bits of people in batches before hers.
    """
    bits = np.empty(scores.shape, dtype=np.bool_)

    def ask(places: Integers, cuts: Integers) -> list[int]:
        drawn = words.take(places)
        if law.programs > 1:
            bits[places] = made = law.decide_together(scores[places] <= cuts, drawn)
            return [int(np.count_nonzero(column)) for column in made.T]
        asked, cut = scores[:, 0].take(places), int(cuts[0])
        cells = np.where(asked <= cut, 0, -1) if law.cells is None else law.cells.of_steps(asked, cut)
        one = law.decide(cells, drawn)
        bits[:, 0][places] = one
        return [int(np.count_nonzero(one))]

    return Decided(bits, _walk(batches, rules, ask))


def cuts_of(batches: Turns, bits: Bits, rules: Sequence[Rule]) -> Cuts:
    """The cuts of all batches, from bits that are released: whoever has them finds the same."""
    return _walk(
        batches, rules, lambda places, _: [int(np.count_nonzero(column.take(places))) for column in bits.T]
    )


def cuts_of_people(cuts: Cuts, batches: Turns) -> Integers:
    """The cuts that each person was held against, a column for each decision."""
    return np.array(cuts, dtype=np.int64).T[batches]


def _walk(batches: Turns, rules: Sequence[Rule], ask: Callable[[Integers, Integers], list[int]]) -> Cuts:
    """Ask batch after batch; the cuts."""
    cuts: list[list[int]] = [[] for _ in rules]
    asked: list[int] = []
    yes: list[list[int]] = [[] for _ in rules]
    sizes = np.bincount(batches, minlength=len(batch_ends(len(batches))))
    in_turn = np.argsort(batches, kind="stable")  # of small numbers: by counting them
    for places in np.split(in_turn, np.cumsum(sizes)[:-1]):
        for rule, own, seen in zip(rules, cuts, yes, strict=True):
            own.append(rule.next(own, asked, seen) if isinstance(rule, CutRule) else rule)
        counts = ask(places, np.array([own[-1] for own in cuts]))
        asked.append(len(places))
        for seen, count in zip(yes, counts, strict=True):
            seen.append(count)
    return tuple(tuple(own) for own in cuts)
