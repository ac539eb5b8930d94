"""Who is in a table: ids in the desk's one spelling, and keyed tags and pseudonyms that stand for them."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from numpy.typing import NDArray
from pydantic import Field, model_validator

from targetdp._core import Integers, Words, kernel
from targetdp._files import StrictModel
from targetdp.table import Tally, ids_of

Bytes = NDArray[np.uint8]

# One spelling


class Spelling(StrictModel):
    """How ids are brought into one spelling before anything else: whatever is not declared stays as it is."""

    spaces: Literal["refuse", "remove"] = Field(
        default="refuse", description="what happens to space at the ends of an id"
    )
    case: Literal["as it is", "lower", "upper"] = Field(default="as it is", description="letters become so")
    leading_zeros: Literal["keep", "drop"] = Field(default="keep", description="zeros at the beginning")
    country_code: str | None = Field(default=None, pattern="^[1-9][0-9]{0,3}$",
        description='of phone numbers, such as "228": +228…, 00228… and local numbers become 228…',
    )  # fmt: skip
    digits: int | None = Field(default=None, ge=4, le=14, description="digits of a local phone number")

    @model_validator(mode="after")
    def _belong_together(self) -> "Spelling":
        if (self.country_code is None) != (self.digits is None):
            raise ValueError("country_code and digits belong together: give both, or neither")
        return self

    def apply(self, ids: pa.StringArray) -> pa.StringArray:
        """The ids in this spelling, as far as the rules reach."""
        if len(data := text_buffers(ids)[0]) and data.max() > 127:
            ids = pc.utf8_normalize(ids, form="NFC")  # an accent may be a letter or a mark of its own
        if self.spaces == "remove":
            ids = pc.utf8_trim_whitespace(ids)
        if self.case != "as it is":
            ids = pc.utf8_lower(ids) if self.case == "lower" else pc.utf8_upper(ids)
        if self.country_code is not None:
            ids = pc.replace_substring_regex(ids, r"[ .()/\-]", "")
            local = rf"^(?:(?:\+|00)?{self.country_code}|0)?([0-9]{{{self.digits}}})$"
            ids = pc.replace_substring_regex(ids, local, rf"{self.country_code}\1")
        if self.leading_zeros == "drop":
            ids = pc.utf8_ltrim(ids, "0")
        return ids

    def odd(self, ids: pa.StringArray) -> Integers:
        """The places of ids that no rule brought into this spelling."""
        if self.country_code is not None:
            good = pc.match_substring_regex(ids, f"^{self.country_code}[0-9]{{{self.digits}}}$")
            return np.flatnonzero(~np.asarray(good))
        data, starts = text_buffers(ids)
        ends = starts[1:] - 1
        empty = ends < starts[:-1]
        if empty.any() and (self.leading_zeros == "drop" or self.spaces == "remove"):
            return np.flatnonzero(empty)  # nothing was left of them
        filled = np.flatnonzero(~empty)
        if not len(filled):
            return filled
        # Only what begins or ends with a byte that may be of a space is looked at closely.
        edges = (data[starts[:-1][filled]], data[ends[filled]])
        doubtful = filled[(np.minimum(*edges) <= 32) | (np.maximum(*edges) >= 127)]
        if not len(doubtful):
            return doubtful
        texts = ids.take(pa.array(doubtful))
        trimmed = np.asarray(pc.equal(texts, pc.utf8_trim_whitespace(texts)))
        return np.asarray(doubtful[~trimmed])


@dataclass(frozen=True)
class Names:
    """How people of a desk are named: where their ids are, how they are spelled, and under which keys.

    Guarantees: the keys are not shown when printed; they can be pickled, since workers need them.
    """

    column: str
    spelling: Spelling
    tag_key: bytes = field(repr=False)
    pseudonym_key: bytes | None = field(repr=False)

    def ids(self, batch: pa.RecordBatch, tally: Tally, offset: int) -> pa.StringArray:
        """The ids of a batch in the desk's spelling; what is odd about them is noted."""
        ids = self.spelling.apply(ids_of(batch.column(self.column), self.column, tally, offset))
        tally.add("odd id", self.column, self.spelling.odd(ids), offset)
        return ids

    def ids_again(self, batch: pa.RecordBatch) -> pa.StringArray:
        """The same ids of a batch that was looked at before: nothing is checked once more."""
        column = batch.column(self.column)
        text = column if pa.types.is_string(column.type) else ids_of(column, self.column, Tally(), 0)
        return self.spelling.apply(text)

    def tags(self, ids: pa.StringArray) -> Words:
        """The tags by which the ledger knows people."""
        return person_tags(ids, self.tag_key)

    def published(self, ids: pa.StringArray) -> pa.StringArray:
        """The ids as they go out: pseudonyms, unless the policy says otherwise."""
        return ids if self.pseudonym_key is None else pseudonyms(ids, self.pseudonym_key)


def loose_tags(ids: pa.StringArray, key: bytes) -> Words:
    """Tags of ids without whatever spellings differ in: the same people are found in two tables by them.

    Of phone numbers the last eight digits count: countries and operators write the rest in several ways.
    """
    plain = pc.utf8_lower(pc.utf8_normalize(ids, form="NFKC"))
    plain = pc.replace_substring_regex(plain, r"^([0-9]+)\.0+$", r"\1")  # a number that became a fraction
    plain = pc.replace_substring_regex(plain, r"[^\pL\pM\pN]", "")
    plain = pc.replace_substring_regex(plain, r"^[0-9]*([0-9]{8})$", r"\1")
    return person_tags(pc.utf8_ltrim(plain, "0"), key)


