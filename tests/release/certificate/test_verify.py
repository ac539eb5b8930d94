"""Verification finds every tampering: with files, with certificates, signed again or not."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import (
    FEATURES,
    certificate_of,
    make_desk,
    read_back,
    release,
    release_frame,
    table_of,
    write_parquet,
)
from targetdp.guarantee import Guarantee
from targetdp.release import (
    Certificate,
    Check,
    Desk,
    Ledger,
    SigningKey,
    Verification,
    certificate_path,
    read_certificate,
    verify,
    verify_in_ledger,
    verify_release,
)
from targetdp.release._certificate._caveats import statement
from targetdp.release._certificate._contents import _shown
from targetdp.release._certificate._numbers import verify_guarantee
from targetdp.release._certificate._page import page
from targetdp.release._certificate._parts import Stated
from targetdp.release._staging import page_path

Plain = dict[str, Any]
SCORES: Plain = {"release": "scores", "weights": {"calls": 1.0, "texts": 2.0, "topups": -1.0}}
TWO = {"calls": [1.0, 1.0], "texts": [-1.0, 1.0], "topups": [0.0, -2.0]}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a desk, and releases of every shape."""
    folder = tmp_path_factory.mktemp("released")
    write_parquet(folder / "in.parquet", table_of(80, region=["north", "south"] * 40))
    make_desk(folder, public={"region": "it is on the list"})
    for name, given in {
        "one.parquet": {},
        "two.parquet": {},
        "text.csv": {"mechanism": "gaussian"},
        "parts": {"mechanism": "projection-exact"},
        "score.parquet": SCORES,
        "scores.csv": {"release": "scores", "weights": TWO, "scores": ("a", "b"), "learned_from": "abcdef"},
    }.items():
        release(folder, name, **given)
    return folder


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose desk has private scales, under pseudonyms: estimated, then reused."""
    folder = tmp_path_factory.mktemp("private")
    write_parquet(folder / "in.parquet", table_of(3000))
    make_desk(folder, scales="private", pseudonyms=True)
    release(folder, "first.parquet", features=("calls", "texts"))
    release(folder, "mixed.parquet")
    release(folder, "later.parquet")
    return folder


def key_of(folder: Path) -> SigningKey:
    """The desk's own key; the folder may be a copy, which is no desk of anybody."""
    return SigningKey.open(folder / "desk" / "keys" / "signing.pem", create=False)


def in_ledger(c: Certificate, folder: Path) -> list[Check]:
    with Ledger(folder / "desk" / "ledger.db") as ledger:
        return list(verify_in_ledger(c, ledger))


def wrong_in_ledger(c: Certificate, folder: Path) -> set[str]:
    return {check.what for check in in_ledger(c, folder) if not check.holds}


@pytest.fixture
def folder(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released, tmp_path / "copy")


def failed(found: Verification) -> set[str]:
    return {check.what for check in found.checks if check.holds is False}


def verified(output: Path, public_key: str | None = None) -> set[str]:
    return failed(verify_release(output, certificate_of(output), public_key))


def edit(output: Path, change: Callable[[Plain], Any], key: SigningKey | None = None) -> None:
    """Change a certificate and its page, and sign it again if there is a key."""
    place = certificate_path(output)
    plain = json.loads(place.read_text())
    change(plain)
    made = Certificate.model_validate(plain)
    made = made if key is None else made.signed(key)
    place.write_text(made.text())
    try:
        page_path(output).write_text(page(made), encoding="utf-8")
    except (ValueError, LookupError):  # too strange for a page: a forger would leave it out
        page_path(output).unlink(missing_ok=True)


ALL = ["one.parquet", "two.parquet", "text.csv", "parts", "score.parquet", "scores.csv"]


@pytest.mark.parametrize("name", ALL)
def test_a_release_as_it_was_made_holds(released: Path, name: str) -> None:
    c = certificate_of(released / name)
    found = verify_release(released / name, c, key_of(released).public).also(in_ledger(c, released))
    assert found.holds
    assert all(check.holds or check.what == "noise in the values" for check in found.checks), found.checks
    expected = {
        "signature", "signer", "page", "columns of the file", "rows", "values", "order", "guarantee",
        "ledger", "noise", "conditions", "column scales", "release in the ledger", "published file", "charge",
        "classic differential privacy", "ε at other distances", "all releases together",
    }  # fmt: skip
    whats = {check.what for check in found.checks}
    assert expected <= whats
    assert ({"scores", "weights"} <= whats) == name.startswith("score")
    assert "the release holds" in found._repr_html_()


