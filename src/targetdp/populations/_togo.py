"""Invented subscribers of Togo, for an aid program: 10 features of phone use, and consumption.

Nobody here is real. Matched to Table S1: 4,201 people, 10 features, consumption in [0.005, 1] with its mean,
deviation and skew. Tuned: a ridge regression finds the poorest 29% with an accuracy near 0.69, about what the
paper implies. Invented, with nothing to match: how each feature is distributed, and how features relate to
each other, to sex and to region (`docs/populations.md`).
"""

import numpy as np

from targetdp._core import Floats
from targetdp.populations import _phone_use as use
from targetdp.populations._population import Columns, Population, border, declare

SIZE = 4_201
LOWEST, HIGHEST = 0.005, 1.0

LOG_CONSUMPTION = (-2.91813, 0.69810, 0.02919, 0.00474)
"""Coefficients of 1, z, z² and z³ for a standing z.

They solve four equations for a batch: mean 0.073, deviation 0.068, skew 4.207, and a consumption of 0.0055
where the lowest stratum ends, so that the lowest of all is no outlier.
"""

REGIONS = {"Savanes": 0.13, "Kara": 0.12, "Centrale": 0.10, "Plateaux": 0.21, "Maritime": 0.20, "Lomé": 0.24}
"""From the poorest to the richest, with their shares of subscribers."""

_CALLS_IN_LOME = np.array([-5.0, -4.5, -4.0, -3.2, -1.5, 1.8])
_CALLS_IN_SAVANES = np.array([2.0, -2.5, -4.0, -5.5, -6.0, -4.5])
"""Logits of the usual share of calls made there, for people of each region."""

_REGION_FOLLOWS_STANDING = 0.22
_WOMEN, _WOMEN_BY_STANDING = -0.05, -0.15
"""Women are those whose own number lies below a line that falls with the standing."""

LATENTS = {
    "night_calls": use.Latent(0.17, 0.60, -0.25),
    "weekday_text_entropy": use.Latent(0.22, 0.40, -0.15),
    "contacts": use.Latent(0.25, 0.65, -0.30),
    "top_up_total": use.Latent(0.31, 0.55, -0.20),
    "international_calls": use.Latent(0.20, 0.30),
    "days_active": use.Latent(0.13, 0.65, -0.15),
    "incoming_share": use.Latent(-0.17, -0.35, 0.20),
    "mean_call_seconds": use.Latent(0.07, 0.15, 0.15),
    "share_calls_in_lome": use.Latent(0.08, 0.05),
    "share_calls_in_savanes": use.Latent(-0.05, 0.05),
}


def _make(standing: Floats, normals: Floats) -> Columns:
    of_region, of_sex, habit, *own = normals
    region = use.ordered(use.mixed(_REGION_FOLLOWS_STANDING, standing, of_region), REGIONS)
    women = of_sex < _WOMEN + _WOMEN_BY_STANDING * standing
    f = use.latents(LATENTS, standing, habit, women, own)
    return {
        "night_calls": use.count(f["night_calls"], 14, 0.9),
        "weekday_text_entropy": use.entropy(f["weekday_text_entropy"], 1.5, 1.0),
        "contacts": use.count(f["contacts"], 42, 0.65),
        "top_up_total": use.amount(f["top_up_total"], 2_400, 0.8, step=50),
        "international_calls": use.count(f["international_calls"], 0.9, 1.2),
        "days_active": use.days(f["days_active"], 1.6, 1.2),
        "incoming_share": use.share(f["incoming_share"], 0.3, 0.6),
        "mean_call_seconds": use.seconds(f["mean_call_seconds"], 70, 0.5),
        "share_calls_in_lome": use.share(f["share_calls_in_lome"], _CALLS_IN_LOME[region], 1.4),
        "share_calls_in_savanes": use.share(f["share_calls_in_savanes"], _CALLS_IN_SAVANES[region], 1.4),
        "consumption": consumption(standing),
        "sex": women.astype(np.uint8),
        "region": region,
    }


def consumption(standing: Floats) -> Floats:
    """Consumption as a share of the largest; a batch's lowest and highest are exactly at the ends."""
    value: Floats = np.polynomial.Polynomial(LOG_CONSUMPTION)(standing)
    np.exp(value, out=value)
    np.clip(value, LOWEST, HIGHEST, out=value)
    end = border(1, SIZE)
    value[standing < end] = LOWEST
    value[standing > -end] = HIGHEST
    return value


declare(
    Population(
        name="togo",
        size=SIZE,
        stream=1,
        features=tuple(LATENTS),
        target="consumption",
        groups={"sex": ("male", "female"), "region": tuple(REGIONS)},
        money=(),
        normals_each=3 + len(LATENTS),
        make=_make,
    )
)
