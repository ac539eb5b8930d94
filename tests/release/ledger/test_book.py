"""The ledger: what it records, whom it charges, what it refuses."""

import json
import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.ledgers import EVERYBODY, LIMIT, SHA, WIDE, gaussian, mark, people, reserve, with_history
from support.release import policy_text
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import SphericalLaplace
from targetdp.release import (
    Charge,
    Head,
    Ledger,
    LedgerDamaged,
    LimitExceeded,
    Policy,
    SigningKey,
    read_policy,
)
from targetdp.release._ledger._history import History
from targetdp.release._ledger._spending import percent


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "keys" / "signing-key.pem")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, key: SigningKey) -> Ledger:
    return with_history(path, key)


@pytest.fixture
def empty(path: Path, key: SigningKey) -> Ledger:
    return Ledger(path, key, create=True)


# What it records

ROWS = {"rows": 10, "plan": None, "planned": None}


def test_it_tells_each_release_in_one_row(ledger: Ledger, path: Path) -> None:
    first, second, third = ledger.history.releases.values()
    assert (first.release, first.state, first.sha256, first.title) == ("r1", "published", SHA, ROWS)
    assert (second.state, second.counts) == ("voided", False)
    assert second.reason == "the disk was full, nothing was drawn"
    assert (third.state, third.settled, third.counts, third.entry) == ("reserved", None, True, 6)
    assert third.charge == gaussian(0.5)
    assert ledger.release("r3") == third
    assert [row.release for row in ledger.history.counted] == ["r1", "r3"]
    assert ledger.people_of(third).tolist() == list(range(5, 20))
    assert ledger.verify() == []
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT release, state FROM releases").fetchall()
    assert rows == [("r1", "published"), ("r2", "voided"), ("r3", "reserved")]


def test_others_can_read_it_without_a_key_and_change_nothing(ledger: Ledger, path: Path) -> None:
    before = path.read_bytes()
    with Ledger(path) as reader:
        assert reader.history.releases == ledger.history.releases
        assert reader.head() == ledger.head()
        assert reader.verify() == []
        assert reader.standing(LIMIT).spending.spent == ledger.standing(LIMIT).spending.spent > 0
        for write in (
            lambda: reserve(reader, "r9"),
            lambda: reader.settle("r3", SHA),
            lambda: reader.free("r3", "why not"),
            lambda: reader.resume("why not"),
            lambda: reader.withdraw("r1", "why not"),
            lambda: reader.erase(EVERYBODY, "why not"),
            lambda: reader.record_policy(policy(path.parent), 1),
        ):
            with pytest.raises(ValueError, match="opened for reading"):
                write()
    assert path.read_bytes() == before


