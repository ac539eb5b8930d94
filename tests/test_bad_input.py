"""Bad input, for everything that is public: a ValueError or TypeError that says what is wrong, and where.

Each public name has its entry in `CALLS`; a test keeps the list complete. Every argument is tried with
everything that it must refuse, one at a time. Tables have their own list, of bad ones and of odd good ones.
"""

import atexit
import inspect
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import targetdp
from targetdp import (
    ColumnScales,
    Decision,
    GaussianNoise,
    Guarantee,
    Mondrian,
    Partitioned,
    PrivateProjection,
    SimulatedPrivacy,
    SphericalLaplace,
    Staircase,
    accounting,
)
from targetdp._core import Floats, check
from targetdp.accounting import (
    GaussianLoss,
    Imperfection,
    ImperfectLoss,
    PrivacyFilter,
    ResponseLoss,
    SphericalLaplaceLoss,
    StaircaseLoss,
    StatedLoss,
)
from targetdp.mechanisms import LinearScore, Mechanism, NoiseMechanism
from targetdp.normalization import UntoldScalesError, scales_text

RESULT_TYPES = {"Desk", "Normalized", "Privatized", "Protection"}
"""Made by functions, never by users: what is in them was checked on the way."""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# What each kind of argument must refuse

HUGE = 10**400

NOT_NUMBERS: list[Any] = [
    None,
    True,
    False,
    np.True_,
    np.False_,
    "0.5",
    "",
    b"0.5",
    np.str_("0.5"),
    0.5j,
    0j,
    np.complex128(0.5),
    [],
    [0.5],
    (0.5,),
    {},
    {0.5},
    np.array([]),
    np.array([0.0]),
    np.array([0.5]),
    np.array([0.0, 0.5]),
    np.array([[0.5]]),
    np.array(0.5),
    np.array(True),
    np.array("0.5"),
    np.datetime64("2026-01-01"),
    Decimal("NaN"),
    object(),
    math.sqrt,
    Guarantee,
]

OUTSIDE: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -1.0,
    -5e-324,
    np.float64("nan"),
    np.float32("inf"),
    HUGE,
    -HUGE,
]

NOT_WORDS: list[Any] = [
    None,
    True,
    0,
    1.5,
    math.nan,
    "",
    "nothing",
    b"clip",
    ["clip"],
    {},
    np.array(["clip"]),
    object(),
]

NOT_VECTORS: list[Any] = [
    None,
    True,
    "ab",
    1.0,
    np.array(1.0),
    object(),
    {},
    [],
    [[1.0, 2.0]],
    [[1.0], [2.0, 3.0]],
    [1.0, math.nan],
    [math.inf, 1.0],
    [1.0, -math.inf],
    [1.0, None],
    ["a", "b"],
    [1.0, "b"],
    [True, False],
    [1j, 1.0],
    [1.0, HUGE],
]

NOT_SCORES = [bad for bad in NOT_VECTORS if bad is not None and str(bad) != "[[1.0, 2.0]]"]
NOT_SCORES += [[0.0, 0.0], [[1.0, 2.0], [3.0, 4.0]], LinearScore]

NOT_ANSWERS = [bad for bad in NOT_VECTORS if str(bad) != "[True, False]"]

OTHER_LENGTHS: list[Any] = [[1.0], [1.0, 2.0, 3.0], np.ones(1), np.ones((2, 2))]

NOT_GENERATORS: list[Any] = [
    0,
    42,
    True,
    1.5,
    "seed",
    b"seed",
    [1, 2],
    np.random.RandomState(0),
    np.random.PCG64(0),
    np.random.SeedSequence(0),
    np.random,
    np.random.default_rng,
]

NOT_OBJECTS: list[Any] = [
    None,
    True,
    1,
    0.5,
    math.nan,
    "(1, 1, 0)",
    (1, 1, 0),
    [],
    {},
    np.ones(3),
    object(),
    Guarantee,
]


@dataclass(frozen=True)
class Argument:
    """Values that an argument must refuse, and what the message must say beside its name."""

    bad: list[Any]
    says: str = ""
    odd: tuple[Any, ...] = ()


def number(interval: str, *outside: Any) -> Argument:
    odd = (np.float32(0.25), np.float64(0.25), Fraction(1, 4), Decimal("0.25"))
    return Argument([*NOT_NUMBERS, *OUTSIDE, *outside], interval, odd)


def whole(interval: str, *outside: Any) -> Argument:
    values = [
        *NOT_NUMBERS,
        *(value for value in OUTSIDE if value is not HUGE),
        1.0,
        2.5,
        np.float64(2),
        Fraction(2),
    ]
    return Argument([*values, *outside], interval, (np.int64(3), np.uint8(3)))


def optional(argument: Argument) -> Argument:
    return Argument(
        [value for value in argument.bad if value is not None], argument.says, (*argument.odd, None)
    )


def word(*options: str) -> Argument:
    return Argument(NOT_WORDS, ", ".join(sorted(options)), options)


def vector(*more: Any) -> Argument:
    return Argument([*NOT_VECTORS, *OTHER_LENGTHS, *more])


def instance(*more: Any) -> Argument:
    return Argument([*NOT_OBJECTS, *more])


@dataclass(frozen=True)
class Call:
    """A public function or constructor, arguments with which it works, and what each must refuse."""

    run: Callable[..., Any]
    good: dict[str, Any]
    arguments: dict[str, Argument]


