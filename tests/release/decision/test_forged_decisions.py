"""Decisions that were forged by whoever has the key: each is really signed, so that only a check finds it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.decisions import (
    asks,
    batches_of_people,
    bits_of,
    check_named,
    decision,
    failed,
    forge,
    near,
    with_bits,
    with_cut,
    with_page,
)
from support.release import certificate_of, cli, place_with, release
from targetdp.release import Desk, Request, certificate_path, verify, verify_in_ledger

ROWS = 800
ASKED: dict[str, Request] = {
    "classic": asks(epsilon=2.0),
    "near": asks(near(), B=0.25, epsilon=2.0),
    "together": asks(decision(), with_cut(9.0, name="loan"), epsilon=2.0),
    "known": asks(with_cut(9.0), epsilon=2.0),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A release of each kind, as it was: what each test forges is put back."""
    folder = place_with(tmp_path_factory.mktemp("forged"), ROWS)
    kept = {}
    for kind, asked in ASKED.items():
        output = folder / f"{kind}.parquet"
        release(folder, output.name, request=asked)
        paths = [output, certificate_path(output), output.with_name(f"{output.name}.certificate.md")]
        kept[kind] = (output, {path: path.read_bytes() for path in paths})
    return {"desk": Desk.open(folder / "desk"), "kept": kept}


class Forger:
    """One release that is forged again and again."""

    def __init__(self, made: dict[str, Any], kind: str) -> None:
        self.desk: Desk = made["desk"]
        self.output, files = made["kept"][kind]
        for path, content in files.items():
            path.write_bytes(content)
        self.request = ASKED[kind]
        self.table = pq.ParquetFile(self.output).read()

    def forged(
        self,
        change: Callable[[dict[str, Any]], None] | None = None,
        table: pa.Table | None = None,
        **more: Any,
    ) -> list[str]:
        """What is found wrong, once it is signed again."""
        forge(self.output, self.desk, change, table, **more)
        return failed(self.output)


@pytest.fixture(params=ASKED)
def any_kind(request: pytest.FixtureRequest, made: dict[str, Any]) -> Forger:
    return Forger(made, request.param)


def test_signing_again_is_no_forgery(any_kind: Forger) -> None:
    """Otherwise every test here would pass."""
    assert any_kind.forged() == []
    assert any_kind.forged(table=any_kind.table) == []
    with_page(any_kind.output)
    assert failed(any_kind.output, any_kind.request) == []


# Bits


@pytest.mark.parametrize("kind", ["classic", "near", "together"])
def test_a_bit_of_an_early_batch_that_was_flipped_makes_other_cuts(made: dict[str, Any], kind: str) -> None:
    """Hashes and signature are right: the cuts on record do not follow from these bits."""
    forger = Forger(made, kind)
    c = certificate_of(forger.output)
    batches = batches_of_people(forger.table["name"].to_pylist(), c.release)
    for number in (0, 1, 3, int(batches.max()) - 1):
        bits = bits_of(forger.table)
        bits[int(np.argmax(batches == number))] ^= True
        assert forger.forged(table=with_bits(forger.table, bits)) == ["cuts"]
        forger = Forger(made, kind)
    # Nothing follows from the last batch: a flip there is not found, and nothing says that it would be.
    bits = bits_of(forger.table)
    bits[int(batches.argmax())] ^= True
    assert forger.forged(table=with_bits(forger.table, bits)) == []


def test_a_flip_without_the_key_is_found_by_the_hash(any_kind: Forger) -> None:
    bits = bits_of(any_kind.table)
    bits[5] ^= True
    pq.write_table(with_bits(any_kind.table, bits), any_kind.output)
    assert f"file {any_kind.output.name}" in failed(any_kind.output)


@pytest.mark.parametrize("value", [True, False])
def test_all_yes_and_all_no_are_beyond_the_law(made: dict[str, Any], value: bool) -> None:
    """With cuts that follow from them, too: a share that no table makes."""
    for kind in ("known", "together"):
        forger = Forger(made, kind)
        name = {"known": "aid", "together": "loan"}[kind]
        everybody = with_bits(forger.table, np.full(ROWS, value), name)
        assert forger.forged(table=everybody) == [f"share of yes: {name}"]
        found = check_named(verify(forger.output), f"share of yes: {name}")
        assert found.detail == "beyond what the law allows for any table"


