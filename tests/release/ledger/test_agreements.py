"""People who agreed are outside the worst group, and nobody else is: against a slow twin, and broken ones."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.agreed import AGREED, agreements, handed_over, list_people, place_of_agreed, without_promise
from support.ledgers import gaussian, limit_of, people
from support.release import (
    FEATURES,
    certificate_of,
    cli,
    look,
    new_policy,
    read_back,
    release,
    write_parquet,
)
from targetdp._core import Words
from targetdp.release import Desk, Ledger, Refused, ReleaseRow, witnesses
from targetdp.release._ledger._agreements import AgreedPeople, AgreementRow
from targetdp.release._ledger._entries import Entry
from targetdp.release._ledger._history import History
from targetdp.release._ledger._spending import measure, standing

LIMIT = limit_of(0.25, 1e6, 0.9)
COLUMNS = ("a", "b", "c")


# A slow twin: a person at a time, in sets


@dataclass
class Case:
    """A history of random releases and agreements, and a release that is asked for."""

    history: History
    lists: dict[str, Words]
    who: Words
    features: list[str]

    def people_of(self, row: ReleaseRow | AgreementRow) -> Words:
        return self.lists[row.list_name]

    def agreed_to(self, person: int, features: Iterable[str]) -> bool:
        return any(
            set(features) <= set(row.columns) and person in self.lists[row.list_name]
            for row in self.history.agreements.values()
        )

    def spent(self, person: int) -> float:
        return sum(
            float(LIMIT.cost(row.charge)[0])
            for row in self.history.counted
            if (row.everybody or person in self.lists[row.list_name])
            and (row.everybody or not self.agreed_to(person, row.title["features"]))
        )

    def expected(self) -> tuple[float, bool]:
        """What the worst off of those has spent whom the release counts for; whether it is for nobody."""
        inside = [int(one) for one in self.who if not self.agreed_to(int(one), self.features)]
        return max(map(self.spent, inside), default=0.0), not inside

    def is_right(self) -> bool:
        found = measure(self.history, LIMIT, self.people_of, self.who, gaussian(), features=self.features)
        most, for_nobody = self.expected()
        asked = 0.0 if for_nobody else float(LIMIT.cost(gaussian())[0])
        same = np.allclose([found.used[0], found.asked[0]], [most, asked], rtol=1e-9)
        return bool(same) and found.for_nobody == for_nobody and self.stands()

    def stands(self) -> bool:
        """Whether everybody is told to stand where she does, of those whom some release counts for."""
        everybody = sum(float(LIMIT.cost(r.charge)[0]) for r in self.history.counted if r.everybody)
        counted = {
            int(one) for row in self.history.counted for one in self.lists[row.list_name]
            if not self.agreed_to(int(one), row.title["features"])
        }  # fmt: skip
        found = standing(self.history, LIMIT, self.people_of)
        amounts = sorted(share * LIMIT.budget[0] for share, n in found.levels for _ in range(n))
        expected = sorted(self.spent(one) for one in counted)
        worst = max(expected, default=everybody)
        same = len(amounts) == len(expected) and np.allclose(amounts, expected)
        return bool(same and np.isclose(found.spending.used[0], worst))


def case(seed: int) -> Case:
    """Up to four releases and two agreements of twenty people."""
    rng = np.random.default_rng(seed)

    def some() -> Words:
        return people(rng.choice(20, rng.integers(1, 15), replace=False).tolist())

    def columns() -> list[str]:
        return sorted(rng.choice(COLUMNS, rng.integers(1, 4), replace=False).tolist())

    history, lists = History(), dict[str, Words]()
    for number in range(int(rng.integers(1, 5))):
        name = f"r{number}"
        history.releases[name] = ReleaseRow(
            name, "published", gaussian(float(rng.uniform(0.2, 1))), "sha", {"features": columns()}, "",
            number, number, everybody=bool(rng.random() < 0.2),
        )  # fmt: skip
        lists[name] = some()
    for number in range(int(rng.integers(0, 3))):
        row = AgreementRow(f"{number:032x}", "sha", tuple(columns()), "to", 1, 1, "sha", {}, "", number)
        history.agreements[row.agreement] = row
        lists[row.list_name] = some()
    return Case(history, lists, some(), columns())


CASES = range(120)


def test_who_agreed_does_not_count_and_everybody_else_does() -> None:
    wrong = [seed for seed in CASES if not case(seed).is_right()]
    assert wrong == []


def ignores_columns(self: AgreedPeople, _: Any) -> Words:
    """Whoever agreed to anything is left out of everything."""
    found = [self.list_of(row) for row in self.agreements]
    return np.unique(np.concatenate(found)) if found else people()


def needs_one_column(self: AgreedPeople, features: Iterable[str] | None) -> Words:
    found = [self.list_of(row) for row in self.agreements if {*row.columns} & {*(features or ())}]
    return np.unique(np.concatenate(found)) if found else people()


def nobody_agreed(*_: Any) -> Words:
    return people()


def frees_the_release(self: AgreedPeople, who: Words, features: Iterable[str] | None) -> Words:
    """One who agreed makes a release cost nobody anything."""
    return people() if np.isin(who, self.outside(features)).any() else who


def frees_the_next_person(self: AgreedPeople, who: Words, features: Iterable[str] | None) -> Words:
    """An ordinary person is hidden with each who agreed."""
    outside = self.outside(features)
    return who[~np.isin(who, np.concatenate([outside, outside + np.uint64(1)]))]


TWINS: dict[str, tuple[str, Callable[..., Words]]] = {
    "ignores columns": ("outside", ignores_columns),
    "needs one column": ("outside", needs_one_column),
    "nobody agreed": ("outside", nobody_agreed),
    "frees the release": ("charged", frees_the_release),
    "frees the next person": ("charged", frees_the_next_person),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    method, wrong = TWINS[name]
    with mock.patch.object(AgreedPeople, method, wrong):
        yield


@pytest.mark.parametrize("name", TWINS)
def test_an_exclusion_that_hides_somebody_else_s_spending_is_caught(name: str) -> None:
    with broken(name):
        wrong = [seed for seed in CASES if not case(seed).is_right()]
    assert len(wrong) >= 5, "the cases above tell them apart"


def test_an_unknown_set_of_columns_is_nobody_s() -> None:
    row = AgreementRow("0" * 32, "sha", COLUMNS, "to", 1, 1, "sha", {}, "", 1)
    assert row.covers(["a"])
    assert not row.covers(["a", "d"])
    assert not row.covers([])
    assert not row.covers(None)
    known = AgreedPeople([row], lambda _: people(1, 2))
    assert known.outside(None).tolist() == []
    assert known.charged(people(1, 2, 3), ["a", "b"]).tolist() == [3]


# At a desk, with a limit that a release of ε = 3.9 fits once

TIGHT: dict[str, Any] = {"limit": (0.25, 8.0, 1e-6), "most": (4.0, 1e-6)}
LARGE: dict[str, Any] = {"epsilon": 3.9}


def of_agreed(folder: Path, *columns: str) -> Path:
    """A table of those who agreed, and nobody else."""
    whole = read_back(folder / "in.parquet").slice(0, 20)
    return write_parquet(folder / "few.parquet", whole.select(["name", *(columns or FEATURES)]))


def test_an_ordinary_person_is_refused_as_before(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, **TIGHT)
    handed_over(folder)
    release(folder, **LARGE)
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "again.parquet", **LARGE)
    whole = read_back(folder / "in.parquet")
    write_parquet(folder / "one.parquet", whole.slice(15, 6))  # five who agreed, and one who did not
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "one_out.parquet", table="one.parquet", **LARGE)


def test_releases_of_people_who_agreed_count_for_nobody(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, **TIGHT)
    handed_over(folder)
    release(folder, **LARGE)
    of_agreed(folder)
    for number in range(3):
        done = release(folder, f"few{number}.parquet", table="few.parquet", **LARGE)
        assert done.look.spending is not None
        # What is set aside for samplers is added up for all, and is next to nothing.
        assert max(done.look.spending.spent, done.look.spending.requested) < 1e-4
        assert list(without_promise(folder / f"few{number}.parquet").values()) == [20]
    seen = look(folder, table="few.parquet", **LARGE)
    assert seen.largest_epsilon == 4.0, "what one release may have"
    with Desk.open(folder / "desk").ledger() as ledger:
        assert [n for _, n in ledger.standing(limit_of(0.25, 8.0, 1e-6)).levels] == [40]


def test_with_a_column_that_nobody_agreed_to_they_count_as_everybody(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, agreed=AGREED | {"columns": FEATURES[:2]}, **TIGHT)
    handed_over(folder)
    of_agreed(folder)
    done = release(folder, table="few.parquet", **LARGE)
    assert without_promise(folder / "out.parquet") == {}
    assert not any("nothing is promised to them." in one for one in done.certificate.conditions)
    assert "20 people agreed" in done.certificate.conditions[-1], "the statement counts all who went out"
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "again.parquet", table="few.parquet", **LARGE)
    release(folder, "two.parquet", table="few.parquet", features=FEATURES[:2], **LARGE)
    assert list(without_promise(folder / "two.parquet").values()) == [20]


def test_who_was_erased_counts_as_everybody(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, **TIGHT)
    handed_over(folder)
    of_agreed(folder)
    release(folder, table="few.parquet", **LARGE)
    list_people(folder, 1, name="erased.csv")
    ran = cli("ledger", "erase", folder / "erased.csv", "--reason", "she asked", "--desk", folder / "desk")
    assert "off the list of agreement" in ran.err
    assert "rows that went out stay out" in ran.err
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "again.parquet", table="few.parquet", **LARGE)
    rest = read_back(folder / "few.parquet").slice(1)
    write_parquet(folder / "rest.parquet", rest)
    release(folder, "rest_out.parquet", table="rest.parquet", **LARGE)
    assert list(without_promise(folder / "rest_out.parquet").values()) == [19]
    assert certificate_of(folder / "rest_out.parquet").together.agreed == 20, "her row went out all the same"


@pytest.mark.parametrize("how", ["missing", "altered"])
def test_a_list_that_is_not_the_one_on_record_stops_everything(tmp_path: Path, how: str) -> None:
    """Whoever adds an ordinary person to the list frees nobody."""
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    (place,) = (folder / "desk" / "people").iterdir()
    if how == "missing":
        place.unlink()
    else:
        whole = read_back(folder / "in.parquet")["name"].combine_chunks()
        place.write_bytes(np.sort(Desk.open(folder / "desk").names().tags(whole)).tobytes())
    ran = cli("ledger", "verify", "--desk", folder / "desk")
    assert ran.code == 1
    assert "agreed-" in ran.out
    with pytest.raises(ValueError, match="backup"):
        release(folder)
    with pytest.raises(ValueError, match="backup"):
        handed_over(folder, "again.parquet")


def test_two_agreements_of_one_person_count_her_once(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    first = handed_over(folder).agreement.agreement
    list_people(folder, 25, start=15, name="more.csv")
    second = handed_over(folder, "more.parquet", people="more.csv").agreement
    release(folder)
    assert without_promise(folder / "out.parquet") == {first: 20, second.agreement: 5}
    assert certificate_of(folder / "out.parquet").together.agreed == 25 == second.in_all


# The record


def test_an_agreement_is_found_missing_by_its_record_and_its_people_stay_counted(tmp_path: Path) -> None:
    """An older copy of the ledger is brought back, from before the agreement."""
    folder = place_of_agreed(tmp_path)
    release(folder, "first.parquet", epsilon=0.5)
    names = ("ledger.db", "ledger.db.head")
    before = {name: (folder / "desk" / name).read_bytes() for name in names}
    handed_over(folder)
    for name, content in before.items():
        (folder / "desk" / name).write_bytes(content)
    with pytest.raises(ValueError, match="the tail was cut"):
        release(folder)
    record = folder / "agreed.parquet.agreement.json"
    ran = cli("ledger", "resume", record, "--reason", "the disk broke", "--desk", folder / "desk")
    assert ran.code == 0, ran.err
    release(folder)
    c = certificate_of(folder / "out.parquet")
    assert (c.agreed, c.together.agreed, c.together.forgot) == ((), 20, True), "charged as everybody"
    new_policy(folder / "desk", agreed=AGREED | {"at_most": 39}, reason="a survey")
    list_people(folder, 40, start=20, name="others.csv")
    with pytest.raises(ValueError, match="40 people would be handed over in all"):
        handed_over(folder, "others.parquet", people="others.csv")


def test_certificates_are_witnesses_of_who_was_handed_over(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    release(folder)
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        told = witnesses(desk, ledger)
        assert sorted((one.release is None, one.agreed) for one in told) == [(False, 20), (True, 20)]
        assert ledger.verify(told) == []


def test_an_agreement_cannot_be_withdrawn(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    ((name, _),) = agreements(folder)
    ran = cli("ledger", "withdraw", name[:8], "--reason", "wrong", "--desk", folder / "desk")
    assert ran.code == 2
    assert "rows that went out stay out" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    "change",
    [{"rows": 0}, {"rows": True}, {"in_all": 3}, {"columns": []}, {"people": None, "rows": "x"}, {"to": 0}],
)
def test_an_entry_that_makes_no_sense_is_a_problem(change: dict[str, Any]) -> None:
    body = {
        "people": "sha", "columns": ["a"], "to": "x", "rows": 5, "in_all": 5, "sha256": "s", "title": {},
    }  # fmt: skip
    opened = Entry(1, "", "opened", "", '{"ledger": "l", "desk": "d"}', "")

    def told(given: dict[str, Any]) -> History:
        return History.of([opened, Entry(2, "", "agreed", "a" * 32, json.dumps(given), "")])

    assert told(body).problems == []
    assert told(body).handed_over == 5
    if change != {"to": 0}:
        assert len(told(body | change).problems) == 1
        assert told(body | change).agreements == {}


def test_the_ledger_itself_lets_no_more_people_go_than_it_may(tmp_path: Path) -> None:
    """Whatever was looked at before: under the lock."""
    folder = place_of_agreed(tmp_path)
    desk = Desk.open(folder / "desk")
    record = {"columns": ["calls"], "to": "x", "rows": 3, "sha256": "0" * 64, "title": {}}
    with desk.ledger() as ledger:
        assert isinstance(ledger, Ledger)
        ruling = (desk.policy, 1)
        with pytest.raises(ValueError, match="3 people would be handed over in all, and 2 may be"):
            ledger.agree("a" * 32, people(1, 2, 3), 2, record, lambda _: None, ruling)
        assert ledger.history.agreements == {}
        ledger.agree("a" * 32, people(1, 2, 3), 3, record, lambda _: None, ruling)
        assert ledger.history.handed_over == 3
