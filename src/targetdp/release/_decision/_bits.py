"""One bit for each person, batch by batch: her side of the cut that the bits before hers have made.

Who comes when is a permutation of the ids as they are published, under a seed that is made of the release's
own id: public, drawn for nothing else, and the same whatever the rows are. So whoever has the release finds
the batches again, and every cut from the bits alone.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from targetdp._core import Integers, Words
from targetdp.mechanisms import STEPS, DecisionLaw
from targetdp.noise import WordSource
from targetdp.release._decision._cuts import CutRule, batches
from targetdp.release._ids import tags_of

Bits = NDArray[np.bool_]
Rule = CutRule | int
"""How cuts follow from bits; or the one cut, where nothing follows."""
Cuts = tuple[tuple[int, ...], ...]
"""For each decision the cuts of all batches."""

_APART = STEPS >> 30
"""How far ids may move a score, in steps: equal scores are on both sides of a cut that falls on them."""


def turns_of(ids: pa.StringArray, release: str) -> tuple[Words, Integers]:
    """When people are asked, and by how little their scores are moved apart.

    Args:
        ids: As they are published.
        release: The release's id.

    Returns:
        For each person a tag, by which they are sorted, and whole steps that her score is moved by; both are
        the same whatever her row is.
    """
    tags = tags_of(ids, hashlib.sha256(f"targetdp turns {release}".encode()).digest()).view(np.uint64)
    return tags[:, 0].copy(), (tags[:, 1] % np.uint64(_APART)).astype(np.int64)


@dataclass(frozen=True)
class Decided:
    """The bits of all people in the order of their turns, a column for each decision, and the cuts."""

    bits: Bits
    cuts: Cuts


def decide(scores: Integers, rules: Sequence[Rule], law: DecisionLaw, words: WordSource) -> Decided:
    """Draw everybody's bits.

    Args:
        scores: Of people in the order of their turns, a column for each decision, in whole steps of 2⁻⁵⁰;
            each is of one row alone.
        rules: One for each decision.
        law: The chances of a wrong answer.
        words: Secret words, of which each person takes one whatever her score is.

    Returns:
        Bits and cuts.

    Guarantees: a person's row enters her own bits and nothing else. The cuts that she is held against are
    made of the bits of people who were asked before her.
    """
    bits = np.empty(scores.shape, dtype=np.bool_)

    def ask(batch: slice, cuts: Integers) -> Bits:
        asked = scores[batch]
        if law.programs > 1:
            bits[batch] = law.decide_together(asked <= cuts, words)
        elif law.cells is None:
            bits[batch, 0] = law.decide(np.where(asked[:, 0] <= cuts[0], 0, -1), words)
        else:
            bits[batch, 0] = law.decide(law.cells.of_steps(asked[:, 0], int(cuts[0])), words)
        return bits[batch]

    return Decided(bits, _walk(len(scores), rules, ask))


def cuts_of(bits: Bits, rules: Sequence[Rule]) -> Cuts:
    """The cuts of all batches, from bits in the order of turns: whoever has a release finds the same."""
    return _walk(len(bits), rules, lambda batch, _: bits[batch])


def cuts_of_people(cuts: Cuts, people: int) -> Integers:
    """The cuts that each person was held against, in the order of turns, a column for each decision."""
    lengths = [len(batch) for batch in batches(people)]
    return np.repeat(np.array(cuts, dtype=np.int64).T, lengths, axis=0)


def _walk(people: int, rules: Sequence[Rule], ask: Callable[[slice, Integers], Bits]) -> Cuts:
    """Ask batch after batch; the cuts."""
    cuts: list[list[int]] = [[] for _ in rules]
    asked: list[int] = []
    yes: list[list[int]] = [[] for _ in rules]
    for batch in batches(people):
        for rule, own, seen in zip(rules, cuts, yes, strict=True):
            own.append(rule.next(own, asked, seen) if isinstance(rule, CutRule) else rule)
        found = ask(slice(batch.start, batch.stop), np.array([own[-1] for own in cuts]))
        asked.append(len(batch))
        for seen, count in zip(yes, np.count_nonzero(found, axis=0).tolist(), strict=True):
            seen.append(count)
    return tuple(tuple(own) for own in cuts)
