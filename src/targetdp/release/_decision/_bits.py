"""One bit for each person, batch by batch: her side of the cut that the bits before hers have made.

Who comes when is a permutation of the ids as they are published, under a seed that is public and was fixed
before a row was read. So whoever has the release finds the batches again, and every cut from the bits alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from targetdp._core import Integers, Words
from targetdp.mechanisms import STEPS, DecisionLaw
from targetdp.noise import answer_by_cell
from targetdp.release._decision._cuts import CutRule, batches
from targetdp.release._ids import tags_of

Bits = np.ndarray[tuple[int], np.dtype[np.bool_]]
SEED_BYTES = 32
_APART = STEPS >> 30
"""How far ids may move a score, in steps: equal scores are on both sides of a cut that falls on them."""


@dataclass(frozen=True)
class Turns:
    """When people are asked, and by how little their scores are moved apart: by a public seed and their ids.

    Args:
        order: Places of people, the first to be asked first.
        moved: For each person whole steps that her score is moved by; they are the same whatever her row is.
    """

    order: Integers
    moved: Integers

    @classmethod
    def of(cls, ids: pa.StringArray, seed: bytes) -> "Turns":
        """Those of people by their ids as they are published.

        Args:
            ids: In the order of the release; all are different.
            seed: 32 bytes that are public, and serve for nothing else.
        """
        tags = tags_of(ids, seed).view(np.uint64)
        # Tags of two people are the same once in 2⁶⁴: then the order of their ids counts.
        return cls(np.argsort(tags[:, 0], kind="stable"), (tags[:, 1] % np.uint64(_APART)).astype(np.int64))


@dataclass(frozen=True)
class Decided:
    """The bits of all people, in the order of their ids, and the cut of each batch."""

    bits: Bits
    cuts: tuple[int, ...]


def decide(scores: Integers, turns: Turns, rule: CutRule | int, law: DecisionLaw, words: Words) -> Decided:
    """Draw everybody's bit.

    Args:
        scores: In whole steps of 2⁻⁵⁰; each is of one row alone.
        turns: When they are asked.
        rule: How cuts follow from bits; or the one cut, where nothing follows.
        law: The chances of a wrong bit.
        words: One secret word for each person, drawn whatever her score is.

    Returns:
        Bits and cuts.

    Guarantees: a person's row enters her own bit and nothing else. The cut that she is held against is made
    of the bits of people who were asked before her.
    """
    moved = scores + turns.moved
    bits = np.empty(len(scores), dtype=np.bool_)

    def ask(places: Integers, cut: int) -> Bits:
        cells = np.asarray(
            np.where(moved[places] <= cut, 0, -1)
            if law.cells is None
            else law.cells.of_steps(moved[places], cut)
        )
        bits[places] = answer_by_cell(cells, law.table, words[places])
        return bits[places]

    return Decided(bits, _walk(turns, rule, ask))


def cuts_of(bits: Bits, turns: Turns, rule: CutRule | int) -> tuple[int, ...]:
    """The cut of each batch, from bits that were released: whoever has them finds the same."""
    return _walk(turns, rule, lambda places, _: bits[places])


def _walk(turns: Turns, rule: CutRule | int, ask: Callable[[Integers, int], Bits]) -> tuple[int, ...]:
    """Ask batch after batch; the cuts."""
    cuts: list[int] = []
    people: list[int] = []
    yes: list[int] = []
    for batch in batches(len(turns.order)):
        cuts.append(rule.next(cuts, people, yes) if isinstance(rule, CutRule) else rule)
        found = ask(turns.order[batch.start : batch.stop], cuts[-1])
        people.append(len(batch))
        yes.append(int(np.count_nonzero(found)))
    return tuple(cuts)
