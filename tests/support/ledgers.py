"""What tests of ledgers share: people as tags, charges, a ledger with a short history."""

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from support.release import policy_text
from targetdp._core import Words
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Charge, Head, Ledger, Limit, Policy, SigningKey, Witness


def policy_of(
    B: float, epsilon: float, delta: float, *, plan: Sequence[Mapping[str, Any]] = (),
    reason: str | None = None, **more: Any,
) -> Policy:  # fmt: skip
    """A policy with such a limit."""
    limit = {"B": B, "epsilon": epsilon, "delta": delta, **more}
    return Policy.model_validate(tomllib.loads(policy_text(limit=limit, plan=plan, reason=reason)))


def limit_of(B: float, epsilon: float, delta: float, **more: Any) -> Limit:
    """The limit of a desk that says so."""
    return Limit.of(policy_of(B, epsilon, delta, **more))


LIMIT = limit_of(0.25, 8.0, 1e-5)
WIDE = limit_of(0.25, 1e6, 0.9)
SHA = hashlib.sha256(b"released").hexdigest()


def gaussian(epsilon: float = 1.0, B: float = 0.25) -> Charge:
    return Charge(GaussianNoise(B=B, epsilon=epsilon, delta=1e-5).law(3))


def people(*numbers: int | Iterable[int]) -> Words:
    """Sorted tags: of numbers, or of ranges of them."""
    flat = [n for one in numbers for n in ([one] if isinstance(one, int) else one)]
    return np.array(sorted(set(flat)), dtype=np.uint64)


EVERYBODY = people(range(10))


def reserve(
    ledger: Ledger,
    release: str,
    charge: Charge | None = None,
    who: Words = EVERYBODY,
    limit: Limit = WIDE,
    **title: Any,
) -> Head:
    return ledger.reserve(release, charge or gaussian(), limit, who, title)


def certificate_of(
    head: Head, release: str, charge: Charge, space: Mapping[str, str] | None = None, policy: str = "",
    limit: Limit = LIMIT, **title: Any,
) -> Witness:  # fmt: skip
    """What the certificate of a release tells a ledger."""
    stated = [asdict(limit.stated), asdict(limit.classic)]
    return Witness(
        f"the certificate {release}", head, release, charge.record(), space or {}, title, SHA, None, policy,
        stated,
    )  # fmt: skip


def with_history(path: Path, key: SigningKey) -> Ledger:
    """Six entries: opened, a published release, a voided one, a reserved one of some people."""
    ledger = Ledger(path, key, create=True)
    reserve(ledger, "r1", rows=10)
    ledger.settle("r1", SHA)
    reserve(ledger, "r2", gaussian(2.0))
    ledger.free("r2", "the disk was full, nothing was drawn")
    reserve(ledger, "r3", gaussian(0.5), people(range(5, 20)))
    return ledger


def mark(path: Path) -> Path:
    return path.with_name(path.name + ".head")
