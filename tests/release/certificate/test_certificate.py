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

from support.certificates import certificate_by as certificate
from support.release import (
    CENTERS,
    FEATURES,
    SCALES,
    make_desk,
    release,
    table_of,
    write_parquet,
)
from targetdp.guarantee import Guarantee
from targetdp.release import Certificate, SigningKey
from targetdp.release._certificate._caveats import statement
from targetdp.release._certificate._contents import list_hash, output_of
from targetdp.release._trust._keys import is_signed
from targetdp.table import Written

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
    true = delta_again(c, B, epsilon)
    assert true <= c.guarantee.delta * (1 + 1e-5)
    assert true >= 0.999 * c.guarantee.delta
    # The check has power: nine tenths of that noise would not do.
    weaker = {"gaussian": "deviation", "spherical-laplace": "scale"}[name]
    less = c.model_copy(
        update={"mechanism": c.mechanism.model_copy(
            update={"law": c.mechanism.law | {weaker: 0.9 * c.mechanism.law[weaker]}}
        )}
    )  # fmt: skip
    assert delta_again(less, B, epsilon) > 1.01 * c.guarantee.delta


@pytest.mark.parametrize(("name", "B", "epsilon"), CASES[:2])
def test_epsilon_and_the_best_guess_at_every_distance_are_right(name: str, B: float, epsilon: float) -> None:
    c = certificate(mechanism=name, B=B, epsilon=epsilon)
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
    assert gaussian_delta(c.mechanism.law["deviation"], 2.0, exact.epsilon) <= 1e-14 * (1 + 1e-4)
    assert c.distances[-1].epsilon == exact.epsilon
    # At δ = 1/1000 the lemma's δ passes 1, and it is not stated.
    assert certificate().classic.switch_lemma is None


def test_private_scales_are_inside_the_promise() -> None:
    c = certificate(50_000, {"scales": "private", "share": 0.25}, epsilon=2.0)
    noise = certificate(50_000, epsilon=1.5)
    assert c.guarantee.epsilon <= 2.0
    assert c.scales.spent is not None
    assert (c.scales.spent.B, c.scales.spent.epsilon) == (2, 0.5)
    assert (c.scales.source, c.scales.estimated) == ("private", FEATURES)
    for at, alone in zip(c.distances, noise.distances, strict=True):
        assert at.epsilon is not None
        assert alone.epsilon is not None
        # Composed: more than the noise alone, at most the sum of both.
        assert alone.epsilon * (1 - 1e-3) <= at.epsilon <= (alone.epsilon + 0.5) * (1 + 1e-3) + 1e-3


# What is in it, and what is not


def test_scales_are_on_record() -> None:
    public = certificate().scales
    assert {n: (v.center, v.scale) for n, v in public.values.items()} == {
        n: (CENTERS[j], SCALES[j]) for j, n in enumerate(FEATURES)
    }
    assert (public.source, public.spent, public.estimated, public.releases) == ("declared", None, (), ())


def test_what_was_asked_for_and_allowed_is_on_record() -> None:
    policy: dict[str, Any] = {"public": {"region": "it is printed"}, "gaps": {"all": 0}, "pseudonyms": True}
    c = certificate(policy=policy, tuned_on="synthetic", asked_by="Ministry", why="as agreed", program="aid")
    assert (c.public, c.gaps) == ({"region": "it is printed"}, dict.fromkeys(FEATURES, 0.0))
    assert (c.tuned_on, c.pseudonyms, c.rows, c.engine) == ("synthetic", True, 999, "local")
    assert (c.request.asked_by, c.request.why, c.request.program) == ("Ministry", "as agreed", "aid")
    assert c.columns == ("name", *FEATURES, "region")
    assert c.guarantee.delta == 1 / 1000
    assert (c.desk.name, c.desk.policy, len(c.desk.policy_sha256)) == ("people", 1, 64)
    assert c.ledger.head().number == 3
    assert statement(c.together.near.value(), c.together.classic.value()) == c.conditions[-1]
    assert (c.together.near.value(), c.together.classic.B) == (Guarantee(0.25, 100.0, 0.1), 2)
    assert c.together.limits == 1
    assert abs((datetime.fromisoformat(c.time) - datetime.now(UTC)).total_seconds()) < 3600


def test_noise_length_is_that_of_the_law() -> None:
    c = certificate(mechanism="gaussian")
    assert c.mechanism.deviation_per_column == c.mechanism.law["deviation"]
    assert c.mechanism.noise_length == pytest.approx(c.mechanism.law["deviation"] * math.sqrt(3))


def test_the_signature_covers_every_field(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "key.pem")
    signed = certificate(tuned_on="public").signed(key)
    assert signed.signature is not None
    assert is_signed(key.public, signed.signature.value, signed.message())
    read = Certificate.model_validate_json(signed.text())
    assert read == signed
    plain = json.loads(signed.text())
    changed: dict[str, Any] = {
        "release": "r2", "engine": "spark", "library": "9", "time": "2020",
        "desk": plain["desk"] | {"name": "other"}, "request": plain["request"] | {"why": "other"},
        "guarantee": plain["guarantee"] | {"epsilon": 1.0}, "conditions": [],
        "distances": [], "classic": {"switch_lemma": None, "exact": None},
        "mechanism": plain["mechanism"] | {"noise_length": 0.1}, "scales": plain["scales"] | {"values": {}},
        "rows": 1000, "id": "other", "features": ["calls"], "scores": ["score"], "learned_from": "r0",
        "decisions": [{"name": "aid", "weights": {"calls": 1.0}, "cut": 0.0}], "cuts": [[0]],
        "left_out": ["r0"], "public": {"x": "why"}, "gaps": {"calls": 0.0}, "pseudonyms": True,
            "kinds": {"calls": {"kind": "number", "gap_distance": 0.5}},
        "tuned_on": None, "output": plain["output"] | {"sha256": "1" * 64},
        "ledger": plain["ledger"] | {"number": 1},
        "together": plain["together"] | {"near": plain["together"]["classic"]},
        "agreed": [{"agreement": "a" * 32, "to": "a survey", "people": 1}],
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


@pytest.mark.parametrize(
    ("policy", "how"),
    [
        ({}, {}),
        ({}, {"mechanism": "gaussian"}),
        ({"pseudonyms": True}, {}),
        ({}, {"release": "scores", "weights": {"calls": 1, "texts": -1}}),
    ],
)
def test_certificates_of_different_data_differ_in_names_times_and_hashes_only(
    tmp_path: Path, policy: dict[str, Any], how: dict[str, Any]
) -> None:
    """Two tables of one shape and public scales: nothing else in a certificate may depend on the values."""
    make_desk(tmp_path, **policy)
    made = []
    for number in (1, 2):
        table = table_of(80, seed=number)
        for j, name in enumerate(FEATURES, start=1):  # the second is hundreds of times larger
            wild = np.asarray(table[name]) * (1 if number == 1 else -700.0)
            table = table.set_column(j, name, [wild])
        write_parquet(tmp_path / "in.parquet", table)
        made.append(json.loads(release(tmp_path, f"out{number}.parquet", **how).certificate.text()))
    differ = {".".join(map(str, place)) for place in _differences(*made)}
    assert differ <= {
        "release", "time", "output.sha256", "output.files.0.sha256", "output.files.0.size",
        "output.files.0.name", "ledger.number", "ledger.hash", "signature.value",
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
