"""A site with a request in each state, and its requests as the PBS forms see them."""

from typing import Any

from msgspec import structs

from nqspy.model import events as ev
from nqspy.model.requests import Used
from nqspy.report.pbs_attributes import PbsContext, Subject
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
CONTEXT = PbsContext("ymp", "ymp", PARIS)


def house(diary: Any) -> Any:
    """Return a site with a running, a waiting and a held request."""
    book = diary(pes=4, d1=1)
    one = book.submit(0, "d1", pes=2, cpu=7_200_000, memory=64 << 20)
    book.submit(0, "d1", name="a-very-long-name-indeed")
    held = book.submit(0, "d1", queue="day")
    book.decide(10, one)
    runs = book.site.requests[one]
    runs.attempt = structs.replace(runs.run, used=Used(3_661_000, 4_000_000, 5 << 20))
    book.add(20, ev.Held((held,), "u", "anne"))
    return book


def subject(request: Any, **more: Any) -> Subject:
    """Return a live request's subject, with the use of its attempt."""
    used = request.used if request.started is not None else None
    return Subject(request, used, **more)


def ended(book: Any, seq: int, event: Any, second: float = 60) -> Subject:
    """Return a request's subject after its end, as the history has it."""
    request = book.site.requests[seq]
    book.add(second, event)
    used = event.used if isinstance(event, ev.Ended) else None
    return Subject(request, used, ended=event, at=book.at(second))
