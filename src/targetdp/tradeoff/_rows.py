"""Technologies that release all columns of everybody: as they are, in groups alike, or with noise."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from targetdp._core import Floats, exact, up
from targetdp.attacks import attribute_inference, distinguishing, row_inference, singling_out, split_holdout
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    LEAST_NOISE,
    Mechanism,
    Mondrian,
    NoiseMechanism,
    Partitioned,
    PrivateProjection,
    least_noise,
    noise_mechanisms,
)
from targetdp.tradeoff._technology import (
    NO_REQUEST,
    STATUS_QUO,
    Cell,
    Randomness,
    Simulated,
    Technology,
    Trial,
    attack_figures,
    given,
    program_figures,
    timed,
)

if TYPE_CHECKING:
    from targetdp.tradeoff._sweep import Grid

PROJECTION = "projection"
"""The technology that is the paper's Algorithm 1."""

_LARGEST_EPSILON2, _RELEASED_K = 0.9999, 10_000

LEAST_NOISE_IS_TAKEN = "The mechanism is left out: the desk takes whichever needs the least noise."


class TableOfRows(Technology):
    """A table of everybody's rows, whatever was done to them: what technologies of rows share.

    Example:
        >>> from targetdp.tradeoff import technologies
        >>> isinstance(technologies()["gaussian"], TableOfRows)
        True
    """

    label = ""

    def release(self, mechanism: Mechanism | None, X: Floats, rng: np.random.Generator) -> Floats:
        """The table that attackers and the program meet."""
        return X if mechanism is None else mechanism.privatize(X, rng)

    def simulate(self, trial: Trial) -> Simulated:
        """The program and the net attack (singling out) meet a release of everyone.

        Inference, by a stranger and by an insider, needs people who are not in the release: a second one is
        made of the working set, without a random holdout.
        """
        study, rng, mechanism = trial.study, trial.rng, trial.mechanism
        seconds: dict[str, float] = {}
        with timed(seconds, "privatize"):
            X_priv = self.release(mechanism, study.X, rng("release"))
        with timed(seconds, "program"):
            result = study.run(X_priv, rng("program"))
            figures = list(program_figures(result, trial))
        with timed(seconds, "singling_out"):
            figures += attack_figures("singling_out", singling_out(study.X, X_priv))
        if study.dimensions > 1:  # one column leaves nothing to be guessed from
            working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
            W, out = study.X[working], study.X[holdout]
            with timed(seconds, "privatize"):
                W_priv = self.release(mechanism, W, rng("working set"))
            with timed(seconds, "attribute_inference"):
                protection = attribute_inference(
                    W, W_priv, out, draws=trial.draws, columns=study.features, rng=rng("attack")
                )
                figures += attack_figures("attribute_inference", protection)
            # An insider reads the certificate, which tells the law of the noise; without noise the released
            # row is taken as it is.
            with timed(seconds, "insider_inference"):
                insider = row_inference(
                    W, W_priv, None if mechanism is None else mechanism.known_noise, out,
                    known=[study.dimensions - 1], population=study.X, columns=study.features,
                    rng=rng("insider"),
                )  # fmt: skip
                figures += attack_figures("insider_inference", insider)
        return Simulated(tuple(figures), seconds)


class StatusQuo(TableOfRows):
    """Rows as they are: the program today."""

    name = STATUS_QUO
    label = "today, no privacy"
    form, goes_out = "today", "as if the table went out as it is"
    is_random, is_release, in_every_grid = False, False, True

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """One, with which all others are compared."""
        return [Cell(STATUS_QUO, STATUS_QUO)]

    def build(self, cell: Cell, dimensions: int) -> None:
        """No mechanism."""

    def draws(self, simulations: int) -> int:
        """As often as the others have simulations."""
        return simulations

    def why_not(self, cell: Cell) -> str:
        """Nothing is released."""
        return "it is no release"


class KAnonymity(TableOfRows):
    """Rows in groups that look alike (Mondrian): the paper's baseline without a guarantee."""

    name = "mondrian"
    label = "k-anonymity"
    form, goes_out = "k-anonymity", "all columns, of groups"
    explanation = (
        "People are put into groups of at least k and get the same row. It guarantees nothing about what can "
        "be learned."
    )
    is_random, in_every_grid = False, True

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """One for each group size that the table allows."""
        return [
            Cell(f"{self.name} group_size={size}", self.name, group_size=size)
            for size in grid.group_sizes if size <= people
        ]  # fmt: skip

    def build(self, cell: Cell, dimensions: int) -> Mondrian:
        """Mondrian with the cell's group size."""
        return Mondrian(given(cell.group_size))

    def why_not(self, cell: Cell) -> str:
        """A release has a guarantee."""
        return f"{self.label} has no guarantee, and {NO_REQUEST}"


class NoisyRows(TableOfRows):
    """Rows with noise."""

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """One for each B and each total ε₁ + ε₂."""
        delta = grid.delta_for(people)
        return [
            Cell(f"{self.name} B={B:.10g} epsilon={total:.10g}", self.name, B, epsilon=total, delta=delta)
            for B in grid.B for total in grid.totals
        ]  # fmt: skip

    @abstractmethod
    def build(self, cell: Cell, dimensions: int) -> NoiseMechanism:
        """The mechanism at the cell's (B, ε, δ)."""

    def noises(self, cell: Cell, dimensions: int) -> tuple[Randomness, ...]:
        """The mechanism itself."""
        return (self.build(cell, dimensions),)

    def why_not(self, cell: Cell) -> str | None:
        """A request can ask for it."""
        return None

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """Who answers a request, and how."""
        return ("The data holder answers it: targetdp privatize TABLE OUTPUT --request request.toml",)


