"""Certificates of the former format, without a desk: refused in a sentence, not with a list of fields."""

import hashlib
import json
from pathlib import Path

import pytest

from support.release import cli, words
from targetdp.release import certificate_path, read_certificate, verify

TABLE = '"name","calls"\n"a",-1.0418251156806946\n"b",-0.9542417526245117\n"c",-0.8713439106941223\n'
DIGEST = "2c417358e0c7462ed5711f6f1771e76e383c3ec5b5f6c849b94316a092645ef3"
"""Of the file as it was written, with a key that nobody has any more."""

CERTIFICATE = """\
{"format": "targetdp certificate 1",
"release": "0a4114689c8746d3b3e4dd6851e04d58",
"library": "0.1.0",
"time": "2026-11-16T13:03:40+00:00",
"guarantee": {"B": 0.25, "epsilon": 4.0, "delta": 8.077935669463161e-28},
"conditions": [
"Column scales were declared public: they were not learned from these people.",
"Distances are measured between rows as they entered the mechanism: columns scaled as stated, then \
rows clipped to the unit ball.",
"One row per person. A person with m rows has group privacy m: (m·ε, δ·(e^(mε) − 1)/(e^ε − 1)).",
"Nothing is promised about who is in the table: ids and the number of rows are public.",
"Nothing done to the values before (choosing columns, filling gaps, combining columns) was learned \
from these same rows.",
"That the table was accepted tells that its ids are all different, its values numbers, and no \
column constant.",
"AES-256 is not broken, the operating system's generator is sound, nobody read the process's \
memory, and the time that the release took was not measured.",
"How B was chosen is not stated: a choice made by looking at these people's data is a disclosure.",
"Made without a ledger: nothing here says what else was released about these people, and all \
releases about a person add up."],
"distances": [
{"distance": 0.05, "epsilon": 3.999999999994818, "best_guess": 0.7331939543269805},
{"distance": 0.1, "epsilon": 3.9999999999949996, "best_guess": 0.9566734257635019},
{"distance": 0.25, "epsilon": 3.9999999999955453, "best_guess": 0.9694866992648178},
{"distance": 0.5, "epsilon": 7.999999999991317, "best_guess": 0.9908421551003598},
{"distance": 0.75, "epsilon": 11.999999999986862, "best_guess": 0.9994411288460396},
{"distance": 1.0, "epsilon": 15.999999999982407, "best_guess": 0.9998322676640998},
{"distance": 1.5, "epsilon": 23.999999999973497, "best_guess": 0.9999969278700072},
{"distance": 2.0, "epsilon": 31.999999999964587, "best_guess": 0.9999999437382776}],
"classic": {"switch_lemma": {"B": 2.0, "epsilon": 32.0, "delta": 1.1900741205277165e-15}, "exact": \
{"B": 2.0, "epsilon": 31.999999999964587, "delta": 8.077935669463161e-28}},
"mechanism": {"name": "staircase", "law": {"family": "staircase", "dimensions": 1, "grid": \
5.960464477539063e-08, "period": 4194307, "inner": 821063, "level": 3.9999999999944085}, \
"deviation_per_column": 0.06372738590978713, "noise_length": 0.06372738590978713, "group_size": \
null, "partitions": null},
"scales": {"source": "declared", "spent": null, "values": {"calls": {"center": 10.0, "scale": \
8.0}}},
"rows": 3,
"id": "name",
"features": ["calls"],
"not_protected": [],
"order": "sorted by id",
"pseudonyms": false,
"imputed": {},
"made_for": null,
"tuned_on": null,
"engine": "local",
"output": {"format": "csv", "files": [{"name": "p.csv", "size": 87, "sha256": \
"bf86f40b8865b0cd4d076fdd3bd63b017fdda9a3bed5574df4fe0aa2a8def342"}], "sha256": \
"bf86f40b8865b0cd4d076fdd3bd63b017fdda9a3bed5574df4fe0aa2a8def342"},
"ledger": null,
"signature": {"key": "mjzkJqdJAWs/PDptO2b0L9iPjGZlRd7Y0VUMYvx0vh8=", "value": \
"OVS7lR5u+z5ixnRqmpzMxKs5PC6bRkosh3aZawnpR3s9yggWDsRA0vDOuCox0pn0Z7ZB3nOJtzgTrPNiPnnuAg=="}}
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    output = tmp_path / "p.csv"
    output.write_text(TABLE)
    text = json.dumps(json.loads(CERTIFICATE), indent=2, ensure_ascii=False) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST
    certificate_path(output).write_text(text, encoding="utf-8")
    return output


def test_an_older_certificate_is_refused_in_a_sentence(old: Path) -> None:
    with pytest.raises(ValueError, match=r"^certificate .*p\.csv\.certificate\.json") as refused:
        read_certificate(certificate_path(old))
    said = str(refused.value)
    assert "was made by another version of targetdp (targetdp certificate 1): verify it with that" in said
    assert "must be given" not in said
    with pytest.raises(ValueError, match="another version of targetdp"):
        verify(old)


def test_so_does_the_command(old: Path) -> None:
    ran = cli("verify", old)
    assert ran.code != 0
    assert "another version of targetdp" in words(ran.err + ran.out)


def test_another_format_is_named_too(old: Path) -> None:
    place = certificate_path(old)
    plain = json.loads(place.read_text(encoding="utf-8")) | {"format": "targetdp certificate 9"}
    place.write_text(json.dumps(plain))
    with pytest.raises(ValueError, match="targetdp certificate 9"):
        read_certificate(place)
