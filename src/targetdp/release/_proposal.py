"""The first policy of a desk, proposed from what a table looks like: no number of the table goes into it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import check
from targetdp._files import LONGEST_NAME, LONGEST_REASON, toml_key, toml_value
from targetdp.normalization import PrivateScales, read_scales_file
from targetdp.release._desk import FOLDER, Desk
from targetdp.release._ids import Names, Spelling
from targetdp.release._ledger._elsewhere import (
    DeskElsewhere,
    desks_elsewhere,
    known_elsewhere,
    shared_tag_key,
)
from targetdp.release._policy import Policy
from targetdp.release._public_scales import must_be_public, shared_people
from targetdp.release._translate import tags_in
from targetdp.table import (
    ANY,
    Dialect,
    Elsewhere,
    Source,
    TableOnDisk,
    TableProfile,
    Tally,
    dialect_lines,
    first_names,
    guess_id,
    ids_of,
    looks_like_phone_numbers,
    on_disk,
    problem_lines,
    profile_table,
    spelling_problems,
    table_given,
    unknown_column,
)

_PHONE = re.compile("phone|msisdn|mobile|telephone|numero|gsm", re.IGNORECASE)
"""Names of columns that hold phone numbers, whatever these look like."""
_WHY = {
    "text": "text", "date": "dates", "type": "no numbers", "words": "some cells are no numbers",
    "constant": "the same in every row",
}  # fmt: skip
_MOST_NAMES, _MOST_LINES, _MOST_TEMPLATES = 50, 20, 3
"""Columns that are named one by one, gaps that have a line each, and kinds that are proposed."""
_GLANCED = 100_000
"""Ids that are looked at to say what they look like."""


@dataclass(frozen=True)
class NewDesk:
    """A desk that was made, and what its owner must still decide. It is for the data holder's eyes."""

    desk: Desk
    profile: TableProfile
    id: str
    released: tuple[str, ...]
    with_gaps: tuple[str, ...]
    pseudonyms: bool
    notes: tuple[str, ...]
    too_few: str | None
    """Why private scales cannot be estimated from so few people, if they cannot."""
    elsewhere: tuple[DeskElsewhere, ...] = ()

    @property
    def to_do(self) -> tuple[str, ...]:
        """What stands between this desk and its first release."""
        steps = []
        if self.too_few is not None:
            steps.append(f"[scales]: {self.too_few}; scales get scales.share of the ε that is asked for")
        if self.with_gaps:
            steps.append(f"[gaps]: what stands for a missing value of {first_names(self.with_gaps, 8)}")
        return tuple(steps)


def make_desk(
    table: TableOnDisk | Elsewhere,
    place: Path | None = None,
    *,
    csv: str | None = None,
    id_column: str | None = None,
    name: str | None = None,
    scales: Path | None = None,
    new_people: str | None = None,
) -> NewDesk:
    """Profile a table, propose a policy for it, and make a desk with it.

    Args:
        table: The table that releases will be made of: a path, an address or a `targetdp.table.Database`.
        place: The desk's folder; by default ``desk`` in this folder.
        csv: How a CSV is written, such as ``"separator=; decimal=,"``; by default that is found. The policy
            says it, so that no release looks for it again.
        id_column: The column that identifies a person; by default it is guessed.
        name: What the desk is called; by default as the folder that it is in.
        scales: A file of public scales.
        new_people: Why people whom another desk of the user knows are other people.

    Returns:
        The desk, and what is left to decide.
    """
    if new_people is not None:
        check.text("new_people", new_people, longest=LONGEST_REASON)
    folder = (place or Path(FOLDER)).absolute()
    with on_disk(table_given(table), folder.parent, csv=csv, order=id_column) as source:
        return _make_desk(source, folder, id_column, name, scales, new_people)


def _make_desk(
    table: Source, folder: Path, id_column: str | None, name: str | None, scales: Path | None,
    new_people: str | None,
) -> NewDesk:  # fmt: skip
    profile = profile_table(table)
    column = id_column or guess_id(profile)
    if column is None or column not in profile.names():
        what = "no column is different in every row"
        if column is not None:
            what = f"there is no column {unknown_column(column, profile.names())}"
        raise ValueError(f"{what}: name the one that identifies a person with --id; {profile.shown}")
    elsewhere = _elsewhere(table, column, new_people)
    ids = _some_ids(table, column)
    hidden = looks_like_phone_numbers(ids) or bool(_PHONE.search(column)) or _look_like_names(ids)
    others = [one for one in profile.columns if one.name != column]
    unusable = {
        one.name: one.problem
        for one in others
        if one.problem is not None and one.problem.kind not in {"gaps", "infinite"}
    }
    why_not = {name: _WHY[problem.kind] for name, problem in unusable.items()}
    if scales is not None:
        _must_be_of_others(table, column, scales)
        known = read_scales_file(scales).features
        why_not |= {one.name: f"{scales.name} does not know it" for one in others if one.name not in known}
    released = tuple(one.name for one in others if one.name not in why_not)
    if not released:
        raise ValueError(
            f"no column of {table} can be released as it is: releases are of numbers"
            + (", and of columns that the scales know" if scales is not None else "")
            + "; targetdp columns says more of each"
        )
    gaps = tuple(one.name for one in others if one.gaps and one.name in released)
    text = _policy_text(
        name or _name_of(folder.parent), column, released, gaps, hidden=hidden,
        public_scales=scales is not None,
        unusable=why_not,
        columns=profile.names(),
        csv=table.csv,
    )  # fmt: skip
    desk = Desk.create(folder, text, scales=scales)
    notes = (
        *([f"the table is {table.described}"] if table.csv != Dialect() or table.folders else []),
        *(line.strip() for line in problem_lines([p for p in profile.problems() if p.column != column])),
        *(f"ids: {sentence}" for sentence in spelling_problems(ids)),
    )
    if new_people is not None:
        desk.log("new people", reason=new_people)
    return NewDesk(
        desk,
        profile,
        column,
        released,
        gaps,
        hidden,
        notes,
        _too_few(desk.policy, profile, released),
        elsewhere,
    )


