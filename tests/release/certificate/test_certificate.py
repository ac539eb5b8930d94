"""Certificates against an independent recomputation, and that no statistic of the data is in them."""

import hashlib
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from support.release import CENTERS, FEATURES, SCALES, settings, table_of, write_parquet, write_scales
from targetdp.normalization import ColumnScales, confidential_scales, declared_scales
from targetdp.release import Certificate, SigningKey, privatize_file
from targetdp.release._certificate._caveats import NO_LEDGER
from targetdp.release._certificate._certificate import File, LedgerMark, Output, make_certificate
from targetdp.release._certificate._contents import list_hash, output_of
from targetdp.release._keys import is_signed
from targetdp.release._terms import make_terms
from targetdp.table import Written

PUBLIC = declared_scales(CENTERS, SCALES)
OUTPUT = Output(format="parquet", files=(File(name="x", size=1, sha256="0" * 64),), sha256="0" * 64)


def certificate(scales: ColumnScales = PUBLIC, rows: int = 999, **given: Any) -> Certificate:
    asked = settings(**given)
    return make_certificate(
        "r1", asked, make_terms(asked, scales, rows), scales, rows, OUTPUT, None, "0.0"
    )  # fmt: skip


# The guarantee, by integrals that share no code with the library


def gaussian_delta(deviation: float, distance: float, epsilon: float) -> float:
    """∫ max(0, p − e^ε q) of two normal densities, over the half line where it is positive."""
    mu = distance / deviation
    start = mu / 2 + epsilon / mu

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x))

    return float(integrate.quad(excess, start, start + 12 + mu, epsabs=1e-15, epsrel=1e-11)[0])


def laplace_delta(scale: float, d: int, distance: float, epsilon: float) -> float:
    """∫ max(0, f(z) − e^ε f(z − r)) for f ∝ exp(−‖z‖/b), in polar coordinates around the first row."""
    r = distance / scale
    t = (np.arange(1200) + 0.5) / 1200 * (d + 40)
    angle = (np.arange(1200) + 0.5) / 1200 * math.pi
    radial = stats.gamma.pdf(t, d) * (t[1] - t[0])
    around = np.sin(angle) ** (d - 2)
    around /= around.sum()
    far = np.sqrt(np.maximum(0.0, t[:, None] ** 2 + r**2 - 2 * r * t[:, None] * np.cos(angle)[None, :]))
    loss = far - t[:, None]
    return float(radial @ np.maximum(0.0, -np.expm1(epsilon - loss)) @ around)


def delta_again(c: Certificate, distance: float, epsilon: float) -> float:
    law = c.mechanism.law
    assert law is not None
    if law["family"] == "gaussian":
        return gaussian_delta(law["deviation"], distance, epsilon)
    return laplace_delta(law["scale"], law["dimensions"], distance, epsilon)


CASES = [
    ("gaussian", 0.25, 4.0),
    ("spherical-laplace", 0.25, 4.0),
    ("gaussian", 1.0, 0.5),
    ("spherical-laplace", 0.05, 1.0),
]


@pytest.mark.parametrize(("name", "B", "epsilon"), CASES)
def test_the_stated_delta_holds_for_the_stated_noise_and_hardly_more(
    name: str, B: float, epsilon: float
) -> None:
    c = certificate(mechanism=name, B=B, epsilon=epsilon)
    assert c.guarantee is not None
    true = delta_again(c, B, epsilon)
    assert true <= c.guarantee.delta * (1 + 1e-5)
    assert true >= 0.999 * c.guarantee.delta
    # The check has power: nine tenths of that noise would not do.
    weaker = {"gaussian": "deviation", "spherical-laplace": "scale"}[name]
    assert c.mechanism.law is not None
    less = c.model_copy(
        update={"mechanism": c.mechanism.model_copy(
            update={"law": c.mechanism.law | {weaker: 0.9 * c.mechanism.law[weaker]}}
        )}
    )  # fmt: skip
    assert delta_again(less, B, epsilon) > 1.01 * c.guarantee.delta


