"""What the name of a column says: that it is a code, that it tells how a loan ended, what its 1 means."""

import re

_KNOWN_AFTERWARDS = {
    "revenue", "revenues", "interest", "profit", "profits", "loss", "losses", "margin", "fee", "fees",
    "penalty", "penalties", "paid", "unpaid", "repaid", "repayment", "repayments", "recovered", "collected",
    "arrears", "overdue", "default", "defaulted", "delinquent", "delinquency", "chargeoff", "writeoff",
}  # fmt: skip
"""Words that tell how a loan ended."""

_CODED = {
    "code", "id", "uid", "pid", "hhid", "zip", "postal", "phone", "msisdn", "imsi", "imei", "commune",
    "district", "ward", "village", "cluster", "psu", "ea", "stratum", "strata", "tract", "block",
    "municipality", "county", "province", "prefecture", "region", "department", "canton", "parish",
    "locality", "settlement", "tower", "antenna", "branch",
}  # fmt: skip
"""Last words of names whose numbers stand for places, people or things."""

_REPAID = {
    "repaid", "repay", "repays", "repayment", "paid", "good", "performing", "creditworthy", "solvent",
    "settled", "success", "successful", "ok",
}  # fmt: skip
_NOT_REPAID = {
    "default", "defaults", "defaulted", "defaulter", "bad", "delinquent", "delinquency", "arrears", "late",
    "overdue", "nonpayment", "npl", "loss", "off", "chargeoff", "writeoff", "missed", "failed", "failure",
    "insolvent", "bankrupt",
}  # fmt: skip
_RISK = {"risk", "risky"}
_NEGATIONS = {"no", "not", "non", "never", "without", "low"}
_NEGATING_PREFIXES = ("non", "not", "no", "un")


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters: net_revenue, InterestPaid and LATE FEES have two each."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_known_afterwards(name: str) -> bool:
    """Whether a name has a word such as revenue in it."""
    return any(word in _KNOWN_AFTERWARDS for word in words_of(name))


def is_of_codes(name: str) -> bool:
    """Whether whole numbers under this name would stand for something: commune, zipcode, id_village.

    It is the last word that counts: village_size is a size, and villages_visited a number of villages.
    """
    words = words_of(name)
    if not words:
        return False
    return words[-1] in _CODED or words[-1].endswith("code") or words[0] in {"code", "id"}


def one_means_repaid(name: str) -> bool | None:
    """Whether a 1 under this name means that a loan was repaid; None if the name does not say.

    ``no_default``, ``low_risk`` and ``repaid`` do, ``default``, ``delinquent`` and ``unpaid`` mean the
    opposite, and ``status`` or ``paid_late`` may mean anything.
    """
    words = words_of(name)
    verdicts = {_verdict(words, place) for place in range(len(words))} - {None}
    if not verdicts:  # risk says something only where nothing else does: a good risk is a good one
        verdicts = {_negated(words, place) for place, word in enumerate(words) if word in _RISK}
    return verdicts.pop() if len(verdicts) == 1 else None


def _verdict(words: list[str], place: int) -> bool | None:
    """What one word says of repayment, together with every "no" before it."""
    word, turned = words[place], _negated(words, place)
    for prefix in _NEGATING_PREFIXES:
        rest = word.removeprefix(prefix)
        if rest != word and rest in _REPAID | _NOT_REPAID:
            word, turned = rest, not turned
            break
    if word in _REPAID:
        return not turned
    return turned if word in _NOT_REPAID else None


def _negated(words: list[str], place: int) -> bool:
    return sum(word in _NEGATIONS for word in words[:place]) % 2 == 1
