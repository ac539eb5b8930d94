"""The journal of a release that is being published: what tells the ledger of it, should its run die."""

from typing import Any

from targetdp._files import canonical
from targetdp.release._desk import Desk
from targetdp.release._draws import erase
from targetdp.release._ledger._book import Ledger
from targetdp.release._trust._keys import SigningKey, is_signed

HANDED_OVER = "handed_over"
"""In a journal about people who agreed: their agreement."""
_SEAL = "seal"
"""Where a journal has the desk's signature."""


def sealed(journal: dict[str, Any], key: SigningKey) -> dict[str, Any]:
    """A journal with the desk's signature: it lies in the output's folder, where others may write."""
    return journal | {_SEAL: key.sign(_message(journal))}


def settle_earlier(desk: Desk, ledger: Ledger, journal: dict[str, Any]) -> None:
    """An earlier run published and died before it could tell the ledger: tell it now."""
    if HANDED_OVER in journal:
        return  # its entry was there before its rows: the ledger knows
    if journal.get("desk") != desk.id:
        raise ValueError(
            f"an earlier run, of another desk ({journal.get('desk')}), published release "
            f"{journal.get('release')} here and could not tell its ledger: run it again at that desk first"
        )
    seal = journal.pop(_SEAL, "")
    known = [row.entry for row in ledger.releases_on_record() if row.release == journal.get("release")]
    keys = ledger.reading.keys_since(min(known, default=1))  # an earlier key speaks of what it has reserved
    if not any(is_signed(key, seal, _message(journal)) for key in keys):
        raise ValueError(
            "an earlier run's journal beside the output is not signed by this desk: somebody else wrote it; "
            "look at the hidden folder beside the output, and move it away"
        )
    try:
        ledger.settle(journal["release"], journal["sha256"], journal["scales"])
    except (ValueError, OSError) as error:
        raise ValueError(
            f"an earlier run published release {journal.get('release')} and could not tell the ledger, and "
            f"neither can this one ({error}): bring the desk's ledger back first"
        ) from error
    erase(desk.drafts / str(journal["release"]))


def _message(journal: dict[str, Any]) -> bytes:
    """What is signed of a journal."""
    return f"targetdp journal {canonical(journal)}".encode()
