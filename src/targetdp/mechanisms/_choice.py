"""Which mechanism needs the least noise for a guarantee."""

from dataclasses import dataclass

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms._base import NEVER_QUIETEST, NoiseMechanism, noise_mechanisms

LEAST_NOISE = "least-noise"
"""What stands for whichever of these needs the least noise."""


COMPARED_COLUMNS = 200
"""Drawing a wider R takes seconds, for a comparison whose winner is known."""


@dataclass(frozen=True)
class Choice:
    """The quietest mechanism for a guarantee, and what the others would need.

    Args:
        name: The mechanism's name.
        requested: The guarantee that was asked for.
        mechanism: The mechanism itself.
        dimensions: How many columns the table has.
        noise: For every mechanism that can give the guarantee, its deviation per coordinate.
        refused: For the others, why they cannot.

    Example:
        >>> choice = least_noise(Guarantee(B=0.25, epsilon=1, delta=1e-5), dimensions=10)
        >>> choice.noise["gaussian"] > choice.noise[choice.name]
        True
    """

    name: str
    requested: Guarantee
    mechanism: NoiseMechanism
    dimensions: int
    noise: dict[str, float]
    refused: dict[str, str]

    @property
    def why(self) -> str:
        """The choice in one sentence: which mechanism, how much noise, and what the others would need."""
        least = self.noise[self.name]
        others = ", ".join(
            f"{name} {sd / least:.2f}×" for name, sd in sorted(self.noise.items(), key=lambda item: item[1])
            if name != self.name
        )  # fmt: skip
        refused = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
        return (
            f"{self.name} needs the least noise for {self.mechanism.guarantee} on {self.dimensions} "
            f"column{'s' if self.dimensions > 1 else ''}: a deviation of {least:.4g} per coordinate"
            + (f"; the others would need {others}" if others else "")
            + (f" (not possible here: {refused})" if refused else "")
            + self._weaker()
        )

    def _weaker(self) -> str:
        given = self.mechanism.guarantee
        if given.is_at_least(self.requested):
            return ""
        return f". Asked was δ = {self.requested.delta:.3g}; the sampler's tail allows {given.delta:.3g}"


def least_noise(guarantee: Guarantee, dimensions: int) -> Choice:
    """Pick the registered mechanism with the smallest noise for a guarantee on so many columns.

    The choice depends on the guarantee and the number of columns only, never on data.

    Args:
        guarantee: What is to be promised.
        dimensions: How many columns the table has.

    Returns:
        The mechanism, and what the others would need.

    Raises:
        ValueError: No mechanism can give the guarantee.

    Edges: no sampler is exactly pure. Asked for a δ below 2⁻⁹⁰, it gives 2⁻⁹⁰, and `Choice.why` says so.

    Example:
        >>> least_noise(Guarantee(B=0.25, epsilon=1, delta=1e-5), dimensions=10).name
        'spherical-laplace'
    """
    check.instance("guarantee", guarantee, Guarantee)
    d = check.dimensions(dimensions)
    built: dict[str, NoiseMechanism] = {}
    noise: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name, build in noise_mechanisms().items():
        if d > COMPARED_COLUMNS and name in NEVER_QUIETEST:
            refused[name] = f"not compared beyond {COMPARED_COLUMNS} columns: never quieter than gaussian"
            continue
        try:
            mechanism = build(guarantee)
            noise[name] = mechanism.noise_sd(d)
            built[name] = mechanism
        except ValueError as error:
            refused[name] = str(error)
    if not noise:
        raise ValueError(f"no mechanism can give {guarantee}: {refused}")
    best = min(noise, key=noise.__getitem__)
    return Choice(best, guarantee, built[best], d, noise, refused)
