"""Accounts as rows: what groups and users have used, and what they are owed."""

from dataclasses import fields
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec

from nqspy.model.accounts import Account, Entry
from nqspy.model.ids import Instant

_fields = fields(Entry)
_types = get_type_hints(Entry)
_owed = attrgetter(*(f.name for f in _fields))
Owed = msgspec.defstruct(
    "Owed", [(f.name, _types[f.name], f.default) for f in _fields], omit_defaults=True, array_like=True
)
"""What an account is owed (`model.accounts.Entry`), in the order of its fields; new ones are added last."""


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