def test_rows_that_are_missing_or_come_twice(any_kind: Forger) -> None:
    assert "rows" in any_kind.forged(table=any_kind.table.slice(1))
    twice = pa.concat_tables([any_kind.table.slice(0, 1), any_kind.table.slice(0, ROWS - 1)])
    assert "order" in any_kind.forged(table=twice)


def test_rows_that_are_missing_are_found_where_the_count_says_so_too(made: dict[str, Any]) -> None:
    """The certificate is for one person less: everybody's turn is another one."""
    forger = Forger(made, "classic")
    assert forger.forged(lambda c: c.update(rows=ROWS - 1), forger.table.slice(1)) == ["cuts"]


@pytest.mark.parametrize("kind", ["classic", "together"])
def test_a_value_that_is_no_answer(made: dict[str, Any], kind: str) -> None:
    forger = Forger(made, kind)
    bits = bits_of(forger.table).tolist()
    for column in (
        pa.array([None, *bits[1:]], pa.bool_()),
        pa.array([float(bit) for bit in bits]),
        pa.array([int(bit) for bit in bits]),
        pa.array([str(bit) for bit in bits]),
        pa.array([0.25, *map(float, bits[1:])]),
    ):
        other = forger.table.set_column(1, "aid", column)
        assert forger.forged(table=other), column.type
        assert cli("verify", forger.output).code == 1


# Cuts


@pytest.mark.parametrize("kind", ["classic", "near", "together"])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_cuts_are_found_again_to_the_step(made: dict[str, Any], kind: str, place: int) -> None:
    forger = Forger(made, kind)

    def moved(c: dict[str, Any]) -> None:
        own = [list(cuts) for cuts in c["cuts"]]
        own[0][place] += 1
        c["cuts"] = tuple(map(tuple, own))

    assert forger.forged(moved) == ["cuts"]


@pytest.mark.parametrize(
    "cuts", [(), ((),), "fewer", "more", "twice"], ids=["none", "empty", "fewer", "more", "twice"]
)
def test_there_is_one_cut_for_each_batch_and_decision(any_kind: Forger, cuts: Any) -> None:
    def change(c: dict[str, Any]) -> None:
        own = c["cuts"]
        other = {
            "fewer": tuple(one[:-1] for one in own),
            "more": tuple((*one, one[-1]) for one in own),
            "twice": (*own, own[0]),
        }
        c["cuts"] = other[cuts] if isinstance(cuts, str) else cuts

    assert "cuts" in any_kind.forged(change)


def test_in_another_release_everybody_has_another_turn(made: dict[str, Any]) -> None:
    """So a certificate cannot be taken for another one's bits."""
    for kind in ("classic", "near", "together"):
        forger = Forger(made, kind)
        assert forger.forged(lambda c: c.update(release="ab" * 16)) == ["cuts"]


# The law