DISTANCE = number("(0, 2]", 0, 0.0, 2.0000001, 3)
COLUMNS = whole(f"1 to {check.MAX_COLUMNS}", 0, check.MAX_COLUMNS + 1, HUGE)
EPSILON = number("[0.0001, 100]", 0, 9e-5, 101)
SMALL_DELTA = number("[1e-20, 1)", 0, 1, 1e-21)
SHARE_OF_DELTA = number("[1e-20, 0.5)", 0, 0.5, 1e-21)
ANY_DELTA = number("[0, 1]", 1.0000001, 2)
AGREEMENT = Argument([*NOT_NUMBERS, *OUTSIDE, 0.49, 1, 2], "[0.5, 1)")
THEOREM = word("sharper", "printed")

CLAIM: dict[str, Any] = {"B": 0.5, "epsilon": 1.0, "delta": 1e-5}
SHARES: dict[str, Any] = {"B": 0.5, "epsilon1": 1.0, "epsilon2": 0.5, "delta1": 1e-5, "delta2": 1e-6, "k": 20}
GAUSSIAN = GaussianNoise(**CLAIM)
PROJECTION = PrivateProjection(**SHARES)
PROMISE = Guarantee(0.5, 1.0, 1e-5)
TABLE = np.linspace(-1, 1, 400).reshape(200, 2)
UNIT = ColumnScales(np.zeros(2), np.ones(2), "declared")

INSIDE = number("(0, 1)", 0, 1)
WATCHER = Argument([])
"""Whoever watches is not asked for papers."""
ANY_RNG = Argument([value for value in NOT_GENERATORS if value is not None], "np.random.default_rng(seed)")
OTHER_TABLE = Argument([None, 1.5, "table", [], [[]], [1.0], np.ones((3, 0)), np.full((4, 2), np.nan), {1.0}])
NOISE = Argument([1, "gaussian", PROMISE, GaussianNoise, TABLE, Mondrian(2)])
RANKS = Argument([None, 1, "1", [0], [-1], [1.5], [True], [None]])


def fitted(**parameters: Any) -> Any:
    return SimulatedPrivacy(**parameters).fit(TABLE)


PEOPLE = pa.table({"name": [f"{i:03d}" for i in range(200)], "a": TABLE[:, 0], "b": TABLE[:, 1]})


POLICY = """
name = "people"
id = { column = "name", pseudonyms = false }
columns = { release = ["a", "b"] }
scales = { source = "public" }
limit = { B = 0.5, epsilon = 100, delta = 0.1 }
release = { epsilon = 10, delta = 0.01 }
"""


