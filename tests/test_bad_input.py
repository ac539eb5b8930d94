"""Bad input, for everything that is public: a ValueError or TypeError that says what is wrong, and where.

Each public name has its entry in `CALLS`; a test keeps the list complete. Every argument is tried with
everything that it must refuse, one at a time. Tables have their own list, of bad ones and of odd good ones.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import targetdp
from targetdp import (
    ColumnScales,
    GaussianNoise,
    Guarantee,
    Mondrian,
    Partitioned,
    PrivateProjection,
    SimulatedPrivacy,
    SphericalLaplace,
    Staircase,
    accounting,
    check,
)
from targetdp.accounting import (
    GaussianLoss,
    Imperfection,
    ImperfectLoss,
    SphericalLaplaceLoss,
    StaircaseLoss,
    StatedLoss,
)
from targetdp.mechanisms import NoiseMechanism

RESULT_TYPES = {"Normalized", "Privatized"}
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

CLAIM: dict[str, Any] = {"B": 0.5, "epsilon": 1.0, "delta": 1e-5}
SHARES: dict[str, Any] = {"B": 0.5, "epsilon1": 1.0, "epsilon2": 0.5, "delta1": 1e-5, "delta2": 1e-6, "k": 20}
GAUSSIAN = GaussianNoise(**CLAIM)
PROJECTION = PrivateProjection(**SHARES)
PROMISE = Guarantee(0.5, 1.0, 1e-5)
TABLE = np.linspace(-1, 1, 400).reshape(200, 2)
UNIT = ColumnScales(np.zeros(2), np.ones(2), "declared")


def fitted(**parameters: Any) -> Any:
    return SimulatedPrivacy(**parameters).fit(TABLE)


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
    "accuracy_ceiling": Call(targetdp.accuracy_ceiling, {"guarantee": PROMISE}, {"guarantee": instance()}),
    "is_ruled_out": Call(
        targetdp.is_ruled_out,
        {"guarantee": PROMISE, "accuracy": 0.75},
        {"guarantee": instance(), "accuracy": Argument([*NOT_NUMBERS, *OUTSIDE, 0.49, 1, 2], "[0.5, 1)")},
    ),
    "largest_B": Call(
        targetdp.largest_B,
        {"accuracy": 0.75, "epsilon": 1.0, "delta": 0.1},
        {
            "accuracy": Argument([*NOT_NUMBERS, *OUTSIDE, 0.49, 1, 2], "[0.5, 1)"),
            "epsilon": number("[1e-300, inf)", 0),
            "delta": ANY_DELTA,
        },
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
            "source": Argument(NOT_WORDS, "data, declared, private"),
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
    "data_scales": Call(targetdp.data_scales, {"X": TABLE}, {}),
    "private_scales": Call(
        targetdp.private_scales,
        {"X": TABLE, "lower": [-1, -1], "upper": [1, 1], "epsilon": 5.0, "rng": rng()},
        {
            "lower": vector([2.0, 2.0]),
            "upper": vector([-2.0, -2.0]),
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
    "StatedLoss": Call(
        StatedLoss,
        {"stated_epsilon": 1.0, "stated_delta": 0.1},
        {"stated_epsilon": number("[0, inf)"), "stated_delta": ANY_DELTA},
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
        {"distance": DISTANCE, "delta": number("[0, 1)", 1), "dimensions": COLUMNS},
    )
    CALLS[f"{_name}.privacy_loss"] = Call(
        _mechanism.privacy_loss,
        {"distance": 0.1, "dimensions": 2},
        {"distance": DISTANCE, "dimensions": COLUMNS},
    )
    CALLS[f"{_name}.noise_sd"] = Call(_mechanism.noise_sd, {"dimensions": 2}, {"dimensions": COLUMNS})
    CALLS[f"{_name}.noise_covariance"] = Call(
        _mechanism.noise_covariance, {"dimensions": 2}, {"dimensions": COLUMNS}
    )

KNOWN: dict[str, tuple[set[str] | None, str]] = {}


def label(value: Any) -> str:
    if type(value) is int and abs(value) == HUGE:
        return "huge" if value > 0 else "-huge"
    return repr(value).split(" at 0x")[0].replace("\n", "")


def bad_arguments() -> Iterator[Any]:
    for name, call in CALLS.items():
        for argument, kind in call.arguments.items():
            for value in kind.bad:
                yield pytest.param(name, argument, value, id=f"{name}-{argument}-{label(value)}")


def test_nothing_public_is_forgotten() -> None:
    names = {name.split(",")[0] for name in CALLS}
    assert set(targetdp.__all__) - {"__version__"} - RESULT_TYPES <= names
    assert set(accounting.__all__) - {"PrivacyLoss"} <= names


@pytest.mark.parametrize("name", CALLS)
def test_good_arguments_work(name: str) -> None:
    """Or what follows would prove nothing."""
    call = CALLS[name]
    call.run(**call.good)
    for argument, kind in call.arguments.items():
        for value in kind.odd:
            call.run(**{**call.good, argument: value})


@pytest.mark.parametrize(("name", "argument", "value"), list(bad_arguments()))
def test_a_bad_argument_is_refused_by_name(name: str, argument: str, value: Any) -> None:
    call = CALLS[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        call.run(**{**call.good, argument: value})
    message = str(caught.value)
    assert argument in message
    assert call.arguments[argument].says in message