@pytest.mark.parametrize("name", ["first.parquet", "mixed.parquet", "later.parquet"])
def test_private_scales_and_pseudonyms_hold(private: Path, name: str) -> None:
    c = certificate_of(private / name)
    found = verify_release(private / name, c, key_of(private).public).also(in_ledger(c, private))
    assert all(check.holds or check.what == "noise in the values" for check in found.checks), found.checks
    assert "pseudonyms" in {check.what for check in found.checks}
    assert (c.scales.source, len(c.scales.releases)) == {
        "first.parquet": ("private", 0), "mixed.parquet": ("private", 1), "later.parquet": ("earlier", 2),
    }[name]  # fmt: skip


def test_one_call_verifies_what_lies_beside_its_certificate(released: Path) -> None:
    assert verify(released / "one.parquet").holds
    assert verify(str(released / "one.parquet"), str(certificate_path(released / "one.parquet"))).holds
    assert not verify(released / "one.parquet", certificate_of(released / "two.parquet")).holds
    with pytest.raises(ValueError, match="cannot be read"):
        verify(released / "in.parquet")


@pytest.mark.parametrize("name", ["one.parquet", "text.csv", "parts/part-00000.parquet"])
@pytest.mark.parametrize("where", [0.0, 0.3, 0.6, 1.0])
def test_one_byte_of_the_file_is_found(folder: Path, name: str, where: float) -> None:
    file = folder / name
    content = bytearray(file.read_bytes())
    content[int(where * (len(content) - 1))] ^= 1
    file.write_bytes(bytes(content))
    assert f"file {file.name}" in verified(folder / name.split("/", maxsplit=1)[0])


def test_a_byte_more_and_a_file_that_is_gone_are_found(folder: Path) -> None:
    with (folder / "text.csv").open("ab") as file:
        file.write(b"\n")
    assert "file text.csv" in verified(folder / "text.csv")
    (folder / "one.parquet").unlink()
    assert "file" in verified(folder / "one.parquet")
    (folder / "parts" / "part-00000.parquet").unlink()
    assert "file" in verified(folder / "parts")


def test_a_part_more_is_found(folder: Path) -> None:
    shutil.copy(folder / "parts" / "part-00000.parquet", folder / "parts" / "part-00001.parquet")
    assert "list of parts" in verified(folder / "parts")
    (folder / "parts" / "part-00001.parquet").unlink()
    assert verified(folder / "parts") == set()
    (folder / "parts" / "notes.txt").write_text("raw means: 3, 4, 5")
    assert "list of parts" in verified(folder / "parts")


def test_another_release_s_certificate_is_found(folder: Path) -> None:
    for one, two in (("one.parquet", "two.parquet"), ("text.csv", "scores.csv")):
        mine, other = certificate_path(folder / one), certificate_path(folder / two)
        mine.write_bytes(other.read_bytes())
        assert any(what.startswith("file ") for what in verified(folder / one))