@cache
def desk() -> targetdp.Desk:
    """One desk for all calls, in a folder that goes with the process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scales = folder / "scales.toml"
    scales.write_text(scales_text(UNIT, ["a", "b"], "public", "a test"), encoding="utf-8")
    return targetdp.Desk.create(folder / "desk", POLICY, scales=scales)


def asked(features: Any, B: Any, epsilon: Any, delta: Any, mechanism: Any) -> targetdp.Request:
    return targetdp.Request(features=features, B=B, epsilon=epsilon, delta=delta, mechanism=mechanism)


ASKED: dict[str, Any] = {
    "features": ["a", "b"], "B": 0.5, "epsilon": 1.0, "delta": 1e-5, "mechanism": "gaussian",
}  # fmt: skip
REQUEST = asked(**ASKED)


def looked_at(table: Any, request: Any, engine: Any) -> Any:
    return targetdp.check_release(table, desk=desk(), request=request, engine=engine)


def released(table: Any, request: Any, engine: Any) -> Any:
    return targetdp.privatize(table, desk=desk(), request=request, engine=engine)


GOOD = "the one that was released"


@cache
def a_release() -> Path:
    """A release in a file, with its certificate."""
    place = desk().path.parent / "out.parquet"
    targetdp.privatize(PEOPLE, place, desk=desk(), request=REQUEST)
    return place


def verified(output: Any) -> Any:
    return targetdp.verify(a_release() if output is GOOD else output)


def certificate_read(certificate: Any) -> Any:
    place = a_release()
    return targetdp.read_certificate(
        place.with_name(f"{place.name}.certificate.json") if certificate is GOOD else certificate
    )


A_RELEASE: dict[str, Any] = {"table": PEOPLE, "request": REQUEST, "engine": None}
RELEASED = {
    "table": Argument([None, 1, TABLE, [], {}, {"name": ["x"]}]),
    "request": Argument([None, 1, "request.toml", {}, ASKED, targetdp.Request]),
    "engine": Argument([1, "", "spark", "Local"]),
}


def projection_arguments(epsilon2: str) -> dict[str, Argument]:
    return {
        "B": DISTANCE,
        "epsilon1": EPSILON,
        "epsilon2": number(epsilon2, 0, 100.0),
        "delta1": SHARE_OF_DELTA,
        "delta2": SHARE_OF_DELTA,
        "k": whole("1 to 100000000", 0, 10**8 + 1, HUGE),
        "rank": optional(whole("1 to any", 0)),
        "calibration": word("printed", "exact"),
        "projection_seed": whole("0 to any"),
    }


CALLS: dict[str, Call] = {
    "Guarantee": Call(
        Guarantee, CLAIM, {"B": DISTANCE, "epsilon": number("(0, inf)", 0), "delta": ANY_DELTA}
    ),
    "sequential": Call(
        lambda guarantees: targetdp.sequential(PROMISE, guarantees),
        {"guarantees": PROMISE},
        {"guarantees": instance()},
    ),
    "parallel": Call(
        lambda guarantees: targetdp.parallel(PROMISE, guarantees),
        {"guarantees": PROMISE},
        {"guarantees": instance()},
    ),
    "accuracy_ceiling": Call(
        targetdp.accuracy_ceiling,
        {"guarantee": PROMISE, "theorem": "printed"},
        {"guarantee": instance(), "theorem": THEOREM},
    ),
    "is_ruled_out": Call(
        targetdp.is_ruled_out,
        {"guarantee": PROMISE, "accuracy": 0.75, "theorem": "printed"},
        {"guarantee": instance(), "accuracy": AGREEMENT, "theorem": THEOREM},
    ),
    "largest_B": Call(
        targetdp.largest_B,
        {"accuracy": 0.75, "epsilon": 1.0, "delta": 0.1, "theorem": "printed"},
        {
            "accuracy": AGREEMENT,
            "epsilon": number("[1e-300, inf)", 0),
            "delta": ANY_DELTA,
            "theorem": THEOREM,
        },
    ),
    "smallest_epsilon": Call(
        targetdp.smallest_epsilon,
        {"accuracy": 0.75, "delta": 0.1},
        {"accuracy": AGREEMENT, "delta": ANY_DELTA},
    ),
    "agreement_by_distance": Call(
        lambda guarantee, distances: targetdp.agreement_by_distance(guarantee, [distances]),
        {"guarantee": PROMISE, "distances": 0.25},
        {"guarantee": instance(), "distances": number("[0, 2]", 2.0000001, 3)},
    ),
    "compose": Call(
        lambda losses: accounting.compose(GaussianLoss(1.0), losses),
        {"losses": GaussianLoss(1.0)},
        {"losses": instance()},
    ),
    "least_noise": Call(
        targetdp.least_noise,
        {"guarantee": PROMISE, "dimensions": 2},
        {"guarantee": instance(), "dimensions": COLUMNS},
    ),
    "GaussianNoise": Call(GaussianNoise, CLAIM, {"B": DISTANCE, "epsilon": EPSILON, "delta": SMALL_DELTA}),
    "SphericalLaplace": Call(
        SphericalLaplace, CLAIM, {"B": DISTANCE, "epsilon": EPSILON, "delta": number("[1e-20, 1)", 1, 1e-21)}
    ),
    "Staircase": Call(
        Staircase, {"B": 0.5, "epsilon": 1.0}, {"B": DISTANCE, "epsilon": number("(0, 30]", 0, 31, 1e9)}
    ),
    "Decision": Call(
        Decision,
        {"B": 0.5, "epsilon": 1.0, "score": [1.0, 2.0], "programs": 1},
        {
            "B": DISTANCE,
            "epsilon": EPSILON,
            "score": Argument([*NOT_SCORES, None], "", (LinearScore((0.5,)), [[3, 4]])),
            "programs": Argument([*whole("1 to 4", 0, 5, HUGE).bad], "1 to 4", (np.int64(1),)),
        },
    ),
    "Decision, together": Call(
        Decision,
        {"B": 2, "epsilon": 1.0, "score": None, "programs": 2},
        {
            "B": Argument([*DISTANCE.bad], DISTANCE.says, (2.0, np.float32(2), Fraction(2))),
            "epsilon": EPSILON,
            "score": Argument(NOT_SCORES),
            "programs": whole("1 to 4", 0, 5, HUGE),
        },
    ),
    "Decision.decide": Call(
        Decision(B=2, epsilon=1.0).decide,
        {"answers": [True, False], "rng": rng()},
        {
            "answers": Argument([*NOT_ANSWERS, [[True, False]], [[True], [True, False]]], "", ([[True]],)),
            "rng": ANY_RNG,
        },
    ),
    "Decision.decide_rows": Call(
        lambda cut, rng: Decision(B=0.5, epsilon=1.0, score=[1.0, 2.0]).decide_rows(TABLE, cut=cut, rng=rng),
        {"cut": 0.1, "rng": rng()},
        {
            "cut": Argument(
                [*NOT_NUMBERS, math.nan, math.inf, -2.1, 2.1, HUGE], "[-2, 2]", (np.float32(-1),)
            ),
            "rng": Argument(NOT_GENERATORS, "", (None,)),
        },
    ),
    "Decision.privacy_loss": Call(
        Decision(B=2, epsilon=1.0).privacy_loss, {"distance": 0.1}, {"distance": DISTANCE}
    ),
    "PrivateProjection": Call(PrivateProjection, SHARES, projection_arguments("(0, 1)")),
    "PrivateProjection, exact": Call(
        PrivateProjection, {**SHARES, "calibration": "exact"}, projection_arguments("(0, 100)")
    ),
    "Mondrian": Call(
        Mondrian,
        {"group_size": 2, "value": "mean"},
        {"group_size": whole("2 to any", 0, 1), "value": word("mean", "midpoint")},
    ),
    "Partitioned": Call(
        Partitioned,
        {"mechanism": GAUSSIAN, "parts": 3, "rows": 200},
        {
            "mechanism": instance(Mondrian(2), GaussianNoise, PROMISE),
            "parts": whole("1 to any", 0),
            "rows": Argument([*optional(whole("3 to any", 0, 2)).bad, HUGE], "", (np.int64(10), None)),
        },
    ),
    "ColumnScales": Call(
        ColumnScales,
        {"center": [0.0, 0.0], "scale": [1.0, 1.0], "source": "private", "spent": PROMISE},
        {
            "center": Argument(NOT_VECTORS),
            "scale": vector([1.0, 0.0], [-1.0, 1.0]),
            "source": Argument(NOT_WORDS, "confidential, data, declared, earlier, private, simulated"),
            "spent": instance(),
        },
    ),
    "declared_scales": Call(
        targetdp.declared_scales,
        {"center": [0.0, 0.0], "scale": [1.0, 1.0]},
        {
            "center": Argument(NOT_VECTORS),
            "scale": vector([1.0, 0.0], [-1.0, 1.0]),
        },
    ),
    "confidential_scales": Call(
        targetdp.confidential_scales,
        {"center": [0.0, 0.0], "scale": [1.0, 1.0]},
        {
            "center": Argument(NOT_VECTORS),
            "scale": vector([1.0, 0.0], [-1.0, 1.0]),
        },
    ),
    "Request": Call(
        asked,
        ASKED,
        {
            "features": Argument([1, "a", [], ["a", "a"], [1]]),
            "B": Argument([*NOT_NUMBERS, *OUTSIDE, 0, 2.5]),
            "epsilon": Argument([*NOT_NUMBERS, *OUTSIDE, 0]),
            "delta": Argument([*(bad for bad in NOT_NUMBERS if bad is not None), *OUTSIDE, 0, 1, 2]),
            "mechanism": Argument([None, 1, "", "Gaussian", "mondrian"]),
        },
    ),
    "check_release": Call(looked_at, A_RELEASE, RELEASED),
    "privatize": Call(released, A_RELEASE, RELEASED),
    "verify": Call(verified, {"output": GOOD}, {"output": Argument([None, 1, [], PROMISE, ""])}),
    "read_certificate": Call(
        certificate_read,
        {"certificate": GOOD},
        {"certificate": Argument([None, 1, [], PROMISE, "", "absent"])},
    ),
    "data_scales": Call(targetdp.data_scales, {"X": TABLE}, {}),
    "private_scales": Call(
        targetdp.private_scales,
        {"X": TABLE, "epsilon": 50.0, "rng": rng()},
        {
            "epsilon": Argument([*NOT_NUMBERS, *OUTSIDE, 0, 9e-5, 101], "[0.0001, 100]"),
            "rng": Argument(NOT_GENERATORS, "np.random.default_rng(seed)"),
        },
    ),
    "normalize": Call(
        targetdp.normalize,
        {"X": TABLE, "scales": UNIT, "rows": "clip"},
        {
            "scales": instance((np.zeros(2), np.ones(2)), ColumnScales),
            "rows": word("clip", "unit", "largest"),
        },
    ),
    "SimulatedPrivacy": Call(
        fitted,
        {"mechanism": "gaussian", "B": 0.5, "epsilon": 1.0, "delta": 1e-5},
        {
            "mechanism": Argument(NOT_WORDS, "least-noise"),
            "B": DISTANCE,
            "epsilon": number("(0, inf)", 0),
            "delta": ANY_DELTA,
        },
    ),
    # Attacks
    "singling_out": Call(
        targetdp.singling_out,
        {"X": TABLE, "X_priv": TABLE},
        {
            "X_priv": OTHER_TABLE,
            "net_sizes": Argument([None, 1, 0.5, "1", [-1], [math.nan], [None], [[1.0]], ["1"], [HUGE]]),
            "confidence": INSIDE,
            "progress": WATCHER,
        },
    ),
    "attribute_inference": Call(
        targetdp.attribute_inference,
        {"X": TABLE, "X_priv": TABLE, "holdout": TABLE, "rng": rng()},
        {
            "X_priv": OTHER_TABLE,
            "holdout": optional(OTHER_TABLE),
            "known": Argument([0, 1, "1", [], [0], [2], [1, 1], [1.0], [True], [None]]),
            "draws": whole("1 to any", 0),
            "tolerance": number("[0, inf)"),
            "zero_tolerance": optional(number("[0, inf)")),
            "people": optional(whole("1 to 200", 0, 201)),
            "columns": Argument([1, "ab", [], ["a"], ["a", "a"], [1, 2], ["a", "b", "c"]]),
            "compatibility": Argument([1, "", "Anonymeter", True, ["anonymeter"]]),
            "confidence": INSIDE,
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "split_holdout": Call(
        targetdp.split_holdout,
        {"X": TABLE, "holdout": 20},
        {"holdout": whole("1 to 199", 0, 200), "rng": ANY_RNG},
    ),
    "distinguishing": Call(
        targetdp.distinguishing,
        {"mechanism": GAUSSIAN, "dimensions": 2},
        {
            "mechanism": Argument([1, "gaussian", PROMISE, GaussianNoise, TABLE]),
            "dimensions": COLUMNS,
            "formula": word("exact"),
            "B": optional(DISTANCE),
            "scales_spent": Argument([1, "x", GAUSSIAN, TABLE]),
            "further": Argument([1, "x", [GAUSSIAN], TABLE]),
            "elsewhere": Argument([1, "x", [GAUSSIAN], TABLE]),
        },
    ),
    "linkage": Call(
        targetdp.linkage,
        {"X": TABLE, "X_priv": TABLE},
        {
            "X_priv": OTHER_TABLE,
            "noise": NOISE,
            "ranks": RANKS,
            "assignment_limit": whole("0 to"),
            "matching_limit": whole("0 to"),
            "confidence": INSIDE,
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "linkability": Call(
        targetdp.linkability,
        {"release_a": TABLE, "release_b": TABLE},
        {
            "release_a": OTHER_TABLE,
            "release_b": OTHER_TABLE,
            "shared": Argument([1, "01", [], [0], [(0,)], [(0, 2)], [(-1, 0)], [(0.0, 0)], [("a", "a")]]),
            "seeds": Argument([-1, 0, True, "3", 0.5, 201, [0, 0], [200], [-1], [0.5], []]),
            "noise_a": NOISE,
            "noise_b": NOISE,
            "ranks": RANKS,
            "confidence": INSIDE,
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "membership": Call(
        targetdp.membership,
        {"X": TABLE, "X_priv": TABLE, "holdout": TABLE},
        {
            "X_priv": OTHER_TABLE,
            "holdout": OTHER_TABLE,
            "noise": NOISE,
            "most_pairs": whole("to any", 0),
            "confidence": INSIDE,
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "reconstruction": Call(
        targetdp.reconstruction,
        {"X_priv": TABLE, "mechanism": GAUSSIAN},
        {
            "X_priv": OTHER_TABLE,
            "mechanism": Argument([None, 1, "gaussian", PROMISE, GaussianNoise, TABLE, Mondrian(2)]),
            "confidence": INSIDE,
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "neighborhood": Call(
        targetdp.neighborhood,
        {"X": TABLE, "B": 0.5},
        {
            "B": DISTANCE,
            "people": optional(whole("1 to 200", 0, 201)),
            "rng": Argument([]),
            "progress": WATCHER,
        },
    ),
    "audit": Call(
        targetdp.audit,
        {"mechanism": GAUSSIAN, "dimensions": 2, "runs": 1000},
        {
            "mechanism": instance(Mondrian(2), GaussianNoise, PROMISE),
            "dimensions": COLUMNS,
            "distance": optional(DISTANCE),
            "delta": optional(number("[0, 1)", 1)),
            "runs": Argument(whole("", 999, 10**13).bad, "1000 to 50000000"),
            "confidence": Argument(number("", 0.5, 1).bad, "(0.5, 1)"),
            "rng": ANY_RNG,
            "progress": WATCHER,
        },
    ),
    "worst_of_means": Call(
        targetdp.worst_of_means,
        {"simulations": [targetdp.singling_out(TABLE, TABLE)] * 2},
        {"simulations": Argument([[], (), [1], [None, None], 5, None, "ab"]), "confidence": INSIDE},
    ),
    # Privacy losses
    "GaussianLoss": Call(GaussianLoss, {"mu": 1.0}, {"mu": number("[0, inf)")}),
    "SphericalLaplaceLoss": Call(
        SphericalLaplaceLoss,
        {"shift": 1.0, "dimensions": 3},
        {"shift": number("[0, inf)"), "dimensions": COLUMNS},
    ),
    "StaircaseLoss": Call(
        StaircaseLoss,
        {"shift": 1.0, "level": 1.0, "gamma": 0.3},
        {"shift": number("[0, inf)"), "level": number("(0, inf)", 0), "gamma": number("(0, 1)", 0, 1)},
    ),
    "ResponseLoss": Call(
        ResponseLoss,
        {"level": 1.0, "answers": 4},
        {"level": number("[0, inf)"), "answers": whole("", 1, 2**17)},
    ),
    "StatedLoss": Call(
        StatedLoss,
        {"stated_epsilon": 1.0, "stated_delta": 0.1},
        {"stated_epsilon": number("[0, inf)"), "stated_delta": ANY_DELTA},
    ),
    "PrivacyFilter": Call(
        PrivacyFilter,
        {"kind": "renyi", "epsilon": 4.0, "delta": 0.1, "order": 2.0},
        {
            "kind": Argument(NOT_WORDS, "gaussian, pure, renyi", ("renyi",)),
            "epsilon": number("[0, inf)"),
            "delta": number("(0, 1)", 0, 1, 2),
            "order": Argument(
                [*(bad for bad in NOT_NUMBERS if bad is not None), *OUTSIDE, 1, 0.5, 2e6],
                "(1, 1e+06]",
                (3, None),
            ),
        },
    ),
    "Imperfection": Call(
        Imperfection,
        {"log_error": 0.1, "tail": 0.1},
        {"log_error": number("[0, inf)"), "tail": ANY_DELTA},
    ),
    "ImperfectLoss": Call(
        ImperfectLoss,
        {"ideal": GaussianLoss(1.0), "imperfection": Imperfection(0.1, 0.1)},
        {"ideal": instance(), "imperfection": instance()},
    ),
    "PrivacyLoss.epsilon": Call(GaussianLoss(1.0).epsilon, {"delta": 0.1}, {"delta": number("[0, 1)", 1)}),
    # Methods
    "Guarantee.at_distance": Call(PROMISE.at_distance, {"distance": 0.1}, {"distance": DISTANCE}),
}

SOME_DISTANCES = Argument([None, True, "1", math.nan, -1, 0, 2.5, [1.0]], "(0, 2]")
SOME_DELTAS = Argument([None, True, "1", math.nan, -1, 1, [0.5]], "[0, 1)")
SOME_COLUMNS = Argument([None, True, "2", math.nan, -1, 0, 2.5])
TOO_MANY_TOO = Argument([*SOME_COLUMNS.bad, check.MAX_COLUMNS + 1])

METHODS: dict[str, NoiseMechanism] = {
    "GaussianNoise": GAUSSIAN,
    "SphericalLaplace": SphericalLaplace(**CLAIM),
    "PrivateProjection": PROJECTION,
    "Partitioned": Partitioned(GAUSSIAN),
}
for _name, _mechanism in METHODS.items():
    CALLS[f"{_name}.epsilon"] = Call(
        _mechanism.epsilon,
        {"distance": 0.1, "delta": 0.1, "dimensions": 2},
        {"distance": SOME_DISTANCES, "delta": SOME_DELTAS, "dimensions": TOO_MANY_TOO},
    )
    CALLS[f"{_name}.privacy_loss"] = Call(
        _mechanism.privacy_loss,
        {"distance": 0.1, "dimensions": 2},
        {"distance": SOME_DISTANCES, "dimensions": TOO_MANY_TOO},
    )
    CALLS[f"{_name}.noise_sd"] = Call(_mechanism.noise_sd, {"dimensions": 2}, {"dimensions": SOME_COLUMNS})
    CALLS[f"{_name}.noise_covariance"] = Call(
        _mechanism.noise_covariance, {"dimensions": 2}, {"dimensions": SOME_COLUMNS}
    )


def label(value: Any) -> str:
    if type(value) is int and abs(value) == HUGE:
        return "huge" if value > 0 else "-huge"
    return f"{type(value).__name__} {value!r}"


def complaint(name: str, argument: str, value: Any) -> str | None:
    """What is wrong with how a bad value is met; None if it is refused as it should be."""
    call = CALLS[name]
    try:
        call.run(**{**call.good, argument: value})
    except (ValueError, TypeError) as error:
        missing = [text for text in (argument, call.arguments[argument].says) if text not in str(error)]
        return f"{label(value)}: no {missing} in {str(error)!r}" if missing else None
    except Exception as error:  # noqa: BLE001 (whatever else it is, it is wrong)
        return f"{label(value)}: {error!r}"
    return f"{label(value)}: accepted"


ARGUMENTS = [(name, argument) for name, call in CALLS.items() for argument in call.arguments]


def test_nothing_public_is_forgotten() -> None:
    """A new name needs an entry in `CALLS`, with every one of its arguments."""
    names = {name.split(",")[0] for name in CALLS}
    assert set(dir(targetdp)) - {"__version__", "Floats", "check"} - RESULT_TYPES <= names
    assert set(dir(accounting)) - {"PrivacyLoss", "FilterKind", "largest_mu", "largest_shift"} <= names
    for name, call in CALLS.items():
        if call.run is fitted:  # scikit-learn's own check of random_state is in test_transformer.py
            parameters = set(inspect.signature(SimulatedPrivacy).parameters) - {"random_state"}
        else:
            parameters = set(inspect.signature(call.run).parameters)
        assert parameters - {"X"} == set(call.arguments), name


@pytest.mark.parametrize("name", CALLS)
def test_good_arguments_work(name: str) -> None:
    """Or what follows would prove nothing."""
    call = CALLS[name]
    call.run(**call.good)
    for argument, kind in call.arguments.items():
        for value in kind.odd:
            call.run(**{**call.good, argument: value})


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_bad_arguments_are_refused_by_name(name: str, argument: str) -> None:
    values = CALLS[name].arguments[argument].bad
    complaints = [text for value in values if (text := complaint(name, argument, value))]
    assert not complaints, "\n".join(complaints)


def test_arguments_that_meet_two_checks_are_refused_by_either() -> None:
    with pytest.raises(ValueError, match=r"^epsilon = 1e-05 is outside \[0.0001, 100\]"):
        Staircase(B=1, epsilon=1e-5)
    with pytest.raises(
        ValueError, match=r"^rows = 2 is outside 3 to 1000000000000000: every part needs a row"
    ):
        Partitioned(GAUSSIAN, parts=3, rows=2)
    with pytest.raises(TypeError, match=r"^Staircase has no δ to set per part: leave rows out"):
        Partitioned(Staircase(B=1, epsilon=1), rows=100)


@pytest.mark.parametrize(
    "run",
    [targetdp.sequential, targetdp.parallel, targetdp.compose],
    ids=["sequential", "parallel", "compose"],
)
def test_nothing_at_all_is_refused(run: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"no (guarantees|losses) were given: compose at least one"):
        run()


# Tables

PARTITIONED = Partitioned(GAUSSIAN, parts=2)
MECHANISMS: dict[str, Mechanism] = {
    "GaussianNoise": GAUSSIAN,
    "SphericalLaplace": SphericalLaplace(**CLAIM),
    "PrivateProjection": PROJECTION,
    "PrivateProjection, exact": PrivateProjection(**SHARES, calibration="exact"),
    "PrivateProjection, rank 1": PrivateProjection(**SHARES, rank=1),
    "Mondrian": Mondrian(2),
    "Mondrian, means": Mondrian(2, value="mean"),
    "Partitioned": PARTITIONED,
    "Staircase": Staircase(B=0.5, epsilon=1.0),
}


def scaled(X: Any, rows: Any) -> Floats:
    """Normalize by public scales of the table's own width, if it has one."""
    columns = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else 3
    columns = columns if 0 < columns < 100 else 3
    return targetdp.normalize(X, targetdp.declared_scales([0.0] * columns, [2.0] * columns), rows).X