def set_law(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(c: dict[str, Any]) -> None:
        c["mechanism"]["law"] = c["mechanism"]["law"] | changes

    return change


def test_a_level_above_the_promise(any_kind: Forger) -> None:
    """Less error than is promised: and one that is below it makes other cuts."""
    found = any_kind.forged(set_law(level=2.5))
    assert {"guarantee", "ε at other distances"} <= {*found}


def test_a_level_below_the_promise_makes_other_cuts(made: dict[str, Any]) -> None:
    forger = Forger(made, "classic")
    assert forger.forged(set_law(level=1.5)) == ["cuts"]


def test_narrower_cells_keep_no_promise(made: dict[str, Any]) -> None:
    forger = Forger(made, "near")
    for by in (1, 2**40, 2**48):
        law = dict(certificate_of(forger.output).mechanism.law)
        cells = dict(law["cells"])
        found = forger.forged(set_law(cells=cells | {"width": cells["width"] - by}))
        assert "decisions" in found
        forger = Forger(made, "near")


def test_a_longer_score_moves_rows_apart(made: dict[str, Any]) -> None:
    for factor in (1.001, 1 + 1e-6, 2.0, 0.5):
        forger = Forger(made, "near")
        cells = dict(certificate_of(forger.output).mechanism.law["cells"])
        longer = [factor * weight for weight in cells["score"]["weights"]]
        assert forger.forged(set_law(cells=cells | {"score": {"weights": longer}})), factor


def test_another_score_than_was_asked_for(made: dict[str, Any]) -> None:
    """Of norm 1: the promise would hold, for another question."""
    forger = Forger(made, "near")
    cells = dict(certificate_of(forger.output).mechanism.law["cells"])
    for score in (
        {"weights": [0.6, 0.79999999]},
        {"weights": cells["score"]["weights"][::-1]},
        {"weights": [-weight for weight in cells["score"]["weights"]]},
        {"weights": [1.0]},
        {"weights": [*cells["score"]["weights"], 0.0]},
        {"knots": [[-1.0, 1.0], [-1.0, 1.0]], "values": [[-0.6, 0.6], [-0.79, 0.79]]},
    ):
        forger = Forger(made, "near")
        assert "decisions" in forger.forged(set_law(cells=cells | {"score": score}))


def test_no_cells_below_B_2_and_none_at_it(made: dict[str, Any]) -> None:
    """Each would keep its promise; neither is what the request means there."""
    forger = Forger(made, "near")
    law = certificate_of(forger.output).mechanism.law
    scales = certificate_of(forger.output).scales.model_dump()
    assert "decisions" in forger.forged(set_law(cells=None))
    nothing: dict[str, Any] = {"source": "none", "reason": None, "spent": None, "values": {}}
    nothing |= {"estimated": (), "releases": ()}
    forger = Forger(made, "near")
    found = forger.forged(lambda c: (set_law(cells=None)(c), c.update(scales=nothing))[0])
    assert {"column scales", "decisions"} <= {*found}
    forger = Forger(made, "known")
    cells = dict(law["cells"]) | {"width": 2**51 + 1000}

    def with_cells(c: dict[str, Any]) -> None:
        set_law(cells=cells)(c)
        c["scales"] = scales

    found = forger.forged(with_cells)
    assert "decisions" in found
    forger = Forger(made, "known")
    assert forger.forged(lambda c: c.update(scales=scales)) == ["decisions"]


def test_another_number_of_programs(any_kind: Forger) -> None:
    now = len(any_kind.request.decisions)
    cells = any_kind.request.B < 2  # with which there is no law for several
    for programs in {1, 2, 3, 4} - {now}:
        assert ("guarantee" if cells else "decisions") in any_kind.forged(set_law(programs=programs))


@pytest.mark.parametrize("kind", ["rows", "decisions"])
def test_a_law_of_noise_makes_no_decisions_and_the_other_way_round(made: dict[str, Any], kind: str) -> None:
    forger = Forger(made, "classic")
    if kind == "decisions":
        assert forger.forged(set_law(family="nothing"))
        forger = Forger(made, "classic")
        noise = {"family": "gaussian", "sigma": 1.0, "dimensions": 2}
        assert forger.forged(lambda c: c["mechanism"].update(law=noise))
        return
    assert forger.forged(lambda c: c.update(decisions=()))


# What was asked


def set_decision(place: int = 0, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(c: dict[str, Any]) -> None:
        own = list(c["decisions"])
        own[place] = own[place] | changes
        c["decisions"] = tuple(own)

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": {"calls": 1.0, "texts": 0.6}},
        {"weights": {"calls": -1.0, "texts": -0.5}},
        {"share": 0.31},
        {"expected": ((-20.0, 0.0), (9.0, 0.3), (60.0, 1.0))},
        {"share": None, "expected": None, "cut": 8.0},
        {"yes": "above", "expected": ((-20.0, 1.0), (8.0, 0.3), (60.0, 0.0))},
    ],
)
def test_other_decisions_than_were_asked_for(made: dict[str, Any], changes: dict[str, Any]) -> None:
    """Whoever has the request finds all of them; whoever has not, those that cuts or the law tell."""
    forger = Forger(made, "classic")
    found = forger.forged(set_decision(**changes))
    if "weights" not in changes:  # at B = 2 bits tell nothing of weights, which are the data holder's word
        assert found == ["cuts"]
    assert "what was asked for" in failed(forger.output, forger.request)


