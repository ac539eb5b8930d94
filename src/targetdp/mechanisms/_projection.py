"""Algorithm 1, the paper's private projection, in a form that needs n×d instead of n×k noise.

Write R = U·S·Qᵀ (thin singular value decomposition, q = min(d, k) columns). Step 3's P_priv = k⁻¹XR + G
enters Step 6 only through P_priv·Q = k⁻¹X·U·S + G′, whose noise G′ = G·Q is again independent normal of
the same deviation, because Q's columns are orthonormal. With V_r the r leading right singular vectors of
C_priv, Step 6 is

    X_priv = P_priv (V_rᵀR)† V_rᵀ = (k⁻¹X·U·S + G′) · (V_rᵀ·U·S)† · V_rᵀ ,

so n×q noise and one d×d factor give exactly the printed distribution. Results are multiplied by k
(post-processing), which puts them on the scale of X.

With full rank V drops out, (VᵀUS)†Vᵀ = S⁻¹Uᵀ: Steps 4 and 5 change nothing and are not run, and the
accounting charges nothing for them. ε₂ then buys nothing.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from targetdp._core import Floats, check
from targetdp.accounting import GaussianLoss, ImperfectLoss, PrivacyLoss, largest_mu
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    NoiseMechanism,
    ideal_budget,
    named,
    noise_distance,
)
from targetdp.mechanisms._projection_law import (
    MAX_PROJECTION_COLUMNS,
    Projection,
    ProjectionLaw,
    covariance_sensitivity,
    draw_projection,
    fixed_point_growth,
    leading_directions,
    projected_distance,
    public_projection,
)
from targetdp.noise import (
    LARGEST_GAUSSIAN_SHIFT,
    WordStream,
    add_gaussian,
    gaussian_imperfection,
    grid_for,
    row_growth,
)
from targetdp.normalization import clip_rows

Calibration = Literal["printed", "exact"]
"""How a private projection's noise is scaled; `PrivateProjection` says what each word means."""