def simulated(mechanism: Mechanism) -> Callable[[Any], Floats]:
    return lambda X: mechanism.privatize(X, rng())


TAKERS: dict[str, Callable[[Any], Any]] = {
    **{f"{name}.privatize": simulated(mechanism) for name, mechanism in MECHANISMS.items()},
    "Mondrian.classes": Mondrian(2).classes,
    "data_scales": targetdp.data_scales,
    "private_scales": lambda X: targetdp.private_scales(X, epsilon=100.0, rng=rng()),
    "normalize": lambda X: scaled(X, "clip"),
    "normalize, unit": lambda X: scaled(X, "unit"),
    "normalize, largest": lambda X: scaled(X, "largest"),
}


def holed(value: float) -> Floats:
    X = np.zeros((4, 3))
    X[1, 2] = X[3, 0] = value
    return X


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "None": (None, "object"),
    "a number": (1.5, "()"),
    "0-d": (np.array(1.5), "()"),
    "1-D": (np.ones(3), "X.reshape(-1, 1)"),
    "a flat list": ([1.0, 2.0, 3.0], "(3,)"),
    "3-D": (np.ones((2, 3, 1)), "(2, 3, 1)"),
    "no rows": (np.ones((0, 3)), "(0, 3)"),
    "no columns": (np.ones((3, 0)), "(3, 0)"),
    "an empty list": ([], "(0,)"),
    "an empty row": ([[]], "(1, 0)"),
    "text": ("table", "dtype <U5"),
    "a table of text": (np.full((4, 3), "1.5"), "dtype <U3"),
    "one text": ([[1.0, 2.0, "3"], [1.0, 2.0, 3.0]], "encode or drop"),
    "bytes": (np.full((4, 3), b"1"), "dtype |S1"),
    "objects": (np.ones((4, 3), dtype=object), "dtype object"),
    "a missing value": ([[1.0, 2.0, None], [1.0, 2.0, 3.0]], "dtype object"),
    "a huge integer": ([[1, 2, HUGE], [1, 2, 3]], "dtype object"),
    "complex": (np.ones((4, 3), dtype=complex), "dtype complex128"),
    "booleans": (np.ones((4, 3), dtype=bool), "dtype bool"),
    "dates": (np.zeros((4, 3), dtype="M8[D]"), "dtype datetime64"),
    "spans of time": (np.zeros((4, 3), dtype="m8[D]"), "dtype timedelta64"),
    "records": (np.zeros((4, 3), dtype=[("a", "f8")]), "dtype [("),
    "a dictionary": ({"a": [1.0], "b": [2.0]}, "dtype object"),
    "a set": ({1.0, 2.0}, "dtype object"),
    "a generator": ((row for row in [[1.0, 2.0, 3.0]]), "dtype object"),
    "a sparse matrix": (sparse.csr_array(np.eye(3)), "dtype object"),
    "ragged rows": ([[1.0, 2.0, 3.0], [1.0]], "not a regular array"),
    "NaN": (holed(math.nan), "2 values that are NaN or infinite (first: row 1, column 2)"),
    "infinity": (holed(math.inf), "2 values that are NaN or infinite (first: row 1, column 2)"),
    "minus infinity": (holed(-math.inf), "2 values that are NaN or infinite (first: row 1, column 2)"),
    "NaN in single precision": (holed(math.nan).astype(np.float32), "(first: row 1, column 2)"),
    "NaN in Fortran order": (np.asfortranarray(holed(math.nan)), "(first: row 1, column 2)"),
    "NaN in a list": (holed(math.nan).tolist(), "(first: row 1, column 2)"),
    "masked values": (np.ma.masked_equal(np.arange(12.0).reshape(4, 3), 5.0), "masked"),
}