EDITS: dict[str, Callable[[Plain], Any]] = {
    "ε": lambda c: c["guarantee"].update(epsilon=1.0),
    "δ": lambda c: c["guarantee"].update(delta=1e-9),
    "B": lambda c: c["guarantee"].update(B=0.5),
    "less noise in fact": lambda c: c["mechanism"]["law"].update(scale=c["mechanism"]["law"]["scale"] * 0.99),
    "deviation": lambda c: c["mechanism"].update(deviation_per_column=9.0),
    "ε elsewhere": lambda c: c["distances"][5].update(epsilon=1.0),
    "ε is 0 elsewhere": lambda c: c["distances"][5].update(epsilon=0.0),
    "best guess": lambda c: c["distances"][7].update(best_guess=0.5),
    "classic": lambda c: c["classic"]["exact"].update(epsilon=1.0),
    "lemma": lambda c: c["classic"].update(switch_lemma={"B": 2, "epsilon": 1, "delta": 0.01}),
    "another limit": lambda c: c["together"]["near"].update(epsilon=90.0),
    "all releases are less than this one": lambda c: with_statement(
        c, near={"epsilon": 3.9, "delta": c["guarantee"]["delta"]}
    ),
    "all releases are less at distance 2": lambda c: with_statement(c, classic={"epsilon": 5.0}),
    "all releases with δ of less": lambda c: with_statement(c, near={"epsilon": 3.95, "delta": 1e-9}),
    "all releases nearby only": lambda c: with_statement(c, classic={"B": 1.0}),
    "more limits than are told": lambda c: c["together"].update(limits=2),
    "all releases in other words": lambda c: c["conditions"].__setitem__(-1, "All is well."),
    "rows": lambda c: c.update(rows=81),
    "features": lambda c: c.update(features=["texts", "calls", "topups"]),
    "a feature fewer": lambda c: c.update(features=["calls", "texts"]),
    "a public column fewer": lambda c: c.update(public={}),
    "a public column more": lambda c: c["public"].update(more="why"),
    "people who were left out": lambda c: c.update(left_out=["abcdef"]),
    "where weights come from": lambda c: c.update(learned_from="abcdef"),
    "scores where there are none": lambda c: c.update(scores=["a", "b", "c"]),
    "gaps that were filled": lambda c: c.update(gaps={"calls": 0.0}),
    "id": lambda c: c.update(id="calls"),
    "hash": lambda c: c["output"].update(sha256="0" * 64),
    "file hash": lambda c: c["output"]["files"][0].update(sha256="0" * 64),
    "file size": lambda c: c["output"]["files"][0].update(size=1),
    "no files": lambda c: c["output"].update(files=[]),
    "no family": lambda c: c["mechanism"]["law"].pop("family"),
    "an unknown family": lambda c: c["mechanism"]["law"].update(family="magic"),
    "a law with a field more": lambda c: c["mechanism"]["law"].update(seed=3),
    "text for a number": lambda c: c["mechanism"]["law"].update(scale="much"),
    "a list for a number": lambda c: c["mechanism"]["law"].update(grid=[1]),
    "coarse grid": lambda c: c["mechanism"]["law"].update(grid=1.0),
    "conditions": lambda c: c.update(conditions=[]),
    "a condition fewer": lambda c: c["conditions"].pop(),
    "tuned on": lambda c: c.update(tuned_on="public"),
    "scales that are not shown": lambda c: c["scales"].update(values={}),
    "a scale fewer": lambda c: c["scales"]["values"].pop("calls"),
    "scales of an earlier release": lambda c: c["scales"].update(source="earlier"),
    "scales of an earlier release, named": lambda c: c["scales"].update(source="earlier", releases=["a"]),
    "scales estimated here": lambda c: c["scales"].update(estimated=["calls"]),
    "scales of another release": lambda c: c["scales"].update(releases=["abcdef"]),
    "private scales for nothing": lambda c: c["scales"].update(source="private"),
    "scales paid for nearby only": lambda c: c["scales"].update(
        source="private", spent={"B": 1e-6, "epsilon": 0.001, "delta": 0}
    ),
    "distances turned round": lambda c: [
        a.update(distance=b)
        for a, b in zip(c["distances"], [a["distance"] for a in c["distances"]][::-1], strict=True)
    ],
    "fewer distances": lambda c: c["distances"].pop(),
    "another mechanism's name": lambda c: c["mechanism"].update(name="gaussian"),
    "noise length": lambda c: c["mechanism"].update(noise_length=0.1),
    "pseudonyms": lambda c: c.update(pseudonyms=True),
    "engine": lambda c: c.update(engine="spark"),
    "every number is on this grid": lambda c: c["mechanism"]["law"].update(grid=2.0**-200),
    "finer grid": lambda c: c["mechanism"]["law"].update(grid=c["mechanism"]["law"]["grid"] * 4),
}  # fmt: skip
"""What a certificate must not say of one.parquet: its numbers speak against each, whoever signs."""


def with_statement(c: Plain, **changed: Plain) -> None:
    """Other numbers for all releases together, with the words that belong to them."""
    for name, fields in changed.items():
        c["together"][name].update(fields)
    near, far = (Guarantee(**c["together"][name]) for name in ("near", "classic"))
    c["conditions"][-1] = statement(near, far, c["together"]["limits"])


@pytest.mark.parametrize("what", EDITS)
def test_a_false_certificate_is_found_even_if_the_holder_signs_it(folder: Path, what: str) -> None:
    output = folder / "one.parquet"
    edit(output, EDITS[what])
    assert "signature" in verified(output)
    edit(output, lambda c: None, key_of(folder))
    found = verified(output)
    assert found
    assert "signature" not in found