class RowsByMechanism(NoisyRows):
    """Rows with the noise of one mechanism, by the mechanism's own name."""

    def __init__(self, name: str) -> None:
        self.name = self.label = self.request_mechanism = name

    @classmethod
    def each(cls) -> Iterable[Technology]:
        """One for each noise mechanism that is known."""
        return map(cls, noise_mechanisms())

    def build(self, cell: Cell, dimensions: int) -> NoiseMechanism:
        """The mechanism at the cell's (B, ε, δ)."""
        return noise_mechanisms()[self.name](cell.calibrated_to)


class LeastNoiseRows(NoisyRows):
    """Rows with the noise of whichever mechanism needs the least."""

    name, label = LEAST_NOISE, "least noise"
    request_mechanism = LEAST_NOISE
    explanation = "The quietest of our mechanisms that keeps the stated guarantee."

    def build(self, cell: Cell, dimensions: int) -> NoiseMechanism:
        """The quietest for so many columns."""
        return least_noise(cell.calibrated_to, dimensions).mechanism

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """A request leaves out what it has by default."""
        return (*super().request_comments(cell), LEAST_NOISE_IS_TAKEN)


class ProjectedRows(NoisyRows):
    """Rows by the paper's Algorithm 1, with its own parameters ε₁, ε₂, k and random parts."""

    name, label = PROJECTION, "the paper's projection"
    explanation = (
        "The mechanism that the scientific paper prints. It keeps more than it states, and costs the program "
        "more."
    )
    request_mechanism = PROJECTION
    remedy = f"sweep the grid with k = [{_RELEASED_K}], and without parts"

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """One for each B, k, ε₁ and ε₂."""
        several = len(grid.k) > 1  # as a rule there is one, and names stay short
        return [
            Cell(
                f"{PROJECTION} B={B:.10g} epsilon1={e1:.10g} epsilon2={e2:.10g}" + f" k={k}" * several,
                PROJECTION, B, e1, e2, grid.total(e1, e2), grid.delta_for(people), k, grid.parts,
            )
            for B in grid.B for k in grid.k for e1 in grid.epsilon1 for e2 in grid.epsilon2
        ]  # fmt: skip

    def experiment(self, cell: Cell) -> str:
        """ε₂ and δ₂ buy a covariance that cancels."""
        return (
            f"projection B={cell.B!r} epsilon1={cell.epsilon1!r} delta={cell.delta!r} k={cell.k} "
            f"parts={cell.parts}"
        )

    def build(self, cell: Cell, dimensions: int) -> NoiseMechanism:
        """δ is split 2:1 between Steps 3 and 4."""
        delta = given(cell.delta)
        projection = PrivateProjection(
            B=given(cell.B), epsilon1=given(cell.epsilon1), epsilon2=given(cell.epsilon2),
            delta1=delta * 2 / 3, delta2=delta / 3, k=given(cell.k),
        )  # fmt: skip
        return projection if cell.parts is None else Partitioned(projection, parts=cell.parts)

    def promise(self, cell: Cell) -> Guarantee | None:
        """Its ε may be another than the cell's.

        A release splits its ε in the paper's proportion, and is asked for the total at which its ε₁, which
        alone decides its noise, is the cell's.
        """
        if cell.guarantee is None:
            return None
        epsilon1 = float(given(cell.epsilon1))
        epsilon = float(f"{epsilon1 + min(_LARGEST_EPSILON2, epsilon1 / 3):.12g}")
        return Guarantee(cell.guarantee.B, epsilon, cell.guarantee.delta)

    def distinguishing(self, cell: Cell, dimensions: int) -> dict[str, float]:
        """Also as the paper prints it, and as corrected; the formula is the setting."""
        mechanism = self.build(cell, dimensions)
        printed = distinguishing(mechanism, dimensions, formula="as_printed").score
        corrected = distinguishing(mechanism, dimensions, formula="corrected").score
        return super().distinguishing(cell, dimensions) | {"as_printed": printed, "corrected": corrected}

    def why_not(self, cell: Cell) -> str | None:
        """Requests have no k and no parts, and either would be other noise."""
        if cell.k != _RELEASED_K:
            return f"{NO_REQUEST}: k is not {_RELEASED_K:,}"
        return None if cell.parts is None else f"{NO_REQUEST}: it is made in random parts"

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """Why ε is another than the cell's, where it is."""
        promise, epsilon = self.promise(cell), given(cell.epsilon)
        if promise is None or abs(promise.epsilon - epsilon) <= 1e-9:
            return super().request_comments(cell)
        return (
            *super().request_comments(cell),
            f"The cell has ε = {up(epsilon, 6)}. A release splits ε in the paper's proportion: that of this "
            f"request has the cell's ε₁ = {exact(given(cell.epsilon1))}, and so its noise.",
        )


def larger_by_parts(delta: float, people: int) -> str:
    """In words, how much larger than usual a δ is that was set from the number of random parts; or nothing.

    Cells without parts share it, since all are compared at one (B, ε, δ).

    Args:
        delta: That of a cell.
        people: How many people the table has.

    Returns:
        What can follow the number in a sentence.

    Example:
        >>> larger_by_parts(1 / 17, people=100)
        ', 5.94 times the usual 1/(rows + 1)'
    """
    times = delta * (people + 1)
    return f", {times:.3g} times the usual 1/(rows + 1)" if times > 1.001 else ""