@contextmanager
def about(table: str) -> Iterator[None]:
    """Says of which table something is not true."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"table: {table}")
        raise


@pytest.mark.parametrize("name", TAKERS)
def test_a_bad_table_is_refused(name: str) -> None:
    for table, (X, says) in BAD_TABLES.items():
        with about(table):
            with pytest.raises((ValueError, TypeError), match=r"^X ") as caught:
                TAKERS[name](X)
            # Scales know the number of columns that they need, and may complain of that first.
            assert says in str(caught.value) or "columns" in str(caught.value)


@pytest.mark.parametrize("name", TAKERS)
def test_a_table_wider_than_the_noise_covers_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^X('s number of columns = 16385 is outside| has 16385 columns)"):
        TAKERS[name](np.zeros((2, check.MAX_COLUMNS + 1)))


@pytest.mark.parametrize(
    ("mechanism", "X", "message"),
    [
        (Mondrian(3), np.ones((2, 2)), r"^group_size = 3 is more than the 2 rows of X"),
        (Partitioned(GAUSSIAN, parts=3), np.ones((2, 2)), r"^parts = 3 is more than the 2 rows of X"),
        (
            Partitioned(GAUSSIAN, parts=2, rows=9),
            np.ones((8, 2)),
            r"^X has 8 rows, but δ was set for rows = 9",
        ),
        (
            Staircase(B=1, epsilon=1),
            np.ones((2, 2)),
            r"^dimensions = 2: the staircase mechanism takes exactly 1",
        ),
        (GaussianNoise(B=1e-9, epsilon=100, delta=1e-5), np.ones((2, 2)), "use a larger B"),
        (SphericalLaplace(B=1e-9, epsilon=100), np.ones((2, 2)), "use a larger B"),
        (Staircase(B=1e-9, epsilon=30), np.ones((2, 1)), "use a larger B"),
    ],
)
def test_a_table_that_does_not_fit_its_mechanism_is_refused(
    mechanism: Mechanism, X: Floats, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mechanism.privatize(X, rng())


@pytest.mark.parametrize("kind", [GaussianNoise, SphericalLaplace, Staircase, PrivateProjection])
def test_a_B_too_small_for_any_noise_is_refused(kind: Any) -> None:
    arguments = {
        GaussianNoise: {"epsilon": 1, "delta": 1e-5},
        PrivateProjection: {name: value for name, value in SHARES.items() if name != "B"},
    }.get(kind, {"epsilon": 1})
    with pytest.raises(ValueError, match=r"B = 5e-324 .* use a larger B"):
        kind(B=5e-324, **arguments)


def test_an_epsilon2_too_small_for_any_noise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon2 = 5e-324 is below 0\.0001"):
        PrivateProjection(**{**SHARES, "epsilon2": 5e-324}, rank=1)


def test_very_many_parts_have_the_guarantee_of_one() -> None:
    assert Partitioned(GAUSSIAN, parts=10**30).guarantee == GAUSSIAN.guarantee


# Odd tables that are good

WHOLE = np.random.default_rng(1).integers(-9, 10, size=(40, 3)).astype(np.float64)
MIXED = np.random.default_rng(2).normal(size=(40, 3))

GOOD_TABLES: dict[str, Callable[[], Any]] = {
    "one row": lambda: WHOLE[:1],
    "two rows": lambda: WHOLE[:2],
    "one column": lambda: np.ascontiguousarray(WHOLE[:, :1]),
    "one value": lambda: np.array([[0.5]]),
    "integers": lambda: WHOLE.astype(np.int64),
    "small integers": lambda: WHOLE.astype(np.int8),
    "unsigned": lambda: np.abs(WHOLE).astype(np.uint64),
    "largest integers": lambda: np.full((40, 3), np.iinfo(np.int64).min),
    "float32": lambda: MIXED.astype(np.float32),
    "float16": lambda: MIXED.astype(np.float16),
    "big-endian": lambda: MIXED.astype(">f8"),
    "Fortran": lambda: np.asfortranarray(MIXED),
    "strided": lambda: np.repeat(np.repeat(MIXED, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda: MIXED[::-1, ::-1],
    "a broadcast row": lambda: np.broadcast_to(MIXED[0], (40, 3)),
    "a list of lists": MIXED.tolist,
    "tuples": lambda: tuple(map(tuple, MIXED.tolist())),
    "a list of arrays": lambda: list(MIXED),
    "unmasked": lambda: np.ma.masked_array(MIXED),
    "a million-fold difference": lambda: MIXED * [1e-6, 1.0, 1e6],
    "a million-fold difference of rows": lambda: MIXED * np.geomspace(1e-6, 1e6, 40)[:, None],
    "huge": lambda: MIXED * 1e150,
    "the largest": lambda: np.full((40, 3), 1e153) * np.sign(MIXED),
    "denormal": lambda: np.full((40, 3), 5e-324),
    "zeros": lambda: np.zeros((40, 3)),
    "negative zeros": lambda: -np.zeros((40, 3)),
    "equal rows": lambda: np.ones((40, 3)),
    "a constant column": lambda: np.column_stack([np.ones(40), MIXED[:, 0], np.zeros(40)]),
    "wide": lambda: np.random.default_rng(3).normal(size=(5, 60)),
}


@pytest.mark.parametrize("writeable", [True, False], ids=["writeable", "read-only"])
@pytest.mark.parametrize("name", TAKERS)
def test_an_odd_good_table_works_and_is_not_changed(name: str, writeable: bool) -> None:
    for table, make in GOOD_TABLES.items():
        with about(table):
            must_work_and_stay(make(), name, writeable)


def must_work_and_stay(X: Any, name: str, writeable: bool) -> None:
    if name.startswith("Staircase"):
        X = X[:, :1] if isinstance(X, np.ndarray) else [list(row)[:1] for row in X]
    before = np.array(X)
    if isinstance(X, np.ndarray) and X.flags.writeable:
        X.setflags(write=writeable)
    state = (X.flags.writeable, X.strides, X.dtype) if isinstance(X, np.ndarray) else ()
    if name.startswith(("Mondrian", "Partitioned")) and len(before) < 2:
        with pytest.raises(ValueError, match=r"^(group_size|parts) = 2 is more than the 1 rows of X"):
            TAKERS[name](X)
    elif name == "private_scales" and len(before) < 40:
        with pytest.raises(ValueError, match=r"needs at least \d+ rows, .* or public scales$"):
            TAKERS[name](X)
    elif name == "private_scales" and (np.ptp(before, axis=0) == 0).any():
        with pytest.raises(UntoldScalesError, match=r"^private scales were drawn, and cannot be used"):
            TAKERS[name](X)
    elif name == "private_scales" and float(np.abs(before).max()) > 1e100:
        with pytest.raises(UntoldScalesError, match=r"values are mostly below 9e-10 or above 1e\+12"):
            TAKERS[name](X)
    else:
        check_result(TAKERS[name](X), before.shape)
    assert np.array_equal(np.array(X), before)
    assert state == ((X.flags.writeable, X.strides, X.dtype) if isinstance(X, np.ndarray) else ())


def check_result(result: Any, shape: tuple[int, ...]) -> None:
    if isinstance(result, ColumnScales):
        assert result.center.shape == result.scale.shape == shape[1:]
        assert np.isfinite(result.center).all()
        assert (result.scale > 0).all()
        return
    assert type(result) is np.ndarray
    assert np.isfinite(result).all()
    assert result.flags.c_contiguous
    if result.dtype == np.int64:  # class numbers
        assert result.shape == shape[:1]
    else:
        assert result.dtype == np.float64
        assert result.shape == shape


@pytest.mark.parametrize(
    "table", ["integers", "float32", "Fortran", "strided", "a list of lists", "unmasked"]
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_layout_does_not_change_the_result(name: str, table: str) -> None:
    X = GOOD_TABLES[table]()
    if name == "Staircase":
        X = np.array(X)[:, :1]
    plain = np.array(X, dtype=np.float64, order="C")
    assert np.array_equal(simulated(MECHANISMS[name])(X), simulated(MECHANISMS[name])(plain))


# Generators


@pytest.mark.parametrize("bad", NOT_GENERATORS, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_not_a_generator_is_refused_with_the_remedy(name: str, bad: Any) -> None:
    """A seed in place of a generator would make a release that anyone can repeat."""
    with pytest.raises(TypeError, match=r"(?s)^rng = .* is not a numpy Generator: ") as caught:
        MECHANISMS[name].privatize(np.ones((4, 1)), bad)
    message = str(caught.value)
    assert "pass np.random.default_rng(seed) to simulate" in message
    assert "cannot be seeded" in message
