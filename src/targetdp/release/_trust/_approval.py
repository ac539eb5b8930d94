"""Second signatures: where the policy on record names approvers, nobody allows more without one of them.

What is proposed goes to an approver as a file, and comes back signed. She needs no access to the desk. The
ledger keeps her signature with the new policy, so that whoever reads it can check that it was needed and is
there.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from targetdp._files import StrictModel, canonical, explain, write_whole
from targetdp.release._policy import Policy
from targetdp.release._trust._keys import SigningKey, fingerprint_of, is_signed
from targetdp.release._trust._loosened import changes, loosened

if TYPE_CHECKING:
    from targetdp.release._desk import Desk
    from targetdp.release._ledger._history import History

PROPOSED, APPROVAL = "proposed.json", "approval.json"
_LARGEST_FILE = 4 * 2**20
"""Bytes: two policies that name as many columns as any table has."""


class Approval(StrictModel):
    """An approver's signature of a proposal."""

    format: Literal["targetdp approval 1"] = "targetdp approval 1"
    key: str
    value: str

    def text(self) -> str:
        """The approval as a file."""
        return json.dumps(self.model_dump(mode="json"), indent=2) + "\n"


class PolicyChange(StrictModel):
    """A change of a desk's policy: the one on record, and the one that is to take its place."""

    format: Literal["targetdp proposal 1"] = "targetdp proposal 1"
    desk: str
    number: Annotated[int, Field(ge=1, strict=True)] = Field(
        description="how many policies are on record: the same change at another time is another proposal"
    )
    before: dict[str, Any]
    after: dict[str, Any]

    def text(self) -> str:
        """The proposal as a file."""
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"

    def message(self) -> bytes:
        """What is signed. The words keep a signature from passing for one of something else."""
        return f"targetdp approval {canonical(self.model_dump(mode='json'))}".encode()

    def policies(self) -> tuple[Policy, Policy]:
        """Both policies; a ValueError if one is none, or another version of targetdp made it."""
        try:
            return Policy.model_validate(self.before), Policy.model_validate(self.after)
        except ValidationError as error:
            raise ValueError(
                f"a policy of the proposal is none, or was made by another version of targetdp: "
                f"{explain(error, Policy)}"
            ) from error

    def approved(self, key: SigningKey) -> Approval:
        """The proposal, signed by an approver; a ValueError if the policy on record does not name her."""
        before, _ = self.policies()
        if key.public not in before.approvers.values():
            raise ValueError(
                f"your key {key.fingerprint} is none of the approvers whom the policy on record names "
                f"({_named(before.approvers)}): name the right key with --key"
            )
        return Approval(key=key.public, value=key.sign(self.message()))

    def why_not(self, approval: Approval, own: Collection[str]) -> str | None:
        """Why an approval does not hold for it; ``own`` are the keys of the desk itself."""
        before, _ = self.policies()
        if approval.key not in before.approvers.values():
            return "it is signed by nobody whom the policy on record names as an approver"
        if approval.key in own:
            return "it is signed by the desk's own key, which is no second signature"
        if not is_signed(approval.key, approval.value, self.message()):
            return "it is for another change: another policy, desk or time"
        return None

    def lines(self) -> list[str]:
        """What changes, in words: all of it, and nothing that would play tricks on a terminal."""
        before, after = self.policies()
        more = loosened(before, after)
        lines = [
            f"desk {before.name} ({self.desk}), after version {self.number} of its policy",
            "what changes:",
        ]
        for place, (one, other) in changes(self.before, self.after).items():
            lines.append(f"  {place}: {_change(one, other)}")
        lines += ["in which ways more is allowed:", *(f"  {one}" for one in more)] if more else [
            "nothing more is allowed than before"
        ]  # fmt: skip
        lines.append(f"why: {after.reason or 'no reason is given'}")
        return ["".join(c if c.isprintable() else "?" for c in line) for line in lines]


def read_proposal(path: Path) -> PolicyChange:
    """The proposal in a file that somebody has sent, or a ValueError."""
    try:
        return PolicyChange.model_validate(_read_json("proposal", path))
    except ValidationError as error:
        raise ValueError(f"proposal {path} is none: {explain(error, PolicyChange)}") from error