PLAUSIBLE: dict[str, Callable[[Plain], Any]] = {
    "time": lambda c: c.update(time="1999-01-01T00:00:00+00:00"),
    "a weaker claim": lambda c: c["guarantee"].update(epsilon=9.0, delta=0.1),
    "a weaker claim of all releases": lambda c: with_statement(c, near={"epsilon": 500.0}),
    "another desk": lambda c: c["desk"].update(id="0" * 32, name="other"),
    "another policy": lambda c: c["desk"].update(policy=7, policy_sha256="0" * 64),
    "another request": lambda c: c["request"].update(sha256="0" * 64, why="it is safe"),
    "another reason": lambda c: c["public"].update(region="everybody knows"),
    "the ledger's place": lambda c: c["ledger"].update(number=77),
}
"""What only the signature tells."""


@pytest.mark.parametrize("what", PLAUSIBLE)
def test_what_numbers_cannot_tell_the_signature_tells(folder: Path, what: str) -> None:
    output, mine = folder / "one.parquet", key_of(folder)
    edit(output, PLAUSIBLE[what])
    assert "signature" in verified(output)
    edit(output, lambda c: None, SigningKey.open(folder / "stranger.pem"))
    assert "signature" not in verified(output)
    assert "signer" in verified(output, mine.public)


def test_a_certificate_without_a_signature_does_not_hold(folder: Path) -> None:
    edit(folder / "one.parquet", lambda c: c.update(signature=None))
    assert "signature" in verified(folder / "one.parquet")


@pytest.mark.parametrize("key", ["", "AAAA", "no base64!"])
def test_a_signature_with_a_malformed_key_does_not_hold(folder: Path, key: str) -> None:
    edit(folder / "one.parquet", lambda c: c["signature"].update(key=key))
    assert "signature" in verified(folder / "one.parquet")


def test_no_stranger_s_key_is_taken_for_the_holder_s(released: Path, tmp_path: Path) -> None:
    stranger = SigningKey.open(tmp_path / "stranger.pem")
    assert verified(released / "one.parquet", stranger.public) == {"signer"}


# A holder who makes a file by other means than the noise, and signs a certificate for it


def forge(folder: Path, change: Callable[[pa.Table], pa.Table]) -> set[str]:
    output = folder / "one.parquet"
    pq.write_table(change(read_back(output)), output)
    digest = hashlib.sha256(output.read_bytes()).hexdigest()

    def admit(c: Plain) -> None:
        c["output"]["files"][0].update(sha256=digest, size=output.stat().st_size)
        c["output"].update(sha256=digest)

    edit(output, admit, key_of(folder))
    return verified(output)


def test_rows_that_are_missing_or_twice_are_found(folder: Path) -> None:
    assert "rows" in forge(folder, lambda t: t.slice(1))
    assert "rows" in forge(folder, lambda t: pa.concat_tables([t, t.slice(0, 2)]))


def test_ids_out_of_order_or_twice_are_found(folder: Path) -> None:
    assert forge(folder, lambda t: t.take([1, 0, *range(2, 80)])) == {"order"}
    assert forge(folder, lambda t: t.take([0, 0, *range(2, 80)])) == {"order"}


@pytest.mark.parametrize("value", [0.1, np.nan, np.inf])
def test_values_that_the_noise_cannot_make_are_found(folder: Path, value: float) -> None:
    def change(table: pa.Table) -> pa.Table:
        column = np.asarray(table["texts"]).copy()
        column[7] = value
        return table.set_column(2, "texts", [column])

    assert forge(folder, change) == {"values"}


def test_a_column_more_is_found(folder: Path) -> None:
    assert "columns of the file" in forge(folder, lambda t: t.append_column("raw", [range(80)]))


def test_columns_that_are_not_named_are_counted() -> None:
    names = [f"c{j}" for j in range(11)]
    assert _shown(names) == "c0, c1, c2, c3, c4, c5, c6, c7 and 3 more"
    assert _shown(names[:8]) == "c0, c1, c2, c3, c4, c5, c6, c7"


# Claims where there can be none


@pytest.mark.parametrize("paid", [0.001, 3.9, 5.0])
def test_what_was_paid_for_scales_is_not_there_for_the_noise(released: Path, paid: float) -> None:
    c = certificate_of(released / "text.csv")
    spent = Stated(B=2, epsilon=paid, delta=0)
    forged = c.model_copy(update={"scales": c.scales.model_copy(update={"spent": spent})})
    first, again = ({k.what: k.holds for k in verify_guarantee(x)} for x in (c, forged))
    assert (first["guarantee"], again["guarantee"]) == (True, False)


