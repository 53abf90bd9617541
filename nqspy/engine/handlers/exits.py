"""User exits: reload, reports of failures, and switching off those that keep failing."""

from hashlib import sha256

from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need
from nqspy.model import commands as cm
from nqspy.model.actions import ExitFailure
from nqspy.model.events import ExitOff, LoadedExits
from nqspy.model.ids import Seq
from nqspy.model.people import Caller

LONGEST_COPY = 1 << 20
"""Longest file (bytes) of which a copy is stored for a replay."""


def reload(tx: Transaction, command: cm.ReloadExits, caller: Caller) -> object:
    """Load the exits again, all or none; return text about them, and their names. If they are still being
    loaded, the text says so. Raises Refusal with file and line."""
    need(tx.site.settings, caller, "manager", "reload exits")
    text = tx.exits.reload()
    if text:
        _note_loaded(tx, _digests(tx))
    tx.exits.begin(tx.site)
    tx.dirty()
    later = "the exits are being loaded and are used as soon as that is done"
    return {"text": text or later, "exits": list(tx.exits.declared())}


def loaded_at_start(tx: Transaction) -> None:
    """Record in the journal which exits a start of nqsd has loaded, unless the same are recorded already."""
    digests = _digests(tx)
    if digests != tx.site.loaded_exits:
        _note_loaded(tx, digests)


def digest_of(text: bytes) -> str:
    """Return the content hash of an exit's file."""
    return sha256(text).hexdigest()[:32]


def _digests(tx: Transaction) -> dict[str, str]:
    return {name: digest_of(text) for name, text in tx.exits.files().items()}


def _note_loaded(tx: Transaction, digests: dict[str, str]) -> None:
    """Record in the journal which exits are loaded, and store a copy of each."""
    for name, text in tx.exits.files().items():
        if len(text) <= LONGEST_COPY:
            tx.store(digests[name], text)
    tx.emit(LoadedExits(tuple(sorted(digests.items()))))


def report_failures(tx: Transaction, failures: tuple[ExitFailure, ...], decided: bool = True) -> None:
    """Raise an alarm for each failing exit and for owners in back-off, and switch off an exit after five
    failures in a row. ``decided``: True if a pass has recorded the failures; else the alarms carry them."""
    if not failures:
        return
    reported: set[str] = set()
    if any(failure.seq is not None for failure in failures):
        tx.dirty()  # requests not asked about since then wait for the next pass
    for failure in failures:
        name = failure.exit
        first = not decided and name not in reported
        carried = tuple(each for each in failures if each.exit == name) if first else ()
        if failure.off:
            tx.emit(ExitOff(name, failure.text))
            text = (
                f"exit {name} is switched off: it failed on 5 requests in a row; last error: {failure.text}"
            )
            tx.alarm(f"exit {name}", text, f"exit {name} is switched off", failure.traceback, carried)
            tx.dirty()  # requests that it refused are examined again
        elif failure.rests:
            text = f"exit {name} failed {failure.rests}; last error: {failure.text}"
            tx.alarm(f"exit {name}", text, f"exit {name} failed", failure.traceback, carried)
        elif name not in reported:
            on = f" on {tx.site.id_of(failure.seq)}" if failure.seq is not None else ""
            text = f"exit {name} failed{on}: {failure.text}"
            tx.alarm(f"exit {name}", text, f"exit {name} failed", failure.traceback, carried)
        reported.add(name)


def report_lost(
    tx: Transaction, exit: str, seq: Seq | None, text: str, off: tuple[str, ...], owner: str
) -> None:
    """Raise an alarm after the exits' process was lost, and switch off the exits in ``off``. ``exit``: the
    one that ran, or empty; ``seq``: the request that it was asked about; ``owner``: it is not asked about
    this owner's requests for a while, or empty."""
    who = f"exit {exit}" if exit else "the exits"
    on = f" on {tx.site.id_of(seq)}" if seq is not None else ""
    if off:
        what = f"{who}{on}: {text}; switched off: {', '.join(off)}"
        subject = f"exit {off[0]} is switched off" if len(off) == 1 else "the exits are switched off"
    else:
        what, subject = f"{who}{on}: {text}", f"{who} failed"
    failed = (ExitFailure(exit, seq, text, off=exit in off, rests=owner, lost=True),) if exit else ()
    tx.alarm(who if exit else "exits", what, subject, failures=failed)
    for name in off:
        tx.emit(ExitOff(name, text))
    tx.dirty()