def must_be_approved(
    proposal: PolicyChange, approval: Mapping[str, Any] | None, own: Collection[str]
) -> None:
    """A ValueError if a change of policy needs an approval, and has none that holds."""
    before, after = proposal.policies()
    more = loosened(before, after) if before.approvers else []
    if not more:
        return
    why = "there is none" if approval is None else proposal.why_not(Approval.model_validate(approval), own)
    if why is not None:
        raise ValueError(f"it allows more ({'; '.join(more)}), and needs an approval: {why}")


# At the desk


def proposal_of(desk: "Desk", history: "History") -> PolicyChange | None:
    """The change that somebody has to approve before the next release; None if nobody has to.

    The reason is part of what is approved, so that it is asked for first.
    """
    before, now = history.policy, desk.policy
    if before is None or before == now or not before.approvers or desk.loosened_without_reason(history):
        return None
    return history.proposal(desk.policy) if loosened(before, now) else None


def approval_of(desk: "Desk", history: "History") -> tuple[Approval | None, str | None]:
    """The approval that lies at the desk, or why there is none that holds; neither where none is needed."""
    proposal, path = proposal_of(desk, history), desk.path / APPROVAL
    if proposal is None:
        return None, None
    if not path.exists():
        return None, "there is none"
    try:
        approval = Approval.model_validate(_read_json("approval", path))
    except ValidationError as error:
        return None, f"{path} is none: {explain(error, Approval)}"
    except ValueError as error:
        return None, str(error)
    why = proposal.why_not(approval, history.keys)
    return (approval, None) if why is None else (None, f"{path} does not hold: {why}")


def policy_problems(desk: "Desk", history: "History") -> Iterator[tuple[str, str]]:
    """What keeps a policy from going on record, each with its remedy."""
    if more := desk.loosened_without_reason(history):
        yield (
            f"policy.toml allows more than the policy on record: {'; '.join(more)}",
            'say why, at the top of the file: reason = "…"; it goes on record',
        )
    _, why = approval_of(desk, history)
    before = history.policy
    if why is not None and before is not None:
        yield (
            "policy.toml allows more than the policy on record "
            f"({'; '.join(loosened(before, desk.policy))}), and that needs an approval: {why}",
            f"send {desk.path / PROPOSED} (targetdp status writes it) to one of {_named(before.approvers)}; "
            f"targetdp approve makes an approval of it, which you put here as {desk.path / APPROVAL}",
        )
    own = {name for name, key in desk.policy.approvers.items() if key in history.keys}
    if own:
        yield (
            f"approvers names the desk's own key ({_named(own)})",
            "an approver signs with a key of her own, which you do not have",
        )


def write_proposal(desk: "Desk", history: "History") -> Path | None:
    """Write down for an approver what she is asked to approve, where that is needed, and say where."""
    proposal, path = proposal_of(desk, history), desk.path / PROPOSED
    if proposal is None:
        return None
    write_whole(path, proposal.text(), private=True)
    return path


def _read_json(what: str, path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ValueError(f"{what} {path} has more than {_LARGEST_FILE:,} bytes: it is none")
        return json.loads(data)
    except OSError as error:
        raise ValueError(f"{what} {path} cannot be read: {error.strerror}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{what} {path} is none: it is not JSON") from error


def _named(names: Collection[str] | Mapping[str, str]) -> str:
    if isinstance(names, Mapping):
        return ", ".join(f"{name} ({fingerprint_of(key)})" for name, key in names.items())
    return ", ".join(sorted(names))


def _change(one: Any, other: Any) -> str:
    """What stood there and what stands there; of long lists, what came and what went."""
    if isinstance(one, list) and isinstance(other, list):
        old, new = (Counter(map(_plain, part)) for part in (one, other))  # the plan may name one twice
        both = [
            (said, list(part.elements())) for said, part in (("came: ", new - old), ("went: ", old - new))
        ]
        if any(part for _, part in both):
            return "; ".join(said + ", ".join(part) for said, part in both if part)
    return f"{_plain(one)} → {_plain(other)}"


def _plain(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
