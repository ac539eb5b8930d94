"""Two processes at once: on one budget, on one output, at one new desk, on one plan."""

from pathlib import Path

from support.release import (
    ASKED,
    certificate_of,
    hidden,
    holds,
    place_with,
    read_back,
    table_of,
    words,
    write_parquet,
)
from support.staged import RUN, place, room_for, states
from support.zygote import Zygote
from targetdp.release import Desk, Limit, known_desks


def together(zygote: Zygote, folder: Path, *runs: tuple[str, ...], **more: str) -> list[tuple[int, str]]:
    """Start all runs at the same time; their exit codes and words."""
    done = zygote.together(folder, *runs, **more)
    assert not any("Traceback" in ended.err for ended in done), done
    return [(-1 if ended.code is None else ended.code, words(ended.err)) for ended in done]


def to(name: str) -> tuple[str, ...]:
    return tuple(name if a == "out.parquet" else a for a in RUN)


def test_of_three_that_race_for_the_last_budget_one_publishes(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 30_000, limit=room_for(1))
    done = together(zygote, folder, *(to(f"out{i}.parquet") for i in range(3)))
    assert sorted(code for code, _ in done) == [0, 7, 7]
    for i, (code, said) in enumerate(done):
        assert (folder / f"out{i}.parquet").exists() == (code == 0)
        if code == 0:
            assert holds(folder / f"out{i}.parquet")
        else:
            assert "of what one person may spend" in said
            assert "together 1" in said, "more than everything, in percent"
    assert sorted(states(folder).values()) == ["published"]
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        assert ledger.standing(Limit.of(desk.policy)).spending.fits
    assert hidden(folder) == []
    assert list((folder / "desk" / "drafts").glob("*/secret")) == []


def test_of_two_that_write_the_same_output_one_wins(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 99_000)
    done = together(zygote, folder, RUN, RUN)
    assert sorted(code for code, _ in done) in ([0, 0], [0, 6]), done
    assert all("another run is writing out.parquet" in said for code, said in done if code == 6)
    assert holds(folder / "out.parquet")
    assert hidden(folder) == []
    assert list(states(folder).values()) == ["published"], "the other one charged nothing"


def test_a_run_beside_another_never_takes_over_its_draws(zygote: Zygote, tmp_path: Path) -> None:
    """The same request of the same table at the same time: two releases with two noises, each paid for."""
    folder = place(tmp_path / "place", 30_000, limit=room_for(2))
    done = together(zygote, folder, to("a.parquet"), to("b.parquet"))
    assert [code for code, _ in done] == [0, 0], done
    one, two = (read_back(folder / f"{name}.parquet") for name in "ab")
    assert one["name"] == two["name"]
    assert one["calls"] != two["calls"]
    assert list(states(folder).values()) == ["published", "published"]


def test_of_two_that_race_for_the_last_release_of_the_plan_one_publishes(
    zygote: Zygote, tmp_path: Path
) -> None:
    plan = (
        {"release": "rows", "columns": 3, "mechanism": "gaussian", "B": 0.25, "epsilon": 4.0, "delta": 1e-5},
    )
    folder = place(tmp_path / "place", 30_000, plan=plan)
    done = together(zygote, folder, to("a.parquet"), to("b.parquet"))
    assert sorted(code for code, _ in done) in ([0, 6], [0, 7])
    (said,) = (said for code, said in done if code)
    assert "plan" in said
    assert list(states(folder).values()) == ["published"]


def test_of_two_that_make_a_desk_one_does(zygote: Zygote, tmp_path: Path) -> None:
    for turn in range(5):
        folder = tmp_path / f"{turn}"
        folder.mkdir()
        write_parquet(folder / "in.parquet", table_of(60))
        done = together(zygote, folder, ("init", "in.parquet"), ("init", "in.parquet"))
        assert sorted(code == 0 for code, _ in done) == [False, True], done
        desk = Desk.open(folder / "desk")
        assert [place for own, place in known_desks() if own == desk.id] == [folder / "desk"]
        assert hidden(folder) == []


def test_two_first_releases_share_one_key_of_pseudonyms_and_one_ledger(
    zygote: Zygote, tmp_path: Path
) -> None:
    folder = place_with(tmp_path / "place", 500, pseudonyms=True)
    done = together(
        zygote, folder, *(("privatize", "in.parquet", f"out{i}.parquet", *ASKED) for i in range(2))
    )
    assert [code for code, _ in done] == [0, 0], done
    names = [read_back(folder / f"out{i}.parquet")["name"].to_pylist() for i in range(2)]
    assert names[0] == names[1], "one key, one pseudonym for a person"
    assert all(holds(folder / f"out{i}.parquet") for i in range(2))
    assert list(states(folder).values()) == ["published", "published"]
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.history.policy_version == 1, "both put the same policy on record, once"


def test_two_first_releases_that_need_private_scales_both_pay_for_them(
    zygote: Zygote, tmp_path: Path
) -> None:
    """Nobody is shown scales before they are published: who comes second at the same time draws its own."""
    folder = place_with(tmp_path / "place", 2_000, scales="private")
    done = together(
        zygote, folder, *(("privatize", "in.parquet", f"out{i}.parquet", *ASKED) for i in range(2))
    )
    assert [code for code, _ in done] == [0, 0], done
    third = zygote.run(folder, "privatize", "in.parquet", "out2.parquet", *ASKED)
    assert third.code == 0
    sources = [certificate_of(folder / f"out{i}.parquet").scales.source for i in range(3)]
    assert sources[2] == "earlier"
    assert sources[:2] in (["private", "private"], ["private", "earlier"], ["earlier", "private"])
    assert all(holds(folder / f"out{i}.parquet") for i in range(3))
