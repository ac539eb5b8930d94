"""What tests under faults share: how much of each fault is injected, and a tally of what came of it.

`make test` runs a sample; with ``TARGETDP_FAULTS=whole`` (`make faults`) the same tests run whole, and
`tests/support/faults_tally.py` writes their tally into docs/reliability.md.
"""

import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

WHOLE = os.environ.get("TARGETDP_FAULTS") == "whole"
TALLY = "TARGETDP_FAULTS_TALLY"
"""Names the file that every process of a whole run adds its lines to."""

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """What is injected into what, what must hold, and how often: in a sample, and at least in a whole run."""

    injected: str
    into: str
    must_hold: str
    sample: int
    whole: int


_NEXT = "the next run puts all right"
_WHOLE = (
    "under the output's name there is nothing or a whole release that verifies; what could be read counts"
)
_SAME = "refused, or the same answer as before the damage"

FAULTS = {
    "random kills: privatize": Fault(
        "SIGKILL at a random moment", "`privatize --force`", f"{_WHOLE}; {_NEXT}", 20, 80
    ),
    "random kills: ledger": Fault(
        "SIGKILL at a random moment", "two processes that write to one ledger",
        "it opens and verifies; whatever a process was told is on record", 50, 100,
    ),
    "random kills: ten at a desk": Fault(
        "SIGKILL at a random call", "some of ten `privatize` at one desk",
        "the others end well; the limit holds; the same commands finish what was begun", 3, 30,
    ),
    "random kills: tradeoff": Fault(
        "SIGKILL at a random moment", "`tradeoff`, again and again in one folder",
        "it ends with the bytes of an undisturbed run", 4, 60,
    ),
    "kills at calls: privatize": Fault(
        "SIGKILL at every call that touches the disk",
        "`privatize`: new, replacing, a directory",
        f"{_WHOLE}; an older release stays or comes back; the same command finishes what noise was drawn "
        "for, with the same noise and one charge, and frees the rest", 95, 280,
    ),
    "kills at calls: init": Fault(
        "SIGKILL at every call that touches the disk", "`init`",
        "there is no desk, or a whole one; the next run makes one, or says that there is one", 30, 38,
    ),
    "kills at calls: policy": Fault(
        "SIGKILL at every call that touches the disk", "the first `privatize` under a wider limit",
        "the new limit is on record or it is not, for everybody; what fits it is released, and no more",
        25, 80,
    ),
    "kills at calls: ledger": Fault(
        "SIGKILL at every call that touches the disk", "`ledger erase`, `ledger resume`, `ledger withdraw`",
        "the ledger verifies; what was released stays charged, whoever comes back; whom the next run erases "
        "is in no list", 55, 60,
    ),
    "kills at calls: keys": Fault(
        "SIGKILL at every call that touches the disk", "`key rotate`, `key replace`",
        "the desk has one key that its ledger knows, the old or the new one; it releases, and verifies",
        30, 40,
    ),
    "kills at calls: tradeoff": Fault(
        "SIGKILL at every call that touches the disk", "`tradeoff`",
        "it ends with the bytes of an undisturbed run", 14, 14,
    ),
    "spark": Fault(
        "SIGKILL of a Python worker", "a Spark task, after it has written its rows",
        "the task runs again, nobody has two noises; or nothing is published, and it stays charged", 2, 6,
    ),
    "errors at calls: privatize": Fault(
        "`ENOSPC` or `EIO` at every call that touches the disk, once or from then on", "`privatize --force`",
        f"exit code 3 or 4, no traceback; {_WHOLE}; {_NEXT}", 6, 100,
    ),
    "small files: privatize": Fault(
        "the kernel refuses to make any file longer than so many bytes", "`privatize --force`",
        f"exit code 3 or 4, no traceback; {_WHOLE}; {_NEXT}", 4, 40,
    ),
    "errors: ledger": Fault(
        "`ENOSPC` at every call, or a limit on the length of files", "`ledger resume`",
        "the entry is on record, or the ledger is as it was; it verifies", 5, 25,
    ),
    "errors: tradeoff": Fault(
        "`ENOSPC` at every call, or a limit on the length of files", "`tradeoff`",
        "an error that can be read; started again, the bytes of an undisturbed run", 6, 40,
    ),
    "small disk": Fault(
        "a disk of two megabytes that is full", "`privatize` to it (where one can be mounted)",
        f"exit code 3 or 4, no traceback; {_WHOLE}", 20, 20,
    ),
    "read-only": Fault(
        "a folder that may not be written to",
        "`init`, `privatize`, `ledger`, `status`, `verify`, `tradeoff`",
        "whoever writes says so, and nothing changes; whoever only reads works", 12, 12,
    ),
    "mutations: parquet input": Fault(
        "bits, bytes and ends of a Parquet table", "`privatize`",
        "refused, or the release of what the bytes now say: nothing notices a changed value", 6, 160,
    ),
    "mutations: csv input": Fault(
        "bits, bytes and ends of a CSV table", "`privatize`",
        "refused, or the release of what the bytes now say: nothing notices a changed value", 6, 160,
    ),
    "mutations: released table": Fault(
        "bits, bytes and ends of a released table", "`verify`", "never “holds”", 6, 120
    ),
    "mutations: certificate": Fault(
        "bits, bytes and ends of a certificate, or of its page", "`verify`", "never “holds”", 10, 160
    ),
    "mutations: ledger": Fault(
        "bits, bytes and ends of a ledger, or of its mark", "`ledger show`, `ledger verify`, a reservation",
        f"{_SAME}; nothing that was spent is forgotten", 12, 220,
    ),
    "mutations: people": Fault(
        "bits, bytes and ends of the list of who was in a release", "the next `privatize`, `ledger verify`",
        "refused, unless the release was freed", 6, 60,
    ),
    "mutations: desk": Fault(
        "bits, bytes and ends of `desk.json`, policy, scales and keys", "the next `privatize`",
        "refused and nothing charged, or a release under what policy and scales now say", 15, 150,
    ),
    "mutations: draws": Fault(
        "bits, bytes and ends of the draws of a killed run", "the same command again",
        "finished, refused, or charged anew; what noise was drawn for is never free", 8, 80,
    ),
    "mutations: journal": Fault(
        "bits, bytes and ends of the journal of a killed run", "the next `privatize`",
        "read as before, or refused and nothing thrown away; with the journal back, all is put right", 3, 60,
    ),
    "mutations: sweep": Fault(
        "bits, bytes and ends of any file of a sweep", "`tradeoff`, started again",
        "refused, or the bytes of an undisturbed run", 4, 120,
    ),
    "mutations: figures": Fault(
        "bits, bytes and ends of `run.json` and `summary.parquet`", "`tradeoff recommend`", _SAME, 8, 120
    ),
    "clock": Fault(
        "the clock moved back or forward: a second, a day, decades, also in the middle",
        "three releases of one desk",
        "entries keep their order, spending adds up, the limit holds, all verify", 2, 6,
    ),
    "crowd": Fault(
        "two and ten processes at once", "one desk, with room for some of them",
        "exactly so many publish; the others are refused with the numbers", 2, 10,
    ),
}  # fmt: skip
"""Every fault, by the name that tests count it under."""