def _too_few(policy: Policy, profile: TableProfile, released: Sequence[str]) -> str | None:
    """Why a table has too few rows for private scales, even at the largest ε of a release."""
    if policy.scales.source != "private" or not profile.whole:
        return None
    epsilon = min(100.0, policy.release.epsilon * policy.scales.share)
    try:
        PrivateScales(profile.rows, len(released), epsilon)
    except ValueError as error:
        return str(error)
    return None


def _elsewhere(table: Source, column: str, new_people: str | None) -> tuple[DeskElsewhere, ...]:
    """The user's other desks; an error if one has released something about the people of a table."""
    if not desks_elsewhere(""):
        return ()
    key = shared_tag_key()
    people = tags_in(Names(column, Spelling(), key, None), table, column)
    found = tuple(known_elsewhere("", key, Spelling(), people))
    known = [other for other in found if other.known]
    if known and new_people is None:
        raise ValueError(
            f"{known[0].known:,} people of {table} are in releases of another desk of yours, "
            f"{known[0].path}: what both release would not add up; use that desk (--desk), or, if they are "
            "other people, say why, on record: --new-people REASON"
        )
    return found


def _look_like_names(ids: pa.StringArray) -> bool:
    """Whether most ids are several words, as people's own names are."""
    return 2 * (pc.sum(pc.match_substring(ids, " ")).as_py() or 0) > len(ids)


def _some_ids(table: Source, column: str) -> pa.StringArray:
    batch = next(table.batches([column], {}, _GLANCED))
    return ids_of(batch.column(column), column, Tally(), 0)


def _must_be_of_others(table: Source, column: str, scales: Path) -> None:
    """A ValueError if public scales were learned from people of a table."""
    must_be_public(scales)
    if shared := shared_people(table, column, scales):
        raise ValueError(
            f"scales {scales} were learned from {shared:,} people of {table}: learn them from others "
            f"(targetdp scales … --without {table} leaves these out), or make the desk without --scales, and "
            "they are estimated"
        )


def _name_of(folder: Path) -> str:
    """A plain name out of a folder's."""
    plain = re.sub(r"[^\w' -]+", " ", folder.name).strip()
    return " ".join(plain.split()[:6])[:LONGEST_NAME].strip() or "desk"


