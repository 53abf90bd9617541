"""Names from `shares` for use in other rooms: what accounts are owed."""

from nqspy.shares.balance import balance_of, division_of, terms_of
from nqspy.shares.charging import (
    advance_all,
    after_settings,
    amount,
    before_settings,
    begin,
    begin_period,
    charge,
    charge_suspended,
    correct_use,
    ready,
    remember,
    settle,
    tune,
)
from nqspy.shares.ledger import FairShare
from nqspy.shares.rule import ALL
from nqspy.shares.standings import Many, Stock

__all__ = [
    "ALL",
    "FairShare",
    "Many",
    "Stock",
    "advance_all",
    "after_settings",
    "amount",
    "balance_of",
    "before_settings",
    "begin",
    "begin_period",
    "charge",
    "charge_suspended",
    "correct_use",
    "division_of",
    "ready",
    "remember",
    "settle",
    "terms_of",
    "tune",
]