def times(name: str) -> int:
    """How often a test injects a fault in this run."""
    return FAULTS[name].whole if WHOLE else FAULTS[name].sample


def some(items: Sequence[T], sample: int) -> list[T]:
    """All of them in a whole run; otherwise a few, the first and the last among them."""
    if WHOLE or len(items) <= sample:
        return list(items)
    last = len(items) - 1
    return [items[round(i * last / (sample - 1))] for i in range(sample)]


def count(name: str, outcome: str, number: int = 1) -> None:
    """Put on the tally what came of a fault, once it is known that what must hold held."""
    assert name in FAULTS, name
    if TALLY in os.environ:
        line = json.dumps([name, outcome, number]) + "\n"
        with Path(os.environ[TALLY]).open("ab", buffering=0) as file:  # one write: processes do not mix
            file.write(line.encode())


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Other bytes: flipped bits, a cut end, a lost or repeated piece, zeros, or garbage at the end."""
    while True:
        changed = rng.choice(_MUTATIONS)(content, rng)
        if changed != content:
            return changed


def _one_bit(content: bytes, rng: random.Random) -> bytes:
    return _bits(content, rng, 1)


def _few_bits(content: bytes, rng: random.Random) -> bytes:
    return _bits(content, rng, rng.randint(2, 16))


def _bits(content: bytes, rng: random.Random, number: int) -> bytes:
    changed = bytearray(content)
    for _ in range(number):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _cut_a_little(content: bytes, rng: random.Random) -> bytes:
    return content[: -rng.randint(1, min(len(content), 40))]


def _zeros(content: bytes, rng: random.Random) -> bytes:
    begin, length = rng.randrange(len(content)), rng.choice((1, 4, 64, 512, 4096))
    return content[:begin] + bytes(len(content[begin : begin + length])) + content[begin + length :]


def _lost(content: bytes, rng: random.Random) -> bytes:
    begin, length = rng.randrange(len(content)), rng.choice((1, 4, 64, 512))
    return content[:begin] + content[begin + length :]


def _repeated(content: bytes, rng: random.Random) -> bytes:
    begin, length = rng.randrange(len(content)), rng.choice((1, 4, 64, 512))
    return content[: begin + length] + content[begin:]


def _garbage(content: bytes, rng: random.Random) -> bytes:
    return content + rng.randbytes(rng.randint(1, 600))


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *[_one_bit] * 4, _few_bits, _cut, _cut_a_little, _zeros, _lost, _repeated, _garbage,
)  # fmt: skip
"""The likeliest damage, one bit, is the likeliest here."""
