"""``qselect``: identifiers of the jobs that satisfy all that is asked for (pbs-clients.md 9)."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from nqspy.answers.pbs_choosing import owners, queue_of
from nqspy.answers.pbs_jobs import Listing
from nqspy.answers.serving import Serving
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.ids import full_id
from nqspy.qmgr.dates import parse_date
from nqspy.report import pbs_selection
from nqspy.report.pbs_attributes import Subject
from nqspy.report.time_text import Zone
from nqspy.rpc import server as rpc

_DATE = re.compile(r"(?:([0-9]{2})?([0-9]{2}))?([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{2}))?")


def qselect(serving: Serving, asked: rpc.Asked) -> Iterator[bytes | Any]:
    """A full identifier a line; nothing where none fits."""
    criteria = asked.message.get("criteria") or ()
    wanted = [_criterion(serving, str(letter), str(value)) for letter, value in criteria]
    server = serving.engine.site.name

    def write(subjects: list[Subject]) -> list[str]:
        return [
            f"{full_id(each.request.seq, server)}\n" if all(test(each) for test in wanted) else ""
            for each in subjects
        ]

    listing, ids = Listing(serving, asked), list[str]()
    yield from listing.collected(ids, write)
    yield listing.answer("".join(ids))


def _criterion(serving: Serving, letter: str, value: str) -> pbs_selection.Criterion:
    site, now = serving.engine.site, serving.clock.now()
    if letter == "q":
        queue = queue_of(site, value)
        return lambda subject: queue in ("", subject.request.queue)
    if letter == "u":
        users = owners(serving, value)
        return lambda subject: subject.request.owner in users
    if not pbs_selection.known(letter):
        raise Refusal("bad_criterion", option=letter, value=value, wanted="qselect has no such option")
    try:
        return pbs_selection.criterion(letter, value, lambda text: _date(text, now, site.timezone))
    except BadValue as error:
        raise Refusal("bad_criterion", option=letter, value=value, wanted=error) from None


def _date(text: str, now: int, zone: str) -> int:
    """``[[CC]YY]MMDDhhmm[.SS]``, of this year where none is named; or any date of ``qsub -a``. Raises
    BadValue."""
    found, here = _DATE.fullmatch(text.strip()), Zone(zone)
    if found is None:
        return parse_date(text, now, zone)
    this = here.local(now).year
    century, short, *rest = found.groups()
    year = this if short is None else int(f"{century or (19 if int(short) > 68 else 20)}{short}")
    month, day, hour, minute, second = (int(each or 0) for each in rest)
    try:
        return here.instant(datetime(year, month, day, hour, minute, second))
    except (ValueError, OverflowError):
        raise BadValue(f"{text!r} is no date; write it like 202603022100") from None