def is_among(tags: Words, others: Words) -> NDArray[np.bool_]:
    """Of each tag, whether it is among other tags, which are sorted."""
    if not len(others):
        return np.zeros(len(tags), dtype=np.bool_)
    places = np.minimum(np.searchsorted(others, tags), len(others) - 1)
    return np.asarray(others[places] == tags)


# Keyed tags
#
# A tag is AES-256-CMAC (RFC 4493) of the id's bytes, so that what a release rests on stays one assumption:
# AES-256 holds. All ids of a batch are worked on at once.

TAG_BYTES = 16
_LONGEST = 8 * TAG_BYTES
"""Bytes of an id that is worked on together with others; one giant must not make room for all."""
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)
"""The two digits of each byte."""


def tags_of(ids: pa.StringArray, key: bytes) -> Bytes:
    """The tags of some ids, none of them null: a row of 16 bytes each.

    Guarantees: without the key, tags look like independent random bytes, the same for the same id; two
    different ids share the first b bits with probability 2⁻ᵇ.
    """
    data, starts = text_buffers(ids)
    tags = np.empty((len(ids), TAG_BYTES), dtype=np.uint8)
    short = np.diff(starts) <= _LONGEST
    if short.all():
        return _together(data, starts, key) if len(ids) else tags
    if short.any():
        tags[short] = _together(*text_buffers(ids.filter(pa.array(short))), key)
    for place in np.flatnonzero(~short):
        code = CMAC(algorithms.AES(key))
        code.update(data[starts[place] : starts[place + 1]].tobytes())
        tags[place] = np.frombuffer(code.finalize(), dtype=np.uint8)
    return tags


def person_tags(ids: pa.StringArray, key: bytes) -> Words:
    """The first 64 bits of each tag: who is in a release, for whoever has the key."""
    return tags_of(ids, key).view(np.uint64)[:, 0].copy()


def pseudonyms(ids: pa.StringArray, key: bytes) -> pa.StringArray:
    """Each id's tag in hexadecimal digits."""
    digits = _HEX[tags_of(ids, key)]
    ends = np.arange(len(ids) + 1, dtype=np.int32) * 2 * TAG_BYTES
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(digits))


def text_buffers(ids: pa.StringArray) -> tuple[Bytes, NDArray[np.int32]]:
    """All bytes of some texts, and where each begins and the last one ends."""
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, dtype=np.int32)[ids.offset :][: len(ids) + 1]
    return np.frombuffer(data or b"", dtype=np.uint8), starts


def _together(data: Bytes, starts: NDArray[np.int32], key: bytes) -> Bytes:
    """CMAC of many texts, which lie behind each other: of all first blocks, then of all second ones."""
    # One block at a time is what chaining over many messages at once needs.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    whole = _doubled(encryptor.update(bytes(TAG_BYTES)))
    ends = np.stack([np.frombuffer(subkey, dtype=np.uint8) for subkey in (whole, _doubled(whole))])
    longest = int(np.diff(starts).max())
    width = TAG_BYTES * max(1, -(-longest // TAG_BYTES))
    messages = np.empty((len(starts) - 1, width), dtype=np.uint8)
    blocks = np.empty(len(messages), dtype=np.int64)
    _pad(data, starts, ends, messages, blocks)
    state = _encrypted(np.ascontiguousarray(messages[:, :TAG_BYTES]), encryptor)
    for start in range(TAG_BYTES, width, TAG_BYTES):
        going = np.flatnonzero(blocks > start // TAG_BYTES)
        state[going] = _encrypted(state[going] ^ messages[going, start : start + TAG_BYTES], encryptor)
    return state


def _encrypted(blocks: Bytes, encryptor: Any) -> Bytes:
    """Blocks of 16 bytes, each encrypted by itself."""
    room = np.empty(blocks.size + TAG_BYTES, dtype=np.uint8)  # the library asks for a block more
    encryptor.update_into(blocks.data, room.data)
    return room[: blocks.size].reshape(blocks.shape)


@kernel
def _pad(data: Bytes, starts: NDArray[np.int32], ends: Bytes, messages: Bytes, blocks: Integers) -> None:
    """Cut texts into blocks of 16 bytes: the last one padded, and mixed with its subkey."""
    for i in range(len(blocks)):
        first, length = starts[i], starts[i + 1] - starts[i]
        count = max(1, (length + 15) // 16)
        blocks[i] = count
        for place in range(length):
            messages[i, place] = data[first + place]
        for place in range(length, 16 * count):
            messages[i, place] = 0
        subkey = 0
        if length < 16 * count:
            messages[i, length] = 0x80
            subkey = 1
        last = 16 * (count - 1)
        for place in range(16):
            messages[i, last + place] ^= ends[subkey, place]


def _doubled(block: bytes) -> bytes:
    """Twice a number of GF(2¹²⁸): how RFC 4493 makes its subkeys."""
    value = int.from_bytes(block, "big") << 1
    return ((value ^ 0x87 if value >> 128 else value) & ((1 << 128) - 1)).to_bytes(TAG_BYTES, "big")