def test_a_write_protected_copy_can_be_read(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "ledger.db"
    shutil.copytree(tmp_path / "people", tmp_path / "copy" / "people")
    shutil.copy(path, copy)
    shutil.copy(mark(path), mark(copy))
    copy.chmod(0o400)
    with Ledger(copy) as reader:
        assert reader.verify() == []


def test_two_ledgers_are_never_alike(tmp_path: Path, key: SigningKey) -> None:
    heads = {Ledger(tmp_path / f"{i}.db", key, create=True).head() for i in range(3)}
    assert len({head.ledger_id for head in heads}) == len({head.hash for head in heads}) == 3
    assert {head.number for head in heads} == {1}


def test_reserve_returns_the_head(empty: Ledger) -> None:
    head = reserve(empty, "r1")
    assert head == empty.head() == Head(head.ledger_id, 2, head.hash)
    assert empty.settle("r1", SHA).number == 3


def test_who_looks_at_the_history_before_a_release_is_reserved_may_refuse_it(
    ledger: Ledger, path: Path
) -> None:
    seen: list[str] = []

    def look(history: History) -> None:
        seen.extend(history.releases)
        with (
            closing(sqlite3.connect(path, 0.0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        raise ValueError("somebody may be in both")

    before = ledger.head()
    with pytest.raises(ValueError, match="somebody may be in both"):
        ledger.reserve("r4", gaussian(), WIDE, EVERYBODY, {}, look=look)
    assert seen == ["r1", "r2", "r3"]
    assert ledger.head() == before


def test_it_is_one_connection_and_a_context(path: Path, key: SigningKey) -> None:
    with Ledger(path, key, create=True) as opened:
        assert opened.head().number == 1
    with pytest.raises((ValueError, sqlite3.ProgrammingError)):
        reserve(opened, "r1")


def test_releases_are_found_by_the_beginning_of_their_ids(empty: Ledger) -> None:
    for name in ("abc1", "abd2"):
        reserve(empty, name)
    assert empty.history.find("abc").release == "abc1"
    for prefix, said in (
        ("ab", "2 releases begin so"),
        ("x", "no release of this desk begins so"),
        ("", "no"),
    ):
        with pytest.raises(ValueError, match=said):
            empty.history.find(prefix)


# Policies


def policy(folder: Path, **given: Any) -> Policy:
    (folder / "policy.toml").write_text(policy_text(**given))
    return read_policy(folder / "policy.toml")


def test_policies_are_on_record_once_with_what_changed(empty: Ledger, tmp_path: Path) -> None:
    first, second = policy(tmp_path), policy(tmp_path, limit=(0.25, 9.0, 0.1), reason="fewer")
    assert (empty.history.policy, empty.history.policy_version) == (None, 0)
    for _ in range(2):
        empty.record_policy(first, 1)
    assert (empty.history.policy, empty.history.policy_version, len(empty.entries)) == (first, 1, 2)
    empty.record_policy(second, 2)
    assert (empty.history.policy, empty.history.policy_version) == (second, 2)
    assert json.loads(empty.entries[-1].body)["changed"] == {
        "limit.epsilon": [100.0, 9.0], "reason": [None, "fewer"],
    }  # fmt: skip
    with pytest.raises(ValueError, match="the policy was changed while this release was prepared"):
        empty.record_policy(first, 2)
    assert empty.verify() == []


def test_a_policy_of_another_process_that_came_between_is_noticed(
    empty: Ledger, path: Path, key: SigningKey, tmp_path: Path
) -> None:
    first, second = policy(tmp_path), policy(tmp_path, limit=(0.25, 9.0, 0.1))
    assert empty.history.policy is None
    with Ledger(path, key) as other:
        other.record_policy(second, 1)
    with pytest.raises(ValueError, match="the policy was changed"):
        empty.record_policy(first, 1)


def test_a_policy_and_its_release_come_together_or_not_at_all(empty: Ledger, tmp_path: Path) -> None:
    rules = policy(tmp_path)
    with pytest.raises(LimitExceeded):
        empty.reserve("r1", gaussian(50.0), LIMIT, EVERYBODY, {}, policy=(rules, 1))
    assert (empty.history.policy, len(empty.entries)) == (None, 1)
    empty.reserve("r1", gaussian(1.0), LIMIT, EVERYBODY, {}, policy=(rules, 1))
    assert [entry.kind for entry in empty.entries] == ["opened", "policy", "reserved"]
    with pytest.raises(ValueError, match="the policy was changed while this release was prepared"):
        empty.reserve("r2", gaussian(1.0), LIMIT, EVERYBODY, {}, policy=(policy(tmp_path, reason="x"), 7))
    assert list(empty.history.releases) == ["r1"]
    assert empty.verify() == []


def test_a_run_goes_on_only_with_what_is_still_reserved(ledger: Ledger, tmp_path: Path) -> None:
    rules = policy(tmp_path)
    ledger.record_policy(rules, 1)
    before = ledger.head()
    assert ledger.go_on("r3", rules, 1).number == ledger.release("r3").entry
    assert ledger.head() == before, "nothing is charged"
    for name, state in (("r1", "published"), ("r2", "voided")):
        with pytest.raises(ValueError, match=f"release {name} is {state} by now: run again"):
            ledger.go_on(name, rules, 1)
    with pytest.raises(ValueError, match="the policy was changed"):
        ledger.go_on("r3", policy(tmp_path, reason="another"), 1)


def test_a_reason_is_remembered_for_good(empty: Ledger, tmp_path: Path) -> None:
    for version, reason in enumerate(["a pilot", None, "a survey"], start=1):
        empty.record_policy(policy(tmp_path, reason=reason), version)
    assert empty.history.reasons == {"a pilot", "a survey"}


# The budget


def test_a_release_that_does_not_fit_is_refused_with_its_numbers(empty: Ledger, tmp_path: Path) -> None:
    reserve(empty, "r1", gaussian(6.0), limit=LIMIT)
    with pytest.raises(LimitExceeded) as refused:
        reserve(empty, "r2", gaussian(5.0), limit=LIMIT)
    spending = refused.value.spending
    assert spending.requested == LIMIT.share(LIMIT.cost(gaussian(5.0)))
    assert spending.spent == LIMIT.share(LIMIT.cost(gaussian(6.0)))
    assert spending.total == pytest.approx(spending.requested + spending.spent)
    assert spending.total > 1
    for number in (spending.requested, spending.spent, spending.total):
        assert percent(number) in str(refused.value)
    assert list(empty.history.releases) == ["r1"]
    assert [path.name for path in (tmp_path / "people").iterdir()] == ["r1.tags"], "nobody else is remembered"
    # What normal noise takes grows as its square: 6 and 3 add up to more than 8, but take less.
    assert empty.measure(LIMIT, EVERYBODY, gaussian(2.5)).fits


def test_a_refused_release_takes_no_list_of_another_with_it(empty: Ledger, tmp_path: Path) -> None:
    for name in ("r10", "r1-2"):
        reserve(empty, name, gaussian(0.1))
    with pytest.raises(LimitExceeded):
        reserve(empty, "r1", gaussian(50.0), limit=LIMIT)
    assert "r10.tags" in {path.name for path in (tmp_path / "people").iterdir()}
    assert empty.people_of(empty.release("r10")).tolist() == EVERYBODY.tolist()


def test_a_tiny_B_cannot_sneak_past(empty: Ledger) -> None:
    """Pure noise for ε = 1 at B = 0.01 is up to ε = 25 at the limit's distance."""
    tiny = Charge(SphericalLaplace(B=0.01, epsilon=1.0).law(3))
    with pytest.raises(LimitExceeded) as refused:
        reserve(empty, "r1", tiny, limit=LIMIT)
    assert 2.5 < refused.value.spending.requested <= 25 / (0.74 * 8)


def test_what_was_freed_no_longer_counts_and_what_is_reserved_does(empty: Ledger) -> None:
    reserve(empty, "r1", gaussian(6.5), limit=LIMIT)
    assert not empty.measure(LIMIT, EVERYBODY, gaussian(4.0)).fits
    empty.free("r1", "the run was killed before anything was drawn")
    assert empty.standing(LIMIT).spending.spent == 0.0
    reserve(empty, "r2", gaussian(6.5), limit=LIMIT)
    empty.settle("r2", SHA)
    with pytest.raises(LimitExceeded):
        reserve(empty, "r3", gaussian(4.0), limit=LIMIT)


def test_each_person_has_a_budget_of_her_own(empty: Ledger) -> None:
    north, south = people(range(50)), people(range(50, 100))
    reserve(empty, "north", gaussian(6.0), north, LIMIT)
    reserve(empty, "south", gaussian(6.0), south, LIMIT)
    assert empty.standing(LIMIT).spending.spent == LIMIT.share(LIMIT.cost(gaussian(6.0)))
    for who in (south, people(range(100)), people(99), people(0, 200)):
        with pytest.raises(LimitExceeded):
            reserve(empty, "again", gaussian(6.0), who, LIMIT)
    reserve(empty, "west", gaussian(6.0), people(range(100, 150)), LIMIT)
    found = empty.measure(LIMIT, people(0, 60, 61, 200), gaussian(1.0))
    assert found.known == {"north": 1, "south": 2}


def test_a_limit_that_was_passed_lets_nothing_more_through(empty: Ledger) -> None:
    reserve(empty, "r1", gaussian(50.0))
    assert empty.standing(LIMIT).spending.spent > 1
    with pytest.raises(LimitExceeded, match="is spent by those who have spent most"):
        reserve(empty, "r2", gaussian(0.01), limit=LIMIT)
    reserve(empty, "r2", gaussian(0.01), people(77), LIMIT)


def test_what_was_measured_for_some_people_is_not_taken_for_others(empty: Ledger) -> None:
    """A table that is gone may leave its place in memory to another one."""
    reserve(empty, "r1", gaussian(6.0), EVERYBODY, LIMIT)

    def fits(numbers: list[int]) -> bool:
        return empty.measure(LIMIT, np.array(numbers, dtype=np.uint64), gaussian(6.0)).fits

    asked = [fits([n]) for n in (50, 3, 51, 4, 52, 5)]
    assert asked == [True, False] * 3


def test_the_second_measurement_under_the_lock_is_the_first_unless_something_came_between(
    empty: Ledger, path: Path, key: SigningKey
) -> None:
    asked = gaussian(6.0)
    assert empty.measure(LIMIT, EVERYBODY, asked).fits
    with Ledger(path, key) as other:
        reserve(other, "theirs", gaussian(6.0), limit=LIMIT)
    with pytest.raises(LimitExceeded):
        reserve(empty, "ours", asked, limit=LIMIT)


def test_settling(ledger: Ledger) -> None:
    before = ledger.head()
    assert ledger.settle("r1", SHA).number == 3
    assert ledger.head() == before
    with pytest.raises(ValueError, match="another output is another release"):
        ledger.settle("r1", "0" * 64)
    with pytest.raises(ValueError, match="not in the ledger"):
        ledger.settle("r9", SHA)
    with pytest.raises(ValueError, match="is published: only what is reserved"):
        ledger.free("r1", "a mistake")
    with pytest.raises(ValueError, match="is voided: only what is reserved"):
        ledger.free("r2", "again")
    with pytest.raises(ValueError, match="in the ledger already"):
        reserve(ledger, "r2", gaussian(0.1))
    assert ledger.people_of(ledger.release("r2")).tolist() == EVERYBODY.tolist(), "nobody wrote over it"


def test_what_became_public_after_it_was_freed_counts_again(ledger: Ledger) -> None:
    spent = ledger.standing(LIMIT).spending.spent
    ledger.settle("r2", SHA)
    assert ledger.release("r2").state == "published"
    assert ledger.release("r2").reason is not None
    assert ledger.standing(LIMIT).spending.spent > spent
    assert ledger.verify() == []


def test_scales_that_were_estimated_are_known_once_they_are_published(empty: Ledger) -> None:
    scales = {"calls": {"center": 1.0, "scale": 2.0}}
    reserve(empty, "r1")
    assert empty.history.scales() == {}
    empty.settle("r1", SHA, scales)
    assert empty.history.scales() == {"calls": scales["calls"] | {"release": "r1"}}
    reserve(empty, "r2")
    empty.settle("r2", SHA, {"calls": scales["calls"] | {"center": 5.0}})
    assert empty.history.scales()["calls"]["center"] == 5.0, "the newest counts"


# The people index


def test_a_lost_or_altered_people_index_stops_everything(ledger: Ledger, path: Path, key: SigningKey) -> None:
    place = path.parent / "people" / "r1.tags"
    kept = place.read_bytes()
    for content, said in ((None, "cannot be read"), (kept[8:], "not the file that the ledger has on record"),
                          (b"", "not the file"), (kept[:-1] + b"x", "not the file")):  # fmt: skip
        if content is None:
            place.unlink()
        else:
            place.write_bytes(content)
        with Ledger(path, key) as opened:
            assert any(said in problem for problem in opened.verify())
            for use in (
                lambda: reserve(opened, "r9", gaussian(0.1)),
                lambda: opened.standing(LIMIT),
                lambda: opened.measure(LIMIT, EVERYBODY, gaussian()),
            ):
                with pytest.raises(ValueError, match=r"bring (it|the right one) back from your backup"):
                    use()
            assert "r9" not in opened.history.releases
        place.write_bytes(kept)
    with Ledger(path, key) as opened:
        reserve(opened, "r9", gaussian(0.1))
    # Of what does not count, nobody needs to know.
    (path.parent / "people" / "r2.tags").unlink()
    with Ledger(path, key) as opened:
        assert opened.verify() == []
        reserve(opened, "r10", gaussian(0.1))


# Bad arguments


@pytest.mark.parametrize("bad", ["", "  ", " p", "p\n", "a\x00b", "\ud800", "x" * 2001])
def test_bad_reasons_are_refused(bad: str, ledger: Ledger) -> None:
    for call in (lambda: ledger.free("r3", bad), lambda: ledger.resume(bad)):
        with pytest.raises(ValueError, match="printable characters"):
            call()
    assert ledger.head().number == 6


def test_other_bad_arguments_are_refused(ledger: Ledger, path: Path, key: SigningKey) -> None:
    anything: Any = ledger
    for call in (
        lambda: anything.reserve("r9", None, WIDE, EVERYBODY, {}),
        lambda: anything.reserve("r9", Guarantee(0.25, 1.0), WIDE, EVERYBODY, {}),
        lambda: Ledger(path, "key.pem"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="is not a"):
            call()
    for sha in ("", SHA.upper(), SHA[:-1], None):
        with pytest.raises(ValueError, match="64 hex digits"):
            anything.settle("r3", sha)
    for title in ({"share": math.nan}, {"rows": object()}):
        with pytest.raises(ValueError, match="cannot be recorded"):
            ledger.reserve("r9", gaussian(), WIDE, EVERYBODY, title)
    with pytest.raises(ValueError, match="32 bytes in base64"):
        ledger.verify(public_key="nobody")
    with pytest.raises(ValueError, match="needs the data holder's signing key"):
        Ledger(path.with_name("new.db"), None, create=True)
    assert ledger.head().number == 6


def test_what_is_not_a_ledger_is_refused_and_left_alone(tmp_path: Path, key: SigningKey) -> None:
    other = tmp_path / "features.csv"
    other.write_text("name,calls\n" * 1000)
    database = tmp_path / "other.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE entries (number INTEGER)")
    for path in (other, database):
        before = path.read_bytes()
        for create in (True, False):
            with pytest.raises(ValueError, match="is not a ledger"):
                Ledger(path, key, create=create)
        assert path.read_bytes() == before
    with pytest.raises(ValueError, match="cannot be a ledger"):
        Ledger(tmp_path, key, create=True)
    with pytest.raises(ValueError, match="folder that exists"):
        Ledger(tmp_path / "nowhere" / "ledger.db", key, create=True)
    with pytest.raises(FileNotFoundError, match="there is no ledger"):
        Ledger(tmp_path / "none.db", key)
    assert not (tmp_path / "none.db").exists(), "a mistyped path makes no fresh budget"
    (tmp_path / "empty.db").touch()
    with pytest.raises(ValueError, match="is not a ledger"):
        Ledger(tmp_path / "empty.db")


def test_a_ledger_of_the_former_version_is_refused_in_a_sentence(path: Path, key: SigningKey) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x74647031}")
        connection.execute("CREATE TABLE entries (number INTEGER, population TEXT)")
        connection.commit()
    before = path.read_bytes()
    for create in (False, True):
        with pytest.raises(
            ValueError, match="is a ledger of an older targetdp, which kept budgets by declared"
        ):
            Ledger(path, key, create=create)
    assert path.read_bytes() == before


def test_another_key_cannot_write(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    other = SigningKey.open(tmp_path / "other.pem")
    with pytest.raises(ValueError, match=f"not by {other.fingerprint}.*targetdp key replace"):
        Ledger(path, other)
    (problem,) = ledger.verify(public_key=other.public)
    assert other.fingerprint in problem


def test_a_damaged_ledger_says_what_is_wrong_and_how_many_more(path: Path) -> None:
    one, three = LedgerDamaged(path, ["a"]), LedgerDamaged(path, ["a", "b", "c"])
    assert "is damaged: a; `targetdp ledger verify` lists what was found" in str(one)
    assert "is damaged: a (and 2 more);" in str(three)
    assert three.problems == ("a", "b", "c")


def test_people_are_kept_whatever_their_tags(empty: Ledger) -> None:
    who = people(0, 1, 2**63, 2**64 - 1)
    reserve(empty, "r1", who=who)
    assert empty.people_of(empty.release("r1")).tolist() == [0, 1, 2**63, 2**64 - 1]
    assert empty.measure(LIMIT, people(2**63), None).known == {"r1": 1}
