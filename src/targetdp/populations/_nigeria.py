"""Invented applicants for a small loan in Nigeria: 15 features of phone use, and who is a low risk.

Nobody here is real. Matched to Table S1: 20,788 people, 15 features, 63.3% at low risk (which settles
deviation and skew). Loans are around $10, as the paper says. Tuned: a logistic regression is right about 0.79
of the time, and revenue is such that lending to everyone, about what classic differential privacy leaves,
turns today's profit into a loss some three and a half times as large, as the paper reports. Invented, with
nothing to match: how each feature is distributed, and how features relate to each other, to the loan, to sex
and to region (`docs/populations.md`).
"""

import numpy as np

from targetdp._core import Floats
from targetdp.populations import _phone_use as use
from targetdp.populations._population import Columns, Population, border, declare

SIZE = 20_788
LOW_RISKS = 13_155
"""Of 20,788: the mean, the deviation and the skew of Table S1, each to its three digits."""

ZONES = {
    "North East": 0.08, "North West": 0.14, "North Central": 0.16,
    "South East": 0.14, "South South": 0.18, "South West": 0.30,
}  # fmt: skip
"""From the highest risks to the lowest, with their shares of applicants."""

_ZONE_FOLLOWS_STANDING = 0.20
_WOMEN, _WOMEN_BY_STANDING = -0.60, 0.10
"""Women are those whose own number lies below a line that rises with the standing."""

_ONE_MONTH = -0.13
"""Loans whose own number is below it run for one month (45% of them), the others for two."""

SMALLEST_LOAN, LARGEST_LOAN = 2.0, 100.0
FEE, FEE_PER_MONTH = 0.10, 0.10
INTEREST_PER_MONTH = 0.01
"""Parts of the loan: what the lender earns if it is repaid, and what the money would earn elsewhere."""

LATENTS = {
    "calls_made": use.Latent(0.30, 0.65, -0.15),
    "incoming_share": use.Latent(-0.27, -0.35, 0.20),
    "night_call_share": use.Latent(-0.32, 0.10, -0.15),
    "international_calls": use.Latent(0.37, 0.20, 0.05),
    "mean_call_seconds": use.Latent(0.15, 0.05, 0.20),
    "texts_sent": use.Latent(0.25, 0.45),
    "contacts": use.Latent(0.45, 0.60, -0.20),
    "contact_entropy": use.Latent(0.42, 0.45, -0.15),
    "top_up_total": use.Latent(0.57, 0.45, -0.10),
    "top_up_count": use.Latent(0.27, 0.50),
    "days_without_balance": use.Latent(-0.60, -0.15, 0.05),
    "data_megabytes": use.Latent(0.37, 0.30, -0.10),
    "days_active": use.Latent(0.35, 0.55, -0.05),
    "sim_age_months": use.Latent(0.50, 0.10, -0.10),
    "places_visited": use.Latent(0.30, 0.45, -0.35),
}


def _make(standing: Floats, normals: Floats) -> Columns:
    of_zone, of_sex, habit, of_loan, of_term, *own = normals
    women = of_sex < _WOMEN + _WOMEN_BY_STANDING * standing
    f = use.latents(LATENTS, standing, habit, women, own)
    loan = use.amount(0.25 * standing + 0.3 * f["top_up_total"] + 0.9 * of_loan, 18, 0.5, step=1) / 2
    np.clip(loan, SMALLEST_LOAN, LARGEST_LOAN, out=loan)
    months = 1.0 + (of_term > _ONE_MONTH)
    return {
        "calls_made": use.count(f["calls_made"], 90, 0.8),
        "incoming_share": use.share(f["incoming_share"], 0.2, 0.6),
        "night_call_share": use.share(f["night_call_share"], -1.8, 0.8),
        "international_calls": use.count(f["international_calls"], 0.9, 1.3),
        "mean_call_seconds": use.seconds(f["mean_call_seconds"], 65, 0.5),
        "texts_sent": use.count(f["texts_sent"], 12, 1.1),
        "contacts": use.count(f["contacts"], 60, 0.65),
        "contact_entropy": use.entropy(f["contact_entropy"], 3.2, 0.9),
        "top_up_total": use.amount(f["top_up_total"], 2_000, 0.8, step=50),
        "top_up_count": use.count(f["top_up_count"], 9, 0.7),
        "days_without_balance": use.days(f["days_without_balance"], -1.2, 1.0),
        "data_megabytes": use.count(f["data_megabytes"], 300, 1.4),
        "days_active": use.days(f["days_active"], 1.8, 1.1),
        "sim_age_months": use.count(f["sim_age_months"], 22, 0.8, most=180),
        "places_visited": use.count(f["places_visited"], 9, 0.7),
        "low_risk": (standing > border(SIZE - LOW_RISKS, SIZE)).astype(np.int32),
        "loan_amount": loan,
        "revenue": np.round((FEE + FEE_PER_MONTH * months) * loan, 2),
        "interest": np.round(INTEREST_PER_MONTH * months * loan, 3),
        "sex": women.astype(np.uint8),
        "region": use.ordered(use.mixed(_ZONE_FOLLOWS_STANDING, standing, of_zone), ZONES),
    }


declare(
    Population(
        name="nigeria",
        size=SIZE,
        stream=2,
        features=tuple(LATENTS),
        target="low_risk",
        groups={"sex": ("male", "female"), "region": tuple(ZONES)},
        money=("loan_amount", "revenue", "interest"),
        normals_each=5 + len(LATENTS),
        make=_make,
    )
)
