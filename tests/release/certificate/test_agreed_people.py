"""What certificates say of people who agreed: how many, what they agreed to, and that nothing is promised."""

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.agreed import AGREED, TO, handed_over, list_people, place_of_agreed, without_promise
from support.certificates import certificate_by
from support.release import FEATURES, certificate_of, cli, look, read_back, release, request_of, words
from targetdp.guarantee import Guarantee
from targetdp.release import (
    Certificate,
    Desk,
    Facts,
    Refused,
    certificate_path,
    conditions_of,
    describe_request,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._certificate._agreed import WithoutPromise
from targetdp.release._certificate._caveats import AllReleases, statement
from targetdp.release._staging import page_path

WEIGHTS = {"calls": 1.0, "texts": -0.5, "topups": 0.25}
ONE, TWO = "a" * 32, "b" * 32
PLAIN = Facts(
    scales="declared", public=(), columns=3, gaps={}, pseudonyms=False, tuned_on=None, engine="local",
    stated=AllReleases(Guarantee(0.25, 8.0, 1e-6), Guarantee(2.0, 40.0, 1e-6)), scores=("s",), rows=100,
)  # fmt: skip


def some(people: int, agreement: str = ONE, to: str = TO) -> WithoutPromise:
    return WithoutPromise(agreement=agreement, to=to, people=people)


def said(**change: Any) -> list[str]:
    """The conditions that such facts add."""
    before = conditions_of(PLAIN)
    return [one for one in conditions_of(replace(PLAIN, **change)) if one not in before]


def test_who_has_no_promise_is_told_first() -> None:
    facts = replace(PLAIN, agreed=(some(20), some(3, TWO, "a loan")))
    first, second, *rest = conditions_of(facts)
    assert first == (
        f"20 of 100 people agreed to be handed over as they are (“{TO}”, agreement {ONE}): nothing is "
        "promised to them."
    )
    assert second.startswith("3 of 100 people agreed")
    assert "a loan" in second
    assert tuple(rest) == conditions_of(PLAIN)


def test_what_was_learned_from_them_is_told_so() -> None:
    (told,) = said(learned_from=ONE[:8], agreed=(some(0),))
    assert "from people who agreed to be handed over as they are" in told
    assert "their labels can be guessed from it" in told
    (told,) = said(learned_from="c" * 8, agreed=(some(0),))
    assert f"from release {'c' * 8}" in told


def test_who_was_left_out_is_told_by_what_it_was() -> None:
    (told,) = said(left_out=(ONE,), agreed=(some(0),))
    assert told == f"People of agreement {ONE} were left out: nothing of their rows was looked at here."
    one, other = said(left_out=("c" * 32, ONE, TWO), agreed=(some(0), some(0, TWO)))
    assert f"release {'c' * 32} were" in one
    assert f"agreements {ONE}, {TWO} were" in other


def test_the_statement_counts_everybody_who_was_handed_over() -> None:
    near, far = Guarantee(0.25, 8.0, 1e-6), Guarantee(2.0, 40.0, 1e-6)
    plain = statement(near, far)
    assert statement(near, far, agreed=1).removeprefix(plain).startswith(" 1 person agreed")
    assert statement(near, far, agreed=2100).removeprefix(plain) == (
        " 2,100 people agreed to be handed over as they are: nothing of this is promised to them about the "
        "columns that they agreed to."
    )


def test_where_nobody_agreed_a_certificate_is_what_it_was() -> None:
    """To the last byte: so certificates from before anybody could agree hold."""
    c = certificate_by()
    plain = json.loads(c.text())
    assert "agreed" not in plain
    assert "agreed" not in plain["together"]
    assert Certificate.model_validate_json(c.text()) == c


def test_a_release_tells_of_them(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    name = handed_over(folder).agreement.agreement
    seen = look(folder)
    assert any(line.startswith("no promise: 20 of 60 people agreed") for line in seen.lines)
    assert seen.record()["without_promise"] == [{"agreement": name, "to": TO, "people": 20}]
    release(folder)
    c = certificate_of(folder / "out.parquet")
    assert c.agreed == (WithoutPromise(agreement=name, to=TO, people=20),)
    assert c.together.agreed == 20
    assert c.conditions[0].startswith("20 of 60 people agreed")
    page = page_path(folder / "out.parquet").read_text(encoding="utf-8")
    assert "**No promise**: 20 of 60 people agreed" in page
    assert cli("verify", folder / "out.parquet", "--desk", folder / "desk").code == 0
    ran = cli("ledger", "show", "--desk", folder / "desk", "--json")
    assert ran.json["agreements"][0]["people"] == 20
    assert ran.json["releases"][0]["agreed"] == {name: 20}


def test_a_table_without_them_tells_of_nobody(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    release(folder, table=read_back(folder / "in.parquet").slice(20), new_people="the others")
    assert without_promise(folder / "out.parquet") == {}
    assert certificate_of(folder / "out.parquet").together.agreed == 20


@pytest.mark.parametrize("short", [32, 8])
def test_a_question_that_was_learned_from_them_and_leaves_them_out(tmp_path: Path, short: int) -> None:
    folder = place_of_agreed(tmp_path)
    name = handed_over(folder).agreement.agreement
    asked = request_of(release="scores", weights=WEIGHTS, learned_from=name[:short], leave_out=[name[:short]])
    assert f"learned from release: {name[:short]}" in describe_request(asked)
    done = release(folder, request=asked)
    c = done.certificate
    assert (c.rows, c.left_out, c.learned_from) == (40, (name,), name[:short])
    assert without_promise(folder / "out.parquet") == {name: 0}
    assert sum("people who agreed" in one for one in c.conditions) == 1
    assert sum("were left out" in one for one in c.conditions) == 1
    assert verify_release(folder / "out.parquet", c, request=asked).holds
    everybody = release(
        folder, "all.parquet", release="scores", weights=WEIGHTS, learned_from=name[:short]
    ).certificate
    assert without_promise(folder / "all.parquet") == {name: 20}
    assert any("their labels can be guessed from it" in one for one in everybody.conditions)


def test_what_could_be_two_agreements_is_none(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    with pytest.raises(Refused, match="no release of this desk begins so"):
        release(folder, leave_out=["abcdef"])
    release(folder, release="scores", weights=WEIGHTS, learned_from="abcdef")
    told = certificate_of(folder / "out.parquet").conditions
    assert any("from release abcdef" in one for one in told), "on the word of whoever asks, as before"


def test_an_ambiguous_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place_of_agreed(tmp_path)
    drawn = iter([uuid.UUID(f"abcdef{digit}{'0' * 25}") for digit in (0, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: next(drawn))
        handed_over(folder)
        list_people(folder, 30)
        handed_over(folder, "more.parquet")
    scores: dict[str, Any] = {"release": "scores", "weights": WEIGHTS}
    with pytest.raises(Refused, match="2 releases and agreements begin so"):
        release(folder, learned_from="abcdef", **scores)
    with pytest.raises(Refused, match="several releases and agreements begin so"):
        release(folder, leave_out=["abcdef"], **scores)
    release(folder, learned_from="abcdef1", leave_out=["abcdef0"], **scores)


# What a dishonest desk could certify


FORGED: dict[str, tuple[Any, str]] = {
    "nobody": ([], "conditions"),
    "fewer": ([{"agreement": "?", "to": TO, "people": 3}], "conditions"),
    "more than there are": ([{"agreement": "?", "to": TO, "people": 61}], "people who agreed"),
    "one twice": ([{"agreement": "?", "to": TO, "people": 10}] * 2, "people who agreed"),
    "other words": ([{"agreement": "?", "to": "everything", "people": 20}], "conditions"),
}


def recertified(folder: Path, agreed: Any, *, conditions: bool) -> Certificate:
    """The certificate of out.parquet with other people who agreed, signed anew by its desk."""
    place = certificate_path(folder / "out.parquet")
    plain = json.loads(place.read_text(encoding="utf-8"))
    own = plain["agreed"][0]["agreement"]
    plain["agreed"] = [one | {"agreement": own} for one in agreed]
    c = Certificate.model_validate(plain)
    if conditions:
        c = c.model_copy(update={"conditions": conditions_of(c.facts())})
    return c.signed(Desk.open(folder / "desk").key)


def in_the_ledger(folder: Path, c: Certificate) -> bool:
    """Whether the desk's ledger has no objection to what a certificate says of people who agreed."""
    with Desk.open(folder / "desk").ledger() as ledger:
        found = [one for one in verify_in_ledger(c, ledger) if one.what == "people who agreed, in the ledger"]
    (one,) = found
    return one.holds is True


def test_fewer_than_are_left_after_an_erasure_are_found_out(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    release(folder)
    desk, c = Desk.open(folder / "desk"), certificate_of(folder / "out.parquet")
    with desk.ledger() as ledger:
        (agreement,) = ledger.history.agreements.values()
        ledger.erase(ledger.people_of(agreement)[:5], "asked to be erased")
    assert in_the_ledger(folder, c), "20 people, of whom the ledger knows 15 by now"
    own = c.agreed[0]
    for people, holds in ((15, True), (14, False), (21, False)):
        other = c.model_copy(update={"agreed": (own.model_copy(update={"people": people}),)})
        assert in_the_ledger(folder, other.signed(desk.key)) is holds, people
    assert not in_the_ledger(folder, c.model_copy(update={"agreed": ()}).signed(desk.key))


def test_fewer_than_were_handed_over_before_are_found_out(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    list_people(folder, 40, 20, "others.csv")
    handed_over(folder, "others.parquet", people="others.csv")
    release(folder)
    desk, c = Desk.open(folder / "desk"), certificate_of(folder / "out.parquet")
    assert c.together.agreed == 40
    assert in_the_ledger(folder, c)
    fewer = c.model_copy(update={"together": c.together.model_copy(update={"agreed": 39})})
    assert not in_the_ledger(folder, fewer.signed(desk.key))


@pytest.mark.parametrize("name", FORGED)
def test_a_certificate_that_tells_of_others_is_found_out(tmp_path: Path, name: str) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    release(folder)
    page_path(folder / "out.parquet").unlink()
    agreed, check = FORGED[name]
    c = recertified(folder, agreed, conditions=False)
    assert check in {one.what for one in verify_release(folder / "out.parquet", c).failed}
    c = recertified(folder, agreed, conditions=True)
    with Desk.open(folder / "desk").ledger() as ledger:
        found = verify_release(folder / "out.parquet", c).also(verify_in_ledger(c, ledger))
    failed = {one.what for one in found.failed}
    assert failed & {"people who agreed", "people who agreed, in the ledger"}, "the ledger knows better"


def test_more_people_than_went_out_at_all_are_found_out(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    handed_over(folder)
    release(folder)
    c = certificate_of(folder / "out.parquet")
    lower = c.model_copy(update={"together": c.together.model_copy(update={"agreed": 19})})
    lower = lower.model_copy(update={"conditions": conditions_of(lower.facts())})
    found = verify_release(folder / "out.parquet", lower.signed(Desk.open(folder / "desk").key))
    assert "people who agreed" in {one.what for one in found.failed}


def test_the_command_shows_them_before_and_after(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, agreed=AGREED | {"columns": FEATURES})
    handed_over(folder)
    ran = cli(
        "privatize", folder / "in.parquet", "--B", "0.25", "--epsilon", "4", "--check", "--desk",
        folder / "desk",
    )  # fmt: skip
    assert "no promise: 20 of 60 people agreed" in words(ran.err)
