"""Attempts that the spool holds and the database does not know: the database is an older copy, or somebody
has put them there."""

from collections.abc import Sequence

from nqspy.engine.desk.context import Desk
from nqspy.model import sightings as si
from nqspy.model.actions import SetAside

_MOST = 20


def take(desk: Desk, seen: si.SeenStray) -> None:
    """One that runs is ended, and all that a later attempt might take for its own are put aside."""
    if seen.fate != "later" and (seen.fate == "alive" or unknown(desk, seen)):
        desk.act(SetAside(seen.seq, seen.attempt))


def unknown(desk: Desk, seen: si.SeenStray) -> bool:
    """Whether the database cannot have ordered that attempt."""
    request = desk.site.requests.get(seen.seq)
    return seen.seq >= desk.site.next_seq or (request is not None and request.attempts < seen.attempt)


def tell(desk: Desk, sightings: Sequence[si.Sighting]) -> None:
    """What a restart has found, an alarm for each kind: strays, attempts of a later nqspy, requests that
    the machine's restart has ended."""
    strays = [seen for seen in sightings if isinstance(seen, si.SeenStray)]
    ended = [s for s in strays if s.fate == "alive"]
    later = [s for s in strays if s.fate == "later"]
    others = [s for s in strays if s.fate not in ("alive", "later") and unknown(desk, s)]
    lost = [seen for seen in sightings if isinstance(seen, si.SeenLost) and seen.text and not seen.unsure]
    _alarm(desk, ended, "ran and the database does not know them; they are ended as void")
    _alarm(desk, others, "have run and the database does not know of it (an older copy?)")
    _alarm(desk, later, "run under a later nqspy; they are left alone")
    _alarm(desk, lost, "were lost when the machine was restarted")


def _alarm(desk: Desk, found: Sequence[si.Sighting], text: str) -> None:
    if found:
        names = [f"{desk.site.id_of(s.seq)} (attempt {s.attempt})" for s in found[:_MOST]]
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        desk.alarm("hands", f"requests {text}: {', '.join(names)}{more}", f"requests {text}")
