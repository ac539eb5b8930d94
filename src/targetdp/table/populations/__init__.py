"""Example populations, one file each: invented people in the shape of the paper's Table S1, and real tables.

An invented population is a recipe (`population`): `draws` makes the randomness of a batch of people,
`phone_use` turns it into counts, shares and entropies, `tables` hands it out. A new one is one new file and
one line here.
"""

from targetdp.table.populations.in_memory import Example
from targetdp.table.populations.nigeria import NIGERIA
from targetdp.table.populations.population import Population
from targetdp.table.populations.real import REAL
from targetdp.table.populations.togo import TOGO

POPULATIONS: dict[str, Population] = {made.name: made for made in (TOGO, NIGERIA)}
"""The register: by the name that the command line uses."""

__all__ = ["POPULATIONS", "REAL", "Example", "Population"]