def _policy_text(
    name: str,
    column: str,
    released: tuple[str, ...],
    gaps: tuple[str, ...],
    *,
    hidden: bool,
    public_scales: bool,
    unusable: dict[str, str],
    columns: Sequence[str],
    csv: Dialect,
) -> str:
    pseudonyms = (
        "pseudonyms = true    # ids look like phone numbers or names: keyed hashes go out in their place"
        if hidden
        else "pseudonyms = false   # ids do not look like phone numbers or names: they go out as they are"
    )
    return "\n".join(
        [
            "# What this desk allows. Only you, the data holder, edit this file; a request cannot change it.",
            "# No number here was learned from the table. Every change goes on record with the next release.",
            f"name = {toml_value(name)}",
            "",
            "[id]",
            f"column = {toml_value(column)}    # one row per person",
            pseudonyms,
            "# [id.spelling]          # how ids become one spelling, if they have several",
            '# spaces = "remove"      # at the ends',
            '# case = "lower"',
            '# country_code = "228"   # +228 90 12 34 56, 0022890123456 and 90123456 become 22890123456',
            "# digits = 8             # of a local number",
            "",
            "[columns]",
            "# Columns that may be released, with noise (* stands for anything). Take out what nobody needs.",
            "release = [",
            *(f"  {toml_value(one)}," for one in in_patterns(released, columns)),
            "]",
            *(f"# not {one}: {what}" for one, what in _first(unusable)),
            "# [columns.public]       # passed on as they are, NOT protected: each with its reason",
            '# region = "it is printed on the list of the program"',
            "",
            *_kinds_lines(unusable),
            "[gaps]",
            "# What stands for a missing value: a constant that you declare, not one learned from the table.",
            *(f"# {toml_key(one)} = 0    # it has gaps" for one in gaps[:_MOST_LINES]),
            "# all = 0               # for every column of numbers",
            "",
            *_csv_lines(csv),
            "",
            "# [agreed]              # people who agreed to be handed over as they are (targetdp agree):",
            "#                       # they have no promise; without these lines nobody is handed over",
            '# to = "…"              # what they agreed to, in a few words: told wherever they are',
            f"# columns = [{toml_value(released[0])}]  # what goes out about them, and nothing else",
            "# at_most = 1000        # how many people, all agreements together",
            "",
            *_scales_lines(public=public_scales),
            "",
            "[limit]",
            "# What all releases together may cost one person: within distance B, up to (ε, δ).",
            "B = 0.25",
            "epsilon = 10",
            "delta = 1e-6",
            'filter = "renyi"       # what is added up; "pure": ε, for scores; "gaussian": normal noise',
            "# classic = 40         # ε at distance 2, for any two people; by default it follows from these",
            "",
            "# [[plan]]             # releases that are fixed beforehand, all charged at once and exactly:",
            "#                      # targetdp plan --releases 12 … proposes one",
            "[release]",
            "# What one release may ask for at most. Without δ, a request gets this, or less: 1/(rows + 1).",
            "epsilon = 4",
            "delta = 1e-6",
            '# large_delta = "…"    # why δ may be above 1/rows, if a request asks for that',
            "",
            "[requests]",
            'accept = "any"         # after you have looked at it; "signed": only by keys that you name here',
            "tell = true            # whether an official may be told what would be accepted",
            "# [requests.keys]",
            '# ministry = "…"         # as targetdp key prints it',
            "# [approvers]          # if you name any, one of them must sign whatever loosens this policy",
            '# auditor = "…"          # her key, as targetdp key prints it; she runs targetdp approve',
            "",
        ]
    )  # fmt: skip


def in_patterns(released: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Columns that may be released; of very many, those that begin alike are one pattern.

    Args:
        released: Their names.
        columns: All names of the table: no pattern stands for one that may not be released.

    Returns:
        Names, and patterns that stand for the rest and for nothing else.
    """
    if len(released) <= _MOST_NAMES:
        return tuple(released)
    alike: dict[str, list[str]] = {}
    for name in released:
        if begins := re.match("[A-Za-z]+", name):
            alike.setdefault(begins[0], []).append(name)
    others = {*columns} - {*released}
    found: dict[str, None] = {}
    for name in released:
        begins = re.match("[A-Za-z]+", name)
        key = "" if begins is None else begins[0]
        alone = len(alike.get(key, ())) < _MOST_LINES or any(other.startswith(key) for other in others)
        found[name if alone or ANY in name else f"{key}{ANY}"] = None
    return tuple(found)


def _kinds_lines(unusable: dict[str, str]) -> list[str]:
    """What text and dates need to be released; levels are the holder's to declare, and not copied here."""
    texts = [name for name, why in unusable.items() if why == _WHY["text"]]
    dates = [name for name, why in unusable.items() if why == _WHY["date"]]
    lines = []
    for name in texts[:_MOST_TEMPLATES]:
        lines += [
            f"# [kinds.{toml_key(name)}]   # and add it to release; levels that you write here are public",
            '# kind = "category"      # or ordered, yes-or-no; targetdp columns TABLE --levels shows levels',
            '# levels = ["…", "…"]',
            '# other = "other"        # any other value',
            "# distance = 0.5         # how far two levels move a row; beyond B they are told apart",
        ]
    for name in dates[:_MOST_TEMPLATES]:
        lines += [
            f"# [kinds.{toml_key(name)}]   # and add it to release",
            '# kind = "date"',
            '# days_from = "2026-01-01"',
            "# days = 28              # so many days move a row by 1: with 28, a week is 0.25",
        ]
    return [*lines, ""] if lines else []


def _csv_lines(csv: Dialect) -> list[str]:
    """How CSV tables are written: what was found, or, in a comment, what could be said."""
    found = [*dialect_lines(csv)]
    return [
        "[csv]                  # how CSV tables are written: each release reads them so" if found
        else "# [csv]                # how CSV tables are written, if not with commas and points, in UTF-8",
        *(found or ['# separator = ";"       # "tab", "|"', '# decimal = ","', '# encoding = "cp1252"']),
        '# thousands = "space"   # or another sign between groups of three digits',
        '# output = "same"       # releases as CSV are written so, too',
    ]  # fmt: skip


def _scales_lines(*, public: bool) -> list[str]:
    if public:
        return [
            "[scales]",
            'source = "public"      # scales.toml, beside this file, says why they are',
        ]
    return [
        "[scales]",
        'source = "private"     # estimated by the first release that needs them, inside its ε',
        "share = 0.1            # of that ε",
    ]


def _first(unusable: dict[str, str]) -> list[tuple[str, str]]:
    """Columns that are left out, on one line each; of many, the first."""
    listed = [(toml_key(name), why) for name, why in unusable.items()]
    more = len(listed) - 20
    return [*listed[:20], (f"{more:,} more", "see targetdp columns")] if more > 0 else listed