@pytest.mark.parametrize(("name", "B", "epsilon"), CASES[:2])
def test_epsilon_and_the_best_guess_at_every_distance_are_right(name: str, B: float, epsilon: float) -> None:
    c = certificate(mechanism=name, B=B, epsilon=epsilon)
    assert c.guarantee is not None
    assert [a.distance for a in c.distances] == [0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
    for at in c.distances:
        assert at.epsilon is not None
        true = delta_again(c, at.distance, at.epsilon)
        assert true <= c.guarantee.delta * (1 + 1e-4)
        if at.epsilon > 0:
            assert delta_again(c, at.distance, at.epsilon * 0.999) >= c.guarantee.delta * (1 - 1e-3)
        assert at.best_guess == pytest.approx((1 + delta_again(c, at.distance, 0.0)) / 2, abs=2e-4)
    # What is asked for is what is given at B itself.
    assert next(a.epsilon for a in c.distances if a.distance == B) == pytest.approx(epsilon, rel=1e-3)


def test_classic_privacy_is_the_lemma_s_and_the_noise_s_own() -> None:
    c = certificate(mechanism="gaussian", delta=1e-14, epsilon=2.0)
    lemma, exact = c.classic.switch_lemma, c.classic.exact
    assert lemma is not None
    assert exact is not None
    assert (lemma.B, lemma.epsilon) == (2.0, 8 * 2.0)  # ⌈2/0.25⌉ = 8 steps
    assert lemma.delta == pytest.approx(1e-14 * (math.exp(16) - 1) / (math.exp(2) - 1))
    assert (exact.B, exact.delta) == (2.0, 1e-14)
    assert gaussian_delta(c.mechanism.law["deviation"], 2.0, exact.epsilon) <= 1e-14 * (1 + 1e-4)  # type: ignore[index]
    assert c.distances[-1].epsilon == exact.epsilon
    # At δ = 1/1000 the lemma's δ passes 1, and it is not stated.
    assert certificate().classic.switch_lemma is None


def test_private_scales_are_added_up() -> None:
    from targetdp.guarantee import Guarantee

    paid = ColumnScales(np.zeros(3), np.ones(3), "private", Guarantee(2, 0.5, 1e-20))
    c, without = certificate(paid, epsilon=1.0), certificate(epsilon=1.0)
    assert c.guarantee is not None
    assert without.guarantee is not None
    assert c.guarantee.epsilon == pytest.approx(1.5)
    assert c.scales.spent is not None
    assert c.scales.values is not None
    for at, alone in zip(c.distances, without.distances, strict=True):
        assert at.epsilon is not None
        assert alone.epsilon is not None
        # Composed: more than the noise alone, at most the sum of both.
        assert alone.epsilon <= at.epsilon <= (alone.epsilon + 0.5) * (1 + 1e-3) + 1e-3


# What is in it, and what is not


def test_scale_values_are_printed_only_where_they_are_public() -> None:
    public = certificate().scales
    assert public.values is not None
    assert {n: (v.center, v.scale) for n, v in public.values.items()} == {
        n: (CENTERS[j], SCALES[j]) for j, n in enumerate(FEATURES)
    }
    secret = certificate(confidential_scales([1234.5] * 3, [6.789] * 3))
    assert (secret.scales.source, secret.scales.values) == ("confidential", None)
    assert "1234.5" not in secret.text()
    assert "6.789" not in secret.text()
    own = certificate(ColumnScales(np.full(3, 1234.5), np.full(3, 6.789), "data"))
    assert (own.scales.source, own.scales.values) == ("data", None)
    assert "1234.5" not in own.text()


def test_a_certificate_without_a_ledger_says_so() -> None:
    assert NO_LEDGER in certificate().conditions
    asked = settings(ledger="l.db", population="p")
    mark = LedgerMark(population="p", part=None, ledger_id="a" * 32, number=3, hash="0" * 64, override=None)
    made = make_certificate("r1", asked, make_terms(asked, PUBLIC, 9), PUBLIC, 9, OUTPUT, mark, "0.0")
    assert NO_LEDGER not in made.conditions
    assert made.ledger is not None
    assert made.ledger.head().number == 3


def test_settings_are_on_record() -> None:
    c = certificate(keep=("region",), keep_order=True, impute=0, tuned_on="synthetic", pseudonymize="k")
    assert (c.not_protected, c.order, c.imputed) == (("region",), "as given", dict.fromkeys(FEATURES, 0.0))
    assert (c.tuned_on, c.pseudonyms, c.made_for, c.rows) == ("synthetic", True, None, 999)
    assert c.guarantee is not None
    assert c.guarantee.delta == 1 / 1000
    assert certificate(made_for="cider").made_for == "cider"
    assert abs((datetime.fromisoformat(c.time) - datetime.now(UTC)).total_seconds()) < 3600


def test_noise_length_is_that_of_the_law() -> None:
    c = certificate(mechanism="gaussian")
    assert c.mechanism.law is not None
    assert c.mechanism.deviation_per_column == c.mechanism.law["deviation"]
    assert c.mechanism.noise_length == pytest.approx(c.mechanism.law["deviation"] * math.sqrt(3))


def test_mondrian_has_no_number_about_privacy() -> None:
    c = certificate(mechanism="mondrian", group_size=5, B=None, epsilon=None)
    assert (c.guarantee, c.distances, c.classic.exact, c.classic.switch_lemma) == (None, (), None, None)
    assert (c.mechanism.law, c.mechanism.group_size) == (None, 5)


def test_the_signature_covers_every_field(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "key.pem")
    signed = certificate(tuned_on="public").signed(key)
    assert signed.signature is not None
    assert is_signed(key.public, signed.signature.value, signed.message())
    read = Certificate.model_validate_json(signed.text())
    assert read == signed
    plain = json.loads(signed.text())
    changed: dict[str, Any] = {
        "release": "r2",
        "engine": "spark", "library": "9", "time": "2020", "guarantee": None, "conditions": [],
        "distances": [], "classic": {"switch_lemma": None, "exact": None},
        "mechanism": plain["mechanism"] | {"noise_length": 0.1}, "scales": plain["scales"] | {"values": None},
        "rows": 1000, "id": "other", "features": ["calls"], "not_protected": ["x"], "order": "as given",
        "scores": ["score"], "no_sample": True,
        "sample": {"release": "r0", "sha256": "2" * 64, "rows": 9, "guarantee": plain["guarantee"],
                   "law": plain["mechanism"]["law"], "spent": None, "scored": False, "some_have_left": False,
                   "same_scales": True, "inside": plain["guarantee"]},
        "pseudonyms": True, "imputed": {"calls": 0.0}, "made_for": "cider", "tuned_on": None,
        "output": plain["output"] | {"sha256": "1" * 64},
        "ledger": {"population": "p", "part": None, "ledger_id": "x", "number": 1, "hash": "0" * 64,
                   "override": None},
    }  # fmt: skip
    assert set(changed) == set(Certificate.model_fields) - {"format", "signature"}
    for name, value in changed.items():
        forged = Certificate.model_validate(plain | {name: value})
        assert forged.signature is not None
        assert not is_signed(key.public, forged.signature.value, forged.message()), name


def test_unknown_fields_are_refused() -> None:
    plain = json.loads(certificate().text())
    with pytest.raises(ValueError, match="raw_mean"):
        Certificate.model_validate(plain | {"raw_mean": 3.0})


@pytest.mark.parametrize("how", [{}, {"mechanism": "gaussian"}, {"pseudonymize": "pseudonyms.key"}])
def test_certificates_of_different_data_differ_in_names_times_and_hashes_only(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    """Two tables of one shape and public scales: nothing else in a certificate may depend on the values."""
    if "pseudonymize" in how:
        how = {"pseudonymize": tmp_path / "pseudonyms.key"}
    scales = write_scales(tmp_path / "scales.toml")
    made = []
    for number in (1, 2):
        table = table_of(80, seed=number)
        for j, name in enumerate(FEATURES, start=1):  # the second is hundreds of times larger
            wild = np.asarray(table[name]) * (1 if number == 1 else -700.0)
            table = table.set_column(j, name, [wild])
        source = write_parquet(tmp_path / f"in{number}.parquet", table)
        asked = settings(scales=str(scales), ledger=tmp_path / "l.db", population=f"p{number}", **how)
        done = privatize_file(source, tmp_path / f"out{number}.parquet", asked)
        made.append(json.loads(done.certificate.text()))
    differ = {".".join(map(str, place)) for place in _differences(*made)}
    assert differ <= {
        "release", "time", "output.sha256", "output.files.0.sha256", "output.files.0.size",
        "output.files.0.name", "ledger.number", "ledger.hash", "ledger.population", "signature.value",
    }  # fmt: skip
    assert {"release", "output.sha256", "signature.value"} <= differ


def _differences(a: Any, b: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [found for key in a for found in _differences(a[key], b[key], (*place, key))]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [
            found
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            for found in _differences(x, y, (*place, i))
        ]
    return [] if a == b else [place]


def test_the_hash_of_parts_is_that_of_their_list() -> None:
    files = (Written("part-0.csv", 3, "a" * 64), Written("part-1.csv", 4, "b" * 64))
    made = output_of("csv", files, None)
    lines = "a" * 64 + "  part-0.csv\n" + "b" * 64 + "  part-1.csv\n"
    assert made.sha256 == hashlib.sha256(lines.encode()).hexdigest() == list_hash(made.files)
    assert [f.name for f in made.files] == ["part-0.csv", "part-1.csv"]
    one = output_of("csv", files[:1], "private.csv")
    assert (one.sha256, one.files[0].name) == ("a" * 64, "private.csv")
