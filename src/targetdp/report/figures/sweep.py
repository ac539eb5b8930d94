"""What the figures need of a finished sweep, read from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targetdp.normalization import RowRule
from targetdp.report.figures.style import printable
from targetdp.scales import CONDITIONS
from targetdp.tradeoff.grid import MONDRIAN, STATUS_QUO
from targetdp.tradeoff.mark import MARK, SOURCE
from targetdp.tradeoff.place import read_run
from targetdp.tradeoff.standing import Estimate, read_figures

_PEOPLE = {"synthetic": "invented people", "public": "people of a public table"}
_UNDEFINED = Estimate()


@dataclass(frozen=True)
class Release:
    """One release of the grid with its figures; what does not apply to its mechanism is None."""

    mechanism: str
    figures: Mapping[str, Estimate]
    B: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    epsilon2: float | None = None
    k: int | None = None
    group_size: int | None = None

    def figure(self, metric: str) -> Estimate:
        """A figure; undefined if the sweep did not measure it."""
        return self.figures.get(metric, _UNDEFINED)


@dataclass(frozen=True)
class SweptProgram:
    """A program and every release that was tried on it.

    ``metric`` is what the program is for, ``best`` says which of its values is, and ``unit`` what it is
    counted in. ``chance`` is the accuracy of deciding without looking at anyone, if known. ``scales`` names
    where column scales came from, if known. Of rows that are not clipped (``rows``) nothing is promised.
    """

    name: str
    metric: str
    best: str
    unit: str
    people: int
    simulations: int
    source: str
    for_the_data_holder_only: bool
    releases: tuple[Release, ...]
    chance: float | None = None
    kind: str | None = None
    scales: str | None = None
    rows: RowRule = "clip"

    @property
    def status_quo(self) -> Release:
        """The program as it is, without privacy."""
        return next(one for one in self.releases if one.mechanism == STATUS_QUO)

    @property
    def alike(self) -> tuple[Release, ...]:
        """The k-anonymous releases."""
        return tuple(one for one in self.releases if one.mechanism == MONDRIAN)

    @property
    def noisy(self) -> tuple[Release, ...]:
        """Releases with noise, and so with a guarantee."""
        return tuple(one for one in self.releases if one.B is not None)

    @property
    def whom(self) -> str:
        """How many people, and whose rows they are."""
        return f"{self.people:,} {_PEOPLE.get(self.source, 'people, confidential rows')}"

    @property
    def condition(self) -> str | None:
        """What must be said of a guarantee, by how the rows and the column scales came about."""
        if self.rows != "clip":
            return f"{printable(self.name)}: rows are not clipped, so that no guarantee holds."
        if self.scales not in CONDITIONS:
            return None
        return CONDITIONS[self.scales][0] + (" Their ε comes on top." if self.scales == "private" else "")


def read_program(folder: Path) -> SweptProgram:
    """Read a finished sweep; one that has not ended, or was changed by hand, is refused."""
    try:
        run, figures = read_run(folder), read_figures(folder)
    except KeyError as error:
        raise ValueError(
            f"{folder}: run.json lacks {error}, so it was made by another version: run the sweep again in a "
            "new folder"
        ) from error
    made_of = run["made_of"]
    releases = tuple(
        Release(
            cell["mechanism"], figures.get(cell["name"], {}), B=cell["B"], epsilon=cell["epsilon"],
            delta=cell["delta"], epsilon2=cell["epsilon2"], k=cell["k"], group_size=cell["group_size"],
        )
        for cell in run["cells"]
    )  # fmt: skip
    return SweptProgram(
        name=run["program"], metric=run["objective"]["metric"], best=run["objective"]["best"],
        unit=str(made_of.get("unit", "")), people=run["people"], simulations=int(made_of["simulations"]),
        source=run[SOURCE], for_the_data_holder_only=run[MARK], releases=releases, chance=run.get("chance"),
        kind=run.get("kind"), scales=(made_of.get("scales") or {}).get("source"), rows=run["rows"],
    )  # fmt: skip
