"""Attempts that the spool holds and the database does not know: the database is an older copy, or somebody
has put them there."""

from collections.abc import Sequence

from nqspy.engine.handlers.context import Transaction
from nqspy.model import observations as ob
from nqspy.model.actions import SetAside
from nqspy.model.ids import number_of

_MOST = 20


def take(tx: Transaction, seen: ob.ObservedStray) -> None:
    """One that runs is ended, and all that a later attempt might take for its own are put aside."""
    if seen.fate != "later" and (seen.fate == "alive" or unknown(tx, seen)):
        tx.act(SetAside(seen.seq, seen.attempt))


def unknown(tx: Transaction, seen: ob.ObservedStray) -> bool:
    """Whether the database cannot have ordered that attempt."""
    request = tx.site.to_be(seen.seq)
    return number_of(seen.seq) >= tx.site.next_seq or (
        request is not None and request.attempts < seen.attempt
    )


def tell(tx: Transaction, observations: Sequence[ob.Observation]) -> None:
    """What a restart has found, an alarm for each kind: strays, attempts of a later nqspy, requests that
    the machine's restart has ended."""
    strays = [seen for seen in observations if isinstance(seen, ob.ObservedStray)]
    ended = [s for s in strays if s.fate == "alive"]
    later = [s for s in strays if s.fate == "later"]
    others = [s for s in strays if s.fate not in ("alive", "later") and unknown(tx, s)]
    lost = [
        seen for seen in observations if isinstance(seen, ob.ObservedLost) and seen.text and not seen.unsure
    ]
    unheard = "requests that the database does not know"
    _alarm(tx, ended, unheard, "ran and the database does not know them; they are ended as void")
    _alarm(tx, others, unheard, "have run and the database does not know of it (an older copy?)")
    _alarm(tx, later, "requests of a later nqspy", "run under a later nqspy; they are left alone")
    _alarm(tx, lost, "lost requests", "were lost when the machine was restarted")


def _alarm(tx: Transaction, found: Sequence[ob.Observation], subject: str, text: str) -> None:
    if found:
        names = [f"{tx.site.id_of(s.seq)} (attempt {s.attempt})" for s in found[:_MOST]]
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        tx.alarm("hands", f"requests {text}: {', '.join(names)}{more}", subject)
