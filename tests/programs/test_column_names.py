"""What names of columns say."""

import pytest

from targetdp.programs._lending_settings import is_known_afterwards, one_means_repaid
from targetdp.programs._proposal import is_of_codes, words_of


def test_words() -> None:
    assert words_of("net_revenue") == ["net", "revenue"]
    assert words_of("InterestPaid") == ["interest", "paid"]
    assert words_of("LATE FEES") == ["late", "fees"]
    assert words_of("ZIPCode2") == ["zip", "code"]
    assert words_of("123") == []


@pytest.mark.parametrize(
    "name",
    ["repaid", "Repaid", "paid", "low_risk", "LowRisk", "good", "good_risk", "no_default", "NoDefault",
     "nodefault", "non_default", "never_defaulted", "not_bad", "creditworthy", "no_arrears", "no_risk",
     "low_default_risk", "not_unpaid"],
)  # fmt: skip
def test_one_means_repaid(name: str) -> None:
    assert one_means_repaid(name) is True


@pytest.mark.parametrize(
    "name",
    ["default", "DEFAULT", "defaulted", "loan_default", "delinquent", "delinquency_flag", "bad", "bad_risk",
     "arrears", "in_arrears", "late_payment", "unpaid", "not_repaid", "notRepaid", "non_performing",
     "charged_off", "overdue", "high_risk", "risk", "default payment next month"],
)  # fmt: skip
def test_one_means_not_repaid(name: str) -> None:
    assert one_means_repaid(name) is False


@pytest.mark.parametrize(
    "name", ["y", "target", "status", "outcome", "flow", "paid_late", "good_or_bad", "paid_off", ""]
)
def test_some_names_do_not_say(name: str) -> None:
    assert one_means_repaid(name) is None


def test_codes() -> None:
    codes = ("commune", "home_district", "zip", "zipcode", "PostCode", "id_village", "hh_id", "code_postal")
    amounts = ("village_size", "villages_visited", "districts", "paid", "grid", "wards", "encoded", "42")
    assert [name for name in codes if not is_of_codes(name)] == []
    assert [name for name in amounts if is_of_codes(name)] == []


def test_how_a_loan_ended() -> None:
    ended = ("revenue", "net_revenue", "interestPaid", "LATE_FEES", "days_delinquent", "no_default")
    before = ("interesting", "coffee", "prepaid", "lossless", "missed_calls")
    assert [name for name in ended if not is_known_afterwards(name)] == []
    assert [name for name in before if is_known_afterwards(name)] == []
