"""What people of the tour do by hand: tables that they have anyway, a request, an edit of the policy.

Each is done in the tour's folder, and says in a sentence what it was.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from examples.tour.cost import Cost, count_costs
from targetdp.normalization import declared_scales, normalize, read_scales_file
from targetdp.populations import invented_populations
from targetdp.release import SigningKey, make_request, read_certificate

SEED = 2026
PHONE = "phone"
FEATURES = invented_populations()["togo"].features


def divide() -> str:
    """Who has what: the operator rows of everybody, the official what a survey has asked a half of them."""
    people, others = _with_phones("people.parquet", 90_000_000), _with_phones("others.parquet", 70_000_000)
    asked = np.sort(np.random.default_rng(SEED).permutation(people.num_rows)[: people.num_rows // 2])
    operators = people.select([PHONE, *FEATURES])
    pq.write_table(operators, "features.parquet")
    pq.write_table(operators.take(asked), "sample.parquet")
    pq.write_table(others.select([PHONE, *FEATURES]), "others.parquet")
    pacsv.write_csv(people.take(asked).select([PHONE, "consumption"]), "labels.csv")
    pacsv.write_csv(people.take(asked).select([PHONE]), "asked.csv")
    Path("columns.txt").write_text("\n".join(FEATURES) + "\n", encoding="utf-8")
    return (
        f"The operator has phone use of {people.num_rows:,} subscribers (features.parquet). A survey has "
        f"asked {len(asked):,} of them what they consume: the answers (labels.csv) are the official's, who "
        "tells the operator whom it asked (asked.csv), so that their rows can be taken out (sample.parquet)."
    )


def _with_phones(path: str, first: int) -> pa.Table:
    people = pq.read_table(path)
    numbers = pa.array([f"228{first + 37 * i}" for i in range(people.num_rows)])
    return people.set_column(0, PHONE, numbers)


def ask() -> str:
    """The official's request."""
    request = make_request(
        B=0.25, epsilon=4.0, tuned_on="synthetic", program="aid for the poorest", asked_by="Ministry",
        why="to learn which phone use goes with poverty",
    )  # fmt: skip
    Path("request.toml").write_text(request.text("What the decision page writes, too."), encoding="utf-8")
    return "The request (request.toml) says what is asked for, by whom and why. Nothing else is a field."


def pin() -> str:
    """The data holder's one edit of the policy: whose requests are answered."""
    policy, key = Path("desk/policy.toml"), SigningKey.open("official.pem").public
    text = policy.read_text(encoding="utf-8")
    for before, after in (
        ('accept = "any" ', 'accept = "signed" '),
        ("# [requests.keys]", "[requests.keys]"),
        ('# ministry = "…"', f'ministry = "{key}"'),
    ):
        if text.count(before) != 1:
            raise SystemExit(f"desk/policy.toml has no line with {before!r}: please report this")
        text = text.replace(before, after)
    policy.write_text(text, encoding="utf-8")
    return "In desk/policy.toml the data holder pins the official's key: only what it signs is answered."


def pick() -> str:
    """The official's list of those who are to be helped."""
    decisions = pacsv.read_csv("decisions.csv")
    helped = decisions.filter(pc.equal(decisions["decision"], "aid"))
    pacsv.write_csv(helped.select([PHONE]), "helped.csv")
    return f"The official hands over the pseudonyms of {helped.num_rows:,} people (helped.csv)."


# The second operator, and people who agreed.


def survey() -> str:
    """Who has what: the operator rows of everybody, the official what a sixth of them said in a survey."""
    people = pq.read_table("people.parquet")
    asked = np.sort(np.random.default_rng(SEED).permutation(people.num_rows)[: people.num_rows // 6])
    pq.write_table(people.select(["id", *FEATURES]), "features.parquet")
    pacsv.write_csv(people.take(asked).select(["id"]), "agreed.csv")
    pacsv.write_csv(people.take(asked).select(["id", "consumption"]), "labels.csv")
    return (
        f"This operator has {people.num_rows:,} subscribers (features.parquet). {len(asked):,} of them told "
        "a survey what they consume (labels.csv, which stays with the official), and agreed that their rows "
        "are handed over (agreed.csv)."
    )


def allow() -> str:
    """The data holder's word for it, in the policy."""
    words = "the survey of 2026, and that my phone use is matched to what I said"
    lines = f"\n[agreed]\nto = {json.dumps(words)}\ncolumns = {json.dumps(FEATURES)}\nat_most = 1000\n"
    with Path("desk/policy.toml").open("a", encoding="utf-8") as policy:
        policy.write(lines)
    return f"In desk/policy.toml the data holder says so: “{words}”, and at most 1,000 people."


def model_option(folder: Path = Path()) -> str:
    """The model that `targetdp learn` has put beside the request, as an option; nothing without one."""
    return " --model request.onnx" if (folder / "request.onnx").exists() else ""


def count() -> list[Cost]:
    """What the list cost, beside others: these people are invented, so that it can be counted."""
    people, listed = pq.read_table("people.parquet"), pacsv.read_csv("list.csv")
    known = read_scales_file(Path("../first/scales.toml")).features
    centers, scales = ([getattr(known[name], what) for name in FEATURES] for what in ("center", "scale"))
    X = np.column_stack([people[name].to_numpy() for name in FEATURES]).astype(float)
    agreed, helped = (
        np.asarray(pc.is_in(people["id"].combine_chunks(), value_set=ids.combine_chunks()))
        for ids in (
            pacsv.read_csv("agreed.csv")["id"],
            listed.filter(pc.equal(listed["decision"], "aid"))["id"],
        )
    )
    epsilon = read_certificate("decisions.parquet.certificate.json").guarantee.epsilon
    rows = normalize(X, declared_scales(centers, scales)).X
    return count_costs(rows, people["consumption"].to_numpy(), agreed, helped, epsilon)
