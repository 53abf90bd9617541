"""Accounts as rows: what groups and users have used, and what they are owed."""

import dataclasses
from operator import attrgetter
from typing import Any

import msgspec

from nqspy.model.ids import Instant
from nqspy.model.owed import Entry
from nqspy.model.site import Account

_owed = attrgetter(*(f.name for f in dataclasses.fields(Entry)))


class Owed(msgspec.Struct, omit_defaults=True, array_like=True):
    """What an account is owed (`model.balance.Entry`), in the order of its fields."""

    past: float = 0.0
    present: float = 0.0
    asof: Instant = Instant(0)
    away: Instant | None = Instant(0)
    ready: int = 0
    entitled: float = 0.0
    got: float = 0.0
    whole: float = 0.0
    left: float = 0.0


_owed_decoder = msgspec.json.Decoder(Owed)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def row(key: str, account: Account) -> tuple[Any, ...]:
    """A row of ``accounts`` (without its position)."""
    return key, account.value, account.at, _text(account.recent), _text(Owed(*_owed(account.entry)))


def account_of(value: float, at: int, recent: str, owed: str) -> Account:
    """An account from a row. Raises msgspec.DecodeError."""
    entry = Entry(*_owed(_owed_decoder.decode(owed))) if owed else Entry()
    return Account(value, Instant(at), msgspec.json.decode(recent, type=list[int]), entry)
