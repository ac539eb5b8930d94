"""A keyed tag for every id, all ids at once: what stands for a row where its noise is drawn.

The tag is AES-256-CMAC (RFC 4493) of the id's bytes, so that what a release rests on stays one assumption:
AES-256 holds.
"""

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from numpy.typing import NDArray

from targetdp._core import Integers
from targetdp.noise import RowWords

Bytes = NDArray[np.uint8]

_BLOCK = 16
_LONGEST = 8 * _BLOCK
"""Bytes of an id that is worked on together with others; one giant must not make room for all."""


def tags_of(ids: pa.StringArray, key: bytes) -> bytes:
    """The tags of some ids, none of them null, one after the other.

    Guarantees: without the key, tags look like independent random bytes, the same for the same id; two
    different ids share one with probability 2⁻⁹⁶.
    """
    column = ids.cast(pa.binary())
    lengths = np.diff(_starts(column)).astype(np.int64)
    tags = np.empty((len(ids), _BLOCK), dtype=np.uint8)
    short = lengths <= _LONGEST
    if short.any():
        tags[short] = _together(
            column if short.all() else column.filter(pa.array(short)), lengths[short], key
        )
    for place in np.flatnonzero(~short):
        tags[place] = np.frombuffer(_one(column[int(place)].as_py(), key), dtype=np.uint8)
    return tags[:, : RowWords.TAG_BYTES].tobytes()


def _starts(column: pa.BinaryArray) -> NDArray[np.int32]:
    """Where each text begins, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][: len(column) + 1]


def _together(texts: pa.BinaryArray, lengths: Integers, key: bytes) -> Bytes:
    """CMAC of many texts: of all first blocks, then of all second blocks, and so on."""
    blocks = np.maximum(1, -(-lengths // _BLOCK))
    width = _BLOCK * int(blocks.max())
    messages = np.zeros((len(lengths), width), dtype=np.uint8)
    starts = _starts(texts)
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)
    messages[np.arange(width) < lengths[:, None]] = data[starts[0] : starts[-1]]
    padded = lengths != _BLOCK * blocks
    messages[padded, lengths[padded]] = 0x80
    # One block at a time is what chaining over many messages at once needs.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    whole = _doubled(encryptor.update(bytes(_BLOCK)))
    ends = np.stack([np.frombuffer(subkey, dtype=np.uint8) for subkey in (whole, _doubled(whole))])
    by_block = messages.reshape(len(lengths), -1, _BLOCK)
    by_block[np.arange(len(lengths)), blocks - 1] ^= ends[padded.astype(np.int64)]
    state = np.zeros((len(lengths), _BLOCK), dtype=np.uint8)
    for number in range(by_block.shape[1]):
        going = np.flatnonzero(blocks > number)
        mixed = encryptor.update((state[going] ^ by_block[going, number]).tobytes())
        state[going] = np.frombuffer(mixed, dtype=np.uint8).reshape(-1, _BLOCK)
    return state


def _one(text: bytes, key: bytes) -> bytes:
    tag = CMAC(algorithms.AES(key))
    tag.update(text)
    return tag.finalize()


def _doubled(block: bytes) -> bytes:
    """Twice a number of GF(2¹²⁸): how RFC 4493 makes its subkeys."""
    value = int.from_bytes(block, "big") << 1
    return ((value ^ 0x87 if value >> 128 else value) & ((1 << 128) - 1)).to_bytes(_BLOCK, "big")