def test_other_weights_than_the_score_on_record(made: dict[str, Any]) -> None:
    forger = Forger(made, "near")
    for weights in (
        {"calls": 1.0, "texts": 0.6},
        {"calls": 1.0, "texts": -0.5},
        {"calls": 1.0, "topups": 0.5},
    ):
        assert "decisions" in forger.forged(set_decision(weights=weights))
        forger = Forger(made, "near")
    # Times a number it is the same question, in other units: then the cuts are others.
    found = forger.forged(set_decision(weights={"calls": 2.0, "texts": 1.0}))
    assert "decisions" not in found
    assert "cuts" in found


@pytest.mark.parametrize("name", ["calls", "name", "two words", "été", "", "AID"])
def test_a_name_that_is_no_plain_name_or_another_column_s(made: dict[str, Any], name: str) -> None:
    forger = Forger(made, "together")
    found = forger.forged(set_decision(1, name=name))
    assert {"decisions", "columns of the file"} & {*found}
    column = forger.table.rename_columns(["name", "aid", name]) if name != "name" else None
    if column is not None:
        forger = Forger(made, "together")
        assert "decisions" in forger.forged(set_decision(1, name=name), column)


def test_decisions_that_are_missing_or_too_many(made: dict[str, Any]) -> None:
    forger = Forger(made, "together")

    def fewer(c: dict[str, Any]) -> None:
        c["decisions"], c["cuts"] = c["decisions"][:1], c["cuts"][:1]

    assert {"decisions", "columns of the file"} <= {*forger.forged(fewer)}
    forger = Forger(made, "together")
    # The column is taken out, too: its law is still that of two.
    assert "decisions" in forger.forged(fewer, forger.table.drop_columns(["loan"]))
    forger = Forger(made, "classic")

    def more(c: dict[str, Any]) -> None:
        c["decisions"] = (*c["decisions"], c["decisions"][0] | {"name": "again"})
        c["cuts"] = (*c["cuts"], c["cuts"][0])

    again = forger.table.append_column("again", forger.table["aid"])
    assert "decisions" in forger.forged(more, again)


def test_columns_that_decisions_do_not_name(any_kind: Forger) -> None:
    features = certificate_of(any_kind.output).features
    assert "decisions" in any_kind.forged(lambda c: c.update(features=(*features, "rent")))
    assert "decisions" in any_kind.forged(lambda c: c.update(features=features[::-1]))


def test_a_model_in_place_of_weights(made: dict[str, Any]) -> None:
    """Below B = 2 no model decides; at B = 2 its file would be named in what is said, and in the request."""
    changes: dict[str, Any] = {"weights": None, "model": "ab" * 32, "columns": ("calls", "texts")}
    forger = Forger(made, "near")
    assert "decisions" in forger.forged(set_decision(**changes))
    forger = Forger(made, "classic")
    assert forger.forged(set_decision(**changes), conditions=False) == ["conditions"]
    forger = Forger(made, "classic")
    forger.forged(set_decision(**changes))
    assert "what was asked for" in failed(forger.output, forger.request)


# What is said of it


def test_a_promise_that_is_better_than_the_law(any_kind: Forger) -> None:
    assert "guarantee" in any_kind.forged(lambda c: c["guarantee"].update(epsilon=1.9))


def test_a_smaller_loss_elsewhere(any_kind: Forger) -> None:
    def change(c: dict[str, Any]) -> None:
        c["distances"] = tuple(one | {"epsilon": one["epsilon"] * 0.99} for one in c["distances"])

    assert "ε at other distances" in any_kind.forged(change)

    def guess(c: dict[str, Any]) -> None:
        c["distances"] = tuple(one | {"best_guess": one["best_guess"] * 0.99} for one in c["distances"])

    assert "ε at other distances" in any_kind.forged(guess)


