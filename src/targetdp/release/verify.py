"""Checking a release: the file against its certificate, and the certificate against its own noise."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from targetdp.guarantee import Guarantee
from targetdp.mechanisms.law import GaussianLaw, NoiseLaw, SphericalLaplaceLaw, StaircaseLaw, law_of
from targetdp.release.certificate import Certificate, at_distances, classic, list_hash
from targetdp.release.charge import Charge
from targetdp.release.inspection import batch_rows
from targetdp.release.keys import fingerprint_of, is_signed
from targetdp.release.ledger import Ledger
from targetdp.release.settings import explain
from targetdp.table.source import TableError, open_source

_ON_GRID = (GaussianLaw, SphericalLaplaceLaw, StaircaseLaw)
_SLACK = 1e-9
"""Relative: another processor may round the last digits of a curve differently."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked. ``holds`` is None where it could not be."""

    what: str
    holds: bool | None
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]

    def also(self, more: Iterable[Check]) -> "Verification":
        """With more checks."""
        return Verification((*self.checks, *more))

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return all(check.holds is not False for check in self.checks)


def read_certificate(path: Path) -> Certificate:
    """A certificate from its file, or a ValueError that says what is wrong with it."""
    try:
        return Certificate.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ValueError(f"certificate {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ValueError(f"certificate {path} is not one: {explain(error)}") from error


def verify_release(output: Path, certificate: Certificate, public_key: str | None = None) -> Verification:
    """Check signature, files, shape, noise grid, and derive every stated number again from the noise."""
    return Verification(
        tuple(_signature(certificate, public_key)) + tuple(_files(output, certificate))
        + tuple(verify_guarantee(certificate))
    )  # fmt: skip


def verify_in_ledger(c: Certificate, path: Path) -> Iterator[Check]:
    """Whether a ledger is sound, knows the release, and charges it for the noise that is certified."""
    ledger = Ledger.existing(path)
    heads = [] if c.ledger is None else [c.ledger.head()]
    problems = ledger.verify(heads)
    yield Check("ledger", not problems, "; ".join(problems) or "sound, and its head is in the certificate")
    row = next((row for row in ledger.releases() if row.release == c.release), None)
    if row is None:
        yield Check("release in the ledger", False, "this ledger does not know it")
        return
    law = None if row.charge.law is None else row.charge.law.record()
    yield Check("charge", law == c.mechanism.law, "for the noise that is certified")
    yield Check("release in the ledger", row.state != "voided", f"{row.state}, population {row.population}")


def verify_guarantee(c: Certificate) -> Iterator[Check]:
    """Derive the guarantee again from the law of the noise: nothing that is stated may be too good."""
    if c.guarantee is None:
        claims = [*c.distances, c.classic.exact, c.classic.switch_lemma]
        yield Check("guarantee", not any(claims), "none is claimed, and none is there")
        return
    stated = c.guarantee.value()
    try:
        law = law_of(c.mechanism.law or {})
        spent = None if c.scales.spent is None else c.scales.spent.value()
        yield _keeps(law, spent, stated)
        charge = Charge(law=law, scales=spent)
        fits = len(c.features) == law.dimensions
        yield Check("columns", fits, f"noise for {law.dimensions} columns on {len(c.features)} features")
        yield _no_better(
            "ε at other distances",
            [(a.epsilon, a.best_guess) for a in c.distances],
            [(a.epsilon, a.best_guess) for a in at_distances(charge, stated)],
        )
        again = classic(charge, stated)
        pairs = [(c.classic.exact, again.exact), (c.classic.switch_lemma, again.switch_lemma)]
        yield _no_better(
            "classic differential privacy",
            [(p.epsilon, p.delta) if p else (None, None) for p, _ in pairs],
            [(p.epsilon, p.delta) if p else (None, None) for _, p in pairs],
        )
        deviation = law.deviation_per_column
        same = c.mechanism.deviation_per_column is not None and np.isclose(
            c.mechanism.deviation_per_column, deviation, rtol=_SLACK, atol=0
        )
        yield Check("noise", bool(same), f"deviation {deviation:.6g} per column")
    except (ValueError, TypeError) as error:
        yield Check("guarantee", False, f"the noise on record makes no sense: {error}")


def _keeps(law: NoiseLaw, spent: Guarantee | None, stated: Guarantee) -> Check:
    """Lemma 2: what is left of ε and δ after the scales must cover the noise."""
    epsilon = stated.epsilon - (spent.epsilon if spent else 0.0)
    delta = stated.delta - (spent.delta if spent else 0.0)
    true = law.privacy_loss(stated.B).delta(max(0.0, epsilon) * (1 + 1e-12))
    return Check(
        "guarantee",
        epsilon > 0 and true <= delta * (1 + _SLACK),
        f"{stated} derived again from {law.family} noise: δ = {true:.3g} at its ε",
    )


def _no_better(
    what: str, stated: list[tuple[float | None, ...]], again: list[tuple[float | None, ...]]
) -> Check:
    """Stated numbers must be at least those derived again (None: nothing is promised)."""
    good = len(stated) == len(again)
    for one, two in zip(stated, again, strict=False):
        for claimed, true in zip(one, two, strict=True):
            good &= claimed is None or (true is not None and claimed >= true * (1 - _SLACK))
    return Check(what, good, "derived again" if good else "stated better than the noise allows")


def _signature(c: Certificate, public_key: str | None) -> Iterator[Check]:
    if c.signature is None:
        yield Check("signature", False, "the certificate is not signed")
        return
    good = is_signed(c.signature.key, c.signature.value, c.message())
    yield Check("signature", good, f"by key {fingerprint_of(c.signature.key)}" if good else "does not fit")
    if public_key is None:
        yield Check("signer", None, "compare the key with the data holder's, or give --public-key")
    else:
        yield Check("signer", c.signature.key == public_key, "the key that was given")


def _files(output: Path, c: Certificate) -> Iterator[Check]:
    if c.output.format == "frame":
        yield Check("file", None, "the certificate is of a data frame in memory: check it from Python")
        return
    folder = output.is_dir()
    try:
        for file in c.output.files:
            path = output / file.name if folder else output
            digest, size = _hash(path)
            same = (digest, size) == (file.sha256, file.size)
            yield Check(
                f"file {path.name}", same, f"SHA-256 {digest}" if same else "is not the one certified"
            )
        if folder:
            present = {str(p.relative_to(output)) for p in output.rglob("*") if p.is_file()}
            extra = sorted(present - {file.name for file in c.output.files})
            good = not extra and list_hash(c.output.files) == c.output.sha256
            yield Check("list of parts", good, f"not certified: {extra}" if extra else "complete")
        else:
            yield Check("certified hash", c.output.files[0].sha256 == c.output.sha256, c.output.sha256)
        yield from _content(output, c)
    except (OSError, TableError, ValueError) as error:
        yield Check("file", False, str(error))


def _content(output: Path, c: Certificate) -> Iterator[Check]:
    source = open_source(output)
    columns = (c.id, *c.features, *c.not_protected)
    yield Check("columns of the file", source.columns == columns, ", ".join(source.columns[:8]))
    on_grid = _grid_test(c)
    rows, good, last, ordered = 0, True, "", True
    types = dict.fromkeys(c.features, pa.float64())
    for batch in source.batches([c.id, *c.features], types, batch_rows(len(c.features))):
        rows += batch.num_rows
        good &= all(on_grid(np.asarray(batch.column(name))) for name in c.features)
        if batch.num_rows:
            ids = pa.concat_arrays([pa.array([last], pa.string()), batch.column(c.id)])
            ordered &= bool(pc.all(pc.less(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py())
            last = ids[-1].as_py()
    yield Check("rows", rows == c.rows, f"{rows:,}")
    yield Check("values", good, "as the noise leaves them" if good else "not what the noise makes")
    if c.order == "sorted by id":
        yield Check("order", ordered, "sorted by id, no id twice" if ordered else "ids are not in order")


def _grid_test(c: Certificate) -> Callable[[np.ndarray], bool]:
    """Noise on a grid leaves values on it; other laws and shapes leave any finite number."""
    law = law_of(c.mechanism.law) if c.mechanism.law else None
    if not isinstance(law, _ON_GRID) or c.made_for is not None:
        return lambda values: bool(np.isfinite(values).all())
    grid = law.grid
    return lambda values: bool((np.isfinite(values) & (np.rint(values / grid) * grid == values)).all())


def _hash(path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size