@dataclass(frozen=True, kw_only=True)
class PrivateProjection(NoiseMechanism):
    """Algorithm 1: (B, ε₁ + ε₂, δ₁ + δ₂)-TDP (Theorem 2).

    R does not depend on the data and need not be secret. A release takes it from the public
    ``projection_seed``, so that `noise_covariance` and `epsilon` describe exactly what is released; a
    simulation draws a fresh R, as printed.

    Args:
        B: The distance that is hidden, in (0, 2].
        epsilon1: ε of the projected rows (Step 3).
        epsilon2: ε of the covariance (Step 4); below 1 for the printed noise.
        delta1: δ of the projected rows.
        delta2: δ of the covariance.
        k: The projection dimension.
        rank: How many directions of V are kept, which is where Steps 4 and 5 begin to matter; by default all.
        calibration: ``"printed"`` uses the paper's noise. ``"exact"`` uses the sensitivity of the projection
            that was drawn, (B/k)·σ_max(R), and the analytic Gaussian scale, for the same claim.
        projection_seed: What a release's R is drawn from.

    Raises:
        ValueError: One of them is outside its range.

    Guarantees: the label above. `epsilon` gives the truth, which is far lower.
    Does not guarantee: that ε₂ buys anything when rank is full (it does not).
    Edges: for k < d the output lies in a random k-dimensional subspace.

    Example:
        >>> mechanism = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9, delta1=1e-5, delta2=1e-5, k=50)
        >>> print(mechanism.guarantee)
        (B=0.25, ε=3.9, δ=2e-05)-TDP
    """

    B: float
    epsilon1: float
    epsilon2: float
    delta1: float
    delta2: float
    k: int = 10_000
    rank: int | None = None
    calibration: Calibration = "printed"
    projection_seed: int = 0

    def __post_init__(self) -> None:
        check.choice("calibration", self.calibration, ("printed", "exact"))
        printed = self.calibration == "printed"
        below = 1.0 if printed else LARGEST_EPSILON
        fields = {
            "B": noise_distance(self.B),
            "epsilon1": check.number(
                "epsilon1", self.epsilon1, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON
            ),
            "epsilon2": check.number(
                "epsilon2", self.epsilon2, above=0, below=below,
                remedy="Lemma 7 needs ε₂ < 1; try 0.9999" if printed else "give a positive share",
            ),
            "delta1": check.number(
                "delta1", self.delta1, at_least=SMALLEST_DELTA, below=0.5, remedy="Lemma 6 needs δ < 1/2"
            ),
            "delta2": check.number("delta2", self.delta2, at_least=SMALLEST_DELTA, below=0.5),
            "k": check.integer("k", self.k, at_least=1, at_most=10**8),
            "rank": None if self.rank is None else check.integer("rank", self.rank, at_least=1),
            "projection_seed": check.integer("projection_seed", self.projection_seed, at_least=0),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.epsilon2 < SMALLEST_EPSILON:
            raise ValueError(
                f"epsilon2 = {self.epsilon2!r} is below {SMALLEST_EPSILON:g}: use a larger share"
            )

    @property
    def guarantee(self) -> Guarantee:
        """Theorem 2: (B, ε₁ + ε₂, δ₁ + δ₂)."""
        return Guarantee(self.B, self.epsilon1 + self.epsilon2, self.delta1 + self.delta2)

    def with_delta(self, delta: float) -> "PrivateProjection":
        """The same mechanism with another total δ, split in the same proportion."""
        share = self.delta1 / (self.delta1 + self.delta2)
        return replace(self, delta1=share * delta, delta2=(1 - share) * delta)

    def privacy_loss(self, *, distance: float, dimensions: int) -> PrivacyLoss:
        """Step 3 alone for full rank, Steps 3 and 4 together (both Gaussian, so μ² adds) otherwise."""
        r, d = check.distance(distance), check.dimensions(dimensions)
        projection = self.public_projection(d)
        if self._is_full(d):
            return self.law(d).privacy_loss(r)
        sigma, grid = self._step3_noise(projection)
        covariance_sigma, covariance_grid = self._step4_noise(d)
        mu = math.hypot(
            projected_distance(projection, r, grid) / sigma,
            self._covariance_moved(r, d, covariance_grid) / covariance_sigma,
        )
        imperfection = gaussian_imperfection(projection.rank + d * (d + 1) // 2, mu)
        return ImperfectLoss(GaussianLoss(mu), imperfection)

    def law(self, dimensions: int) -> ProjectionLaw:
        """Steps 2, 3 and 6 with the public R, at full rank; a truncated V depends on all rows together."""
        d = check.dimensions(dimensions)
        projection = self.public_projection(d)
        if not self._is_full(d):
            raise ValueError(
                f"rank = {self.rank} is below the {d} columns: the directions that are kept depend on all "
                "rows together; leave rank out to privatize rows one by one"
            )
        sigma, grid = self._step3_noise(projection)
        return ProjectionLaw(d, grid, sigma, self.k, self.projection_seed)

    def noise_sd(self, dimensions: int) -> float:
        """Deviation of the noise per coordinate (root mean square over coordinates)."""
        return math.sqrt(float(np.trace(self.noise_covariance(dimensions))) / dimensions)

    def noise_covariance(self, dimensions: int) -> Floats:
        """k²σ²(RRᵀ)⁺ for the public R; a simulation's fresh R has nearly the same for k ≫ d.

        With rank < d the noise lies in the r directions that the private covariance chose; this is its
        average over all choices of directions.
        """
        d = check.dimensions(dimensions)
        projection = self.public_projection(d)
        sigma, _ = self._step3_noise(projection)
        back = self.k * sigma * projection.inverse()
        covariance = back.T @ back
        if self._is_full(d):
            return np.asarray(covariance)
        share = self._used_rank(d) / d
        return np.eye(d) * (share * float(np.trace(covariance)) / d)

    def public_projection(self, dimensions: int) -> Projection:
        """The R of every release with this seed, for this many columns."""
        _not_too_wide(dimensions)
        return public_projection(dimensions, self.k, self.projection_seed)

    def exposed_direction(self, dimensions: int) -> Floats:
        """The direction in which R stretches rows the most."""
        return np.asarray(self.public_projection(dimensions).directions[:, -1])

    def _privatize(self, rows: Floats, words: WordStream, *, fresh: bool) -> Floats:
        d = rows.shape[1]
        _not_too_wide(d)
        projection = draw_projection(d, self.k, words) if fresh else self.public_projection(d)
        if not fresh:
            self._must_keep_its_claim(d)
            if self._is_full(d):
                return self.law(d).add_to(rows, words)
        sigma, grid = self._step3_noise(projection)
        bound = projection.largest / self.k
        projected = add_gaussian(rows @ projection.forward(), sigma, grid, words, bound=bound)  # Steps 2, 3
        if self._is_full(d):
            return np.asarray(projected @ (self.k * projection.inverse()))
        directions = leading_directions(rows, self._used_rank(d), *self._step4_noise(d), words)  # Steps 4, 5
        seen = directions @ projection.directions * projection.lengths  # V_rᵀ·U·S
        return np.asarray(projected @ (self.k * np.linalg.pinv(seen) @ directions))  # Step 6

    def _used_rank(self, d: int) -> int:
        return min(d, self.rank or d)

    def _is_full(self, d: int) -> bool:
        return self._used_rank(d) == d

    def _step3_noise(self, projection: Projection) -> tuple[float, float]:
        """Deviation and grid of the noise on the projected rows."""
        if self.calibration == "printed":
            sigma = printed_step3_sigma(self.B, projection.columns, self.k, self.epsilon1, self.delta1)
            return sigma, grid_for(sigma)
        mu = _calibrated_mu(self.epsilon1, self.delta1, projection.rank)
        stretch = max(projection.largest, 1e-9) / self.k
        grid = grid_for(self.B * stretch / mu)
        return projected_distance(projection, self.B, grid) / mu, grid

    def _step4_noise(self, d: int) -> tuple[float, float]:
        """Deviation and grid of the noise on XᵀX."""
        if self.calibration == "printed":
            sigma = printed_step4_sigma(self.B, self.epsilon2, self.delta2)
            return sigma, grid_for(sigma)
        mu = _calibrated_mu(self.epsilon2, self.delta2, d * (d + 1) // 2)
        grid = grid_for(covariance_sensitivity(self.B) / mu)
        return self._covariance_moved(self.B, d, grid) / mu, grid

    def _covariance_moved(self, distance: float, d: int, grid: float) -> float:
        """Bound on how far XᵀX moves, rounding included."""
        grown = min(2.0, distance + row_growth(d, 0.0))
        return covariance_sensitivity(grown) + fixed_point_growth(d) + row_growth(d * d, grid)

    def _must_keep_its_claim(self, dimensions: int) -> None:
        """Proposition 1 lets an unlikely R break the printed noise; a release checks the R it uses."""
        loss = self.privacy_loss(distance=self.B, dimensions=dimensions)
        if loss.delta(self.guarantee.epsilon) > self.guarantee.delta:
            raise RuntimeError(
                f"projection_seed = {self.projection_seed} gives a projection on which {self.guarantee} "
                "does not hold: use another seed, or calibration='exact'"
            )


def printed_step3_sigma(B: float, d: int, k: int, epsilon1: float, delta1: float) -> float:
    """Step 3: σ = (B/√k)·√(d·ln((2/3)(e − 1) + 1) − ln(δ₁/2)/k)·√(2(ln(1/δ₁) + ε₁))/ε₁.

    Args:
        B: The distance that is hidden.
        d: How many columns the table has.
        k: The projection dimension.
        epsilon1: ε₁.
        delta1: δ₁.

    Returns:
        The deviation of the noise on the projected rows.

    Example:
        >>> round(printed_step3_sigma(0.25, 10, 10_000, 3, 1e-5), 4)
        0.0124
    """
    alpha = B / math.sqrt(k) * math.sqrt(
        d * math.log((2 / 3) * (math.e - 1) + 1) - math.log(delta1 / 2) / k
    )  # fmt: skip
    return alpha * math.sqrt(2 * (math.log(1 / delta1) + epsilon1)) / epsilon1


def printed_step4_sigma(B: float, epsilon2: float, delta2: float) -> float:
    """Step 4 (Lemma 7): σ = 2B·√(2·ln(1.25/δ₂))/ε₂.

    Args:
        B: The distance that is hidden.
        epsilon2: ε₂, below 1.
        delta2: δ₂.

    Returns:
        The deviation of the noise on the covariance.

    Example:
        >>> round(printed_step4_sigma(0.25, 0.5, 1e-5), 3)
        4.845
    """
    return 2 * B * math.sqrt(2 * math.log(1.25 / delta2)) / epsilon2


def _calibrated_mu(epsilon: float, delta: float, normals: int) -> float:
    """The largest shift, in deviations, that so many normals hide up to (ε, δ)."""
    budget = ideal_budget(epsilon, delta, gaussian_imperfection(normals))
    return min(largest_mu(*budget), LARGEST_GAUSSIAN_SHIFT)


def _not_too_wide(dimensions: int) -> None:
    """Refuse wide tables, whose R takes minutes to decompose for noise that is always larger."""
    if dimensions > MAX_PROJECTION_COLUMNS:
        raise ValueError(
            f"X has {dimensions} columns: a private projection takes 1 to {MAX_PROJECTION_COLUMNS}; "
            "use SphericalLaplace or GaussianNoise"
        )


@named("projection", never_quietest=True)
def _printed(g: Guarantee) -> PrivateProjection:
    return _in_the_papers_shares(g, "printed")


@named("projection-exact", never_quietest=True)
def _exact(g: Guarantee) -> PrivateProjection:
    return _in_the_papers_shares(g, "exact")


def _in_the_papers_shares(g: Guarantee, calibration: Calibration) -> PrivateProjection:
    """A private projection that spends a quarter of ε (below 1) and a third of δ on the covariance.

    Never quieter than Gaussian noise: its covariance is k²σ²(RRᵀ)⁺ with σ ≥ B·σ_max(R)/(k·μ), nowhere less
    than Gaussian's B/μ.
    """
    epsilon2 = min(0.9999, g.epsilon / 4)
    return PrivateProjection(
        B=g.B, epsilon1=_rest(g.epsilon, epsilon2), epsilon2=epsilon2,
        delta1=_rest(g.delta, g.delta / 3), delta2=g.delta / 3, calibration=calibration,
    )  # fmt: skip


def _rest(total: float, part: float) -> float:
    """What is left of a total, so that both together never round to more than it."""
    rest = total - part
    return rest if rest + part <= total else math.nextafter(rest, 0.0)


# Algorithm 1 as printed, six steps with all of its n×k noise: what the fast version must match. It is for
# simulations only: its arithmetic is plain floating point, without the grid of `targetdp.noise`.

_BATCH_VALUES = 1 << 23


def literal_private_projection(mechanism: PrivateProjection, X: Any, rng: np.random.Generator) -> Floats:
    """Run Algorithm 1 to the letter (printed noise), in batches of rows, then multiply by k.

    The factor k puts the result on the scale of X, as `PrivateProjection.privatize` does.

    Args:
        mechanism: With ``calibration="printed"``.
        X: n rows of d columns; they are clipped to the unit ball.
        rng: A generator: this is a simulation.

    Returns:
        As many noisy rows.

    Raises:
        TypeError: There is no generator.
        ValueError: The mechanism's calibration is another.

    Example:
        >>> mechanism = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9, delta1=1e-5, delta2=1e-5, k=50)
        >>> literal_private_projection(mechanism, [[0.1, 0.2]], np.random.default_rng(0)).shape
        (1, 2)
    """
    if mechanism.calibration != "printed":
        raise ValueError("calibration = 'exact' is not the printed algorithm: use calibration='printed'")
    if check.generator(rng) is None:
        raise TypeError("rng = None: the literal algorithm is a simulation; pass np.random.default_rng(seed)")
    rows = clip_rows(check.table(X))
    (n, d), k = rows.shape, mechanism.k
    sigma3 = printed_step3_sigma(mechanism.B, d, k, mechanism.epsilon1, mechanism.delta1)
    sigma4 = printed_step4_sigma(mechanism.B, mechanism.epsilon2, mechanism.delta2)

    R = rng.integers(-1, 2, size=(d, k)).astype(np.float64)  # Step 1
    G = rng.normal(0.0, sigma4, size=(d, d))
    G = np.tril(G) + np.tril(G, -1).T
    C_priv = rows.T @ rows + G  # Step 4
    _, _, Vt = np.linalg.svd(C_priv)  # Step 5
    Vt = Vt[: mechanism._used_rank(d)]
    back = np.linalg.pinv(Vt @ R) @ Vt

    out = np.empty_like(rows)
    batch = max(1, _BATCH_VALUES // k)
    for start in range(0, n, batch):
        part = rows[start : start + batch]
        P = part @ R / k  # Step 2
        P_priv = P + rng.normal(0.0, sigma3, size=P.shape)  # Step 3
        out[start : start + batch] = k * (P_priv @ back)  # Step 6
    return out