def test_a_distance_beyond_which_nothing_is_said(made: dict[str, Any]) -> None:
    """A larger B with the same cells: rows within it may be two cells apart."""
    forger = Forger(made, "near")
    found = forger.forged(lambda c: c["guarantee"].update(B=0.5))
    assert {"guarantee", "decisions"} <= {*found}
    # At B = 2, which would be classic, the same.
    forger = Forger(made, "near")
    assert {"guarantee", "decisions"} <= {*forger.forged(lambda c: c["guarantee"].update(B=2.0))}
    # And a smaller one than the question was asked at is not what B = 2 means.
    forger = Forger(made, "classic")
    assert "column scales" in forger.forged(lambda c: c["guarantee"].update(B=0.25))


@pytest.mark.parametrize("left", [0, 1, -3])
def test_conditions_that_are_left_out(any_kind: Forger, left: int) -> None:
    def change(c: dict[str, Any]) -> None:
        own = list(c["conditions"])
        del own[left]
        c["conditions"] = tuple(own)

    assert any_kind.forged(change, conditions=False) == ["conditions"]


def test_noise_that_decisions_do_not_have(any_kind: Forger) -> None:
    assert "decisions" in any_kind.forged(lambda c: c["mechanism"].update(noise_length=0.5))
    assert "decisions" in any_kind.forged(lambda c: c["mechanism"].update(deviation_per_column=0.5))


def test_scores_beside_decisions(any_kind: Forger) -> None:
    assert "decisions" in any_kind.forged(lambda c: c.update(scores=("aid",)))


def test_the_ledger_has_another_charge(made: dict[str, Any]) -> None:
    """Whoever forges the law has a ledger that was charged for another one."""
    forger = Forger(made, "known")
    with forger.desk.ledger() as ledger:
        c = certificate_of(forger.output)
        assert all(one.holds for one in verify_in_ledger(c, ledger))
        forged = forge(forger.output, forger.desk, set_law(level=1.0))
        found = {one.what: one.holds for one in verify_in_ledger(forged, ledger)}
    assert failed(forger.output) == [], "more error than is promised: by itself it could be true"
    assert found["charge"] is False


# Nothing that is forged makes verifying fail in another way


NONSENSE: dict[str, Callable[[dict[str, Any]], None]] = {
    "level": set_law(level=1e9),
    "no level": lambda c: c["mechanism"].update(law={"family": "decision"}),
    "text": set_law(level="2"),
    "cells": set_law(cells={"score": {"weights": []}, "width": 1}),
    "cells as text": set_law(cells="wide"),
    "width": set_law(cells={"score": {"weights": [1.0, 0.0]}, "width": 0}),
    "huge width": set_law(cells={"score": {"weights": [1.0, 0.0]}, "width": 10**30}),
    "tiny width": set_law(cells={"score": {"weights": [1.0, 0.0]}, "width": 1}),
    "no score": set_law(cells={"width": 5}),
    "knots": set_law(cells={"score": {"knots": [[0.0]], "values": [[1.0]]}, "width": 2**48}),
    "programs": set_law(programs=99),
    "unknown": set_law(more=1),
    "cuts": lambda c: c.update(cuts=((10**40,),)),
    "huge expected": set_decision(expected=((-1e308, 0.0), (1e308, 1.0))),
    "tiny expected": set_decision(expected=((0.0, 0.0), (5e-324, 1.0))),
    "close expected": set_decision(expected=((0.0, 0.0), (1e-18, 0.5), (1.0, 1.0))),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("kind", ["classic", "near", "together"])
def test_what_makes_no_sense_fails_and_does_not_break(made: dict[str, Any], kind: str, nonsense: str) -> None:
    forger = Forger(made, kind)
    try:
        forge(forger.output, forger.desk, NONSENSE[nonsense])
    except ValueError:
        return  # no certificate says so
    ran = cli("verify", forger.output)
    assert ran.code == 1, ran.out + ran.err
    assert "Traceback" not in ran.err
