"""The same request again: whether an output that is there is the whole release that a run was to make."""

from pathlib import Path

from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._verify import read_certificate, verify_in_ledger, verify_release
from targetdp.release._desk import Desk
from targetdp.release._ledger._book import Ledger
from targetdp.release._request import Request
from targetdp.release._staging import certificate_path


class AlreadyReleased(ValueError):  # noqa: N818 (it is what happened, and reads as such)
    """The very release that was asked for is there, whole, certified and on record: nothing was done.

    Args:
        place: Where it is: a path, or an address in a store.
        certificate: Its certificate.
        when: When it was charged.
    """

    def __init__(self, place: str, certificate: Certificate, when: str) -> None:
        self.place, self.certificate, self.when = place, certificate, when
        super().__init__(
            f"{place} is the whole release of this request and this table (release "
            f"{certificate.release[:12]} of {when[:10]}): nothing was charged, drawn or published"
        )


def already_released(
    desk: Desk, ledger: Ledger, request: Request, fingerprint: str | None, output: Path, place: str
) -> AlreadyReleased:
    """What to raise of an output that exists: that nothing is left to do.

    Args:
        desk: The desk.
        ledger: Its ledger.
        request: What is asked for now.
        fingerprint: What tells the table of now from a later one, if anything does.
        output: What is there, on this disk.
        place: What messages call it.

    Raises:
        ValueError: It is another release, or not a whole one; the message says why.

    Guarantees: it is what a run of now would have made: this desk's own release of this very request, its
    certificate and its files whole, published by the ledger and not withdrawn, under the policy of now, and
    of files that were not written to since. Whatever cannot be told counts as another release.
    """
    try:
        c = read_certificate(certificate_path(output))
        own = None if c.signature is None else c.signature.key  # whether it is the desk's, the ledger tells
        found = verify_release(output, c, own, request).also(verify_in_ledger(c, ledger))
    except ValueError as error:
        raise _other(place, str(error)) from error
    if found.failed:
        raise _other(place, "; ".join(f"{one.what}: {one.detail}" for one in found.failed))
    row = ledger.release(c.release)
    if c.desk.id != desk.id or row.state != "published":
        raise _other(place, f"release {c.release[:12]} is {row.state}")
    if row.withdrawn is not None:
        raise _other(place, f"release {c.release[:12]} was withdrawn")
    if c.desk.policy_sha256 != desk.policy.sha256:
        raise _other(place, f"release {c.release[:12]} was made under another policy than that of now")
    if fingerprint is None or row.title.get("table") != fingerprint:
        raise _other(
            place,
            f"release {c.release[:12]} of {row.reserved[:10]} was made of another table, or of this one "
            "before somebody wrote to it",
        )
    return AlreadyReleased(place, c, row.reserved)


def _other(place: str, why: str) -> ValueError:
    return ValueError(
        f"output {place} exists: choose another name, or replace it with --force; it is not what this run "
        f"would make ({why})"
    )
