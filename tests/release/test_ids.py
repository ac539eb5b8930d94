"""Tags of ids: the fast way against the library's own CMAC, one id at a time."""

import os

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC

from targetdp.noise import RowWords
from targetdp.release._engine._spark_tasks import tags_of

KEY = bytes(range(32))


def slow(ids: list[str], key: bytes) -> bytes:
    """The slow twin."""
    found = []
    for name in ids:
        one = CMAC(algorithms.AES(key))
        one.update(name.encode())
        found.append(one.finalize()[: RowWords.TAG_BYTES])
    return b"".join(found)


def test_tags_are_the_cmac_of_every_length() -> None:
    ids = ["x" * n for n in range(300)] + [f"{n:013d}" for n in range(500)] + ["ñandú", "日本", "\0", "\0\0"]
    for key in (KEY, os.urandom(32), bytes(32), b"\xff" * 32):
        assert tags_of(pa.array(ids), key) == slow(ids, key)


def test_slices_and_single_ids() -> None:
    ids = pa.array([f"id {n}" for n in range(100)])
    assert tags_of(ids.slice(10, 20), KEY) == slow(ids.slice(10, 20).to_pylist(), KEY)
    assert tags_of(pa.array([""]), KEY) == slow([""], KEY)
    assert tags_of(pa.array(["y" * 1000]), KEY) == slow(["y" * 1000], KEY)


def test_different_ids_and_keys_have_different_tags() -> None:
    ids = pa.array([f"{n}" for n in range(100_000)])
    tags = tags_of(ids, KEY)
    apart = {tags[i : i + RowWords.TAG_BYTES] for i in range(0, len(tags), RowWords.TAG_BYTES)}
    assert len(apart) == 100_000
    assert tags_of(ids, bytes(32))[:12] not in apart