def test_a_page_that_says_something_else_is_found(folder: Path) -> None:
    path = page_path(folder / "one.parquet")
    path.write_text(path.read_text(encoding="utf-8").replace("ε = 4", "ε = 0.1"), encoding="utf-8")
    assert verified(folder / "one.parquet") == {"page"}


def test_a_certificate_that_shows_another_guarantee_to_other_eyes_is_refused(folder: Path) -> None:
    """Of two equal keys some readers take the first, ours the last."""
    path = certificate_path(folder / "one.parquet")
    text = path.read_text(encoding="utf-8")
    better = '"guarantee": {"B": 2, "epsilon": 0.01, "delta": 0},\n  "guarantee": {'
    path.write_text(text.replace('"guarantee": {', better, 1), encoding="utf-8")
    with pytest.raises(ValueError, match="was edited: it is not in the form that targetdp writes"):
        certificate_of(folder / "one.parquet")


def test_a_link_in_a_folder_is_found(folder: Path) -> None:
    (folder / "extra").mkdir()
    shutil.copy(folder / "parts" / "part-00000.parquet", folder / "extra" / "more.parquet")
    (folder / "parts" / "more").symlink_to(folder / "extra")
    assert "list of parts" in verified(folder / "parts")


def test_a_frame_s_certificate_holds_for_its_frame_only(folder: Path, tmp_path: Path) -> None:
    raw = table_of(80)
    (tmp_path / "frames").mkdir()
    done = release_frame(raw, make_desk(tmp_path / "frames"))
    pq.write_table(done.frame, folder / "frame.parquet")
    assert failed(verify_release(folder / "frame.parquet", done.certificate)) == set()
    pq.write_table(raw.select(["name", *FEATURES]), folder / "raw.parquet")
    assert "content" in failed(verify_release(folder / "raw.parquet", done.certificate))


def test_a_ledger_that_somebody_else_signed_anew_is_found(folder: Path) -> None:
    stranger = SigningKey.open(folder / "stranger.pem")
    with Ledger(folder / "other.db", stranger, create=True) as other:
        found = {k.what: k for k in verify_in_ledger(certificate_of(folder / "one.parquet"), other)}
    assert found["ledger"].holds is False


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    place = tmp_path / "c.json"
    with pytest.raises(ValueError, match=f"certificate {place} cannot be read: No such file"):
        read_certificate(place)
    place.write_text("{}")
    with pytest.raises(ValueError, match=f"certificate {place} is not one: release must be given"):
        read_certificate(place)
    place.write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match=f"certificate {place} is not one"):
        read_certificate(place)


# The ledger


def test_a_release_that_the_ledger_does_not_know_is_found(folder: Path) -> None:
    c = certificate_of(folder / "one.parquet").model_copy(update={"release": "0" * 32})
    assert wrong_in_ledger(c, folder) == {"release in the ledger"}


def test_a_charge_for_other_noise_is_found(folder: Path) -> None:
    c, other = certificate_of(folder / "one.parquet"), certificate_of(folder / "text.csv")
    assert wrong_in_ledger(c.model_copy(update={"mechanism": other.mechanism}), folder) == {"charge"}


def test_scales_that_were_not_charged_are_found(private: Path) -> None:
    c = certificate_of(private / "first.parquet")
    cheap = c.scales.model_copy(update={"spent": Stated(B=2, epsilon=0.01, delta=0)})
    assert wrong_in_ledger(c.model_copy(update={"scales": cheap}), private) == {"charge"}


def test_another_published_file_is_found(folder: Path) -> None:
    c = certificate_of(folder / "one.parquet")
    other = c.model_copy(update={"output": certificate_of(folder / "two.parquet").output})
    assert wrong_in_ledger(other, folder) == {"published file"}


def test_a_ledger_that_was_rolled_back_is_found(folder: Path) -> None:
    c = certificate_of(folder / "one.parquet")
    later = c.model_copy(update={"ledger": c.ledger.model_copy(update={"number": 99})})
    assert wrong_in_ledger(later, folder) == {"ledger"}


def test_a_people_index_that_was_lost_is_found(folder: Path) -> None:
    c = certificate_of(folder / "one.parquet")
    (folder / "desk" / "people" / f"{c.release}.tags").unlink()
    assert wrong_in_ledger(c, folder) == {"ledger"}


def test_the_desk_s_own_key_is_the_one_that_signs(released: Path) -> None:
    assert key_of(released).public == Desk.open(released / "desk").key.public
