"""The door of the shares: what accounts are owed. Other rooms import what stands here."""

from nqspy.shares.balance import balance_of, division_of, terms_of
from nqspy.shares.charging import (
    advance_all,
    after_settings,
    amount,
    before_settings,
    begin,
    begin_period,
    charge,
    correct_use,
    counted,
    ready,
    remember,
    rest,
    settle,
    tune,
    uncharged,
)
from nqspy.shares.level import Level, Standing, Terms, Work, faded

__all__ = [
    "Level",
    "Standing",
    "Terms",
    "Work",
    "advance_all",
    "after_settings",
    "amount",
    "balance_of",
    "before_settings",
    "begin",
    "begin_period",
    "charge",
    "correct_use",
    "counted",
    "division_of",
    "faded",
    "ready",
    "remember",
    "rest",
    "settle",
    "terms_of",
    "tune",
    "uncharged",
]
