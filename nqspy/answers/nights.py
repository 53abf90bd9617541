"""The night's report: a picture taken quickly in the engine's thread; the rest from the journal, in another
one."""

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import chain, takewhile
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.answers.serving import Serving, SiteClock
from nqspy.answers.slow import Work
from nqspy.answers.texts import with_text
from nqspy.answers.visibility import Visibility
from nqspy.core import alike
from nqspy.core.explain import STOPPED
from nqspy.engine import calendar
from nqspy.model import events as ev
from nqspy.model.errors import Refusal, listed
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, quoted
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.report import departments, night, pages, past_site
from nqspy.report.time_text import Zone, parse_day
from nqspy.rpc import server as rpc
from nqspy.store.reader import Reader
from nqspy.store.rows import no_collector

MOST_REASONS = 1_000
"""Most requests whose own reasons are stored with a report; others get their queue's."""

WEEK = 7 * DAY
"""Time ahead in ms for which holidays are shown."""
COMING = 3 * DAY
"""Time ahead in ms for which switches of shifts are shown."""

Named = tuple[str, str, str]


class Picture(Struct, frozen=True):
    """Facts that a report needs besides the journal up to event ``n``, taken at instant ``at``. ``own`` and
    ``closing``: why requests and queues wait (code, subject, text). Settings come from the journal."""

    n: int
    at: Instant
    samples: dict[Seq, Used] = field(default_factory=dict)
    own: dict[Seq, Named] = field(default_factory=dict)
    closing: dict[str, Named] = field(default_factory=dict)

    def why(self, seq: Seq, queue: str) -> Reason | None:
        """Return why a request of ``queue`` waits: its own reason, else the queue's, unless that is of
        another request that can never start; None if unknown."""
        found = self.own.get(seq) or self.closing.get(queue)
        if found is not None and seq not in self.own and found[0] == ReasonCode.NEVER:
            found = None
        return None if found is None else quoted(*found)


def capture(serving: Serving) -> Picture:
    """Return the picture of the present; open decisions are committed first."""
    serving.commit()
    engine = serving.engine
    reasons, queues = engine.plan.reasons, engine.site.settings.queues
    closing = {queue: _named(reason) for queue, reason in reasons.closing.items()}
    for queue in queues.values():
        if not queue.started:
            closing[queue.name] = _named(STOPPED(f"queue {queue.name}"))
    own: dict[Seq, Named] = {}
    reached = (pair for name in queues for pair in alike.reached(engine.site, reasons, name))
    for seq, reason in chain(reasons.own.items(), reached):
        request = engine.site.requests.get(seq)
        if request is not None and (request.queue not in queues or queues[request.queue].started):
            own[seq] = _named(reason)
            if len(own) >= MOST_REASONS:
                break
    return Picture(engine.site.n, serving.clock.now(), dict(engine.samples), own, closing)


def _named(reason: Reason) -> Named:
    return reason.code.value, reason.who, replace(reason, ahead=0).text  # of a queue it counts for one only


def picture_of(reported: ev.Reported) -> Picture:
    """Return the picture from which a report was made."""
    own = {seq: (code, who, text) for seq, code, who, text in reported.own}
    closing = {queue: (code, who, text) for queue, code, who, text in reported.closing}
    return Picture(reported.as_of, reported.taken, dict(reported.samples), own, closing)


def event_of(picture: Picture, day: str, files: Iterable[str], mails: int) -> ev.Reported:
    """Return the event that stores a picture, the report's ``files``, count of ``mails``; ``day``: ISO
    date."""
    own = tuple((seq, *named) for seq, named in picture.own.items())
    closing = tuple((queue, *named) for queue, named in picture.closing.items())
    samples = tuple(picture.samples.items())
    return ev.Reported(day, picture.n, picture.at, tuple(files), mails, samples, own, closing)


# ---------------------------------------------------------------- in another thread

_KINDS = (*past_site.KINDS, "shift_changed", "reported")


class Past:
    """Facts read from the journal once, except the requests: settings, machine, shifts, reports."""

    def __init__(self, reader: Reader, upto: int | None = None) -> None:
        self.reader = reader
        self._events = list(reader.kinds(_KINDS, upto=upto))

    def site(self, n: int) -> Site:
        """Return the site, without requests, as it was after event ``n``."""
        site = Site(n=n)
        for recorded in self._events:
            if recorded.n > n:
                break
            past_site.follow(site, recorded.event)
        return site

    def before(self, since: Instant) -> Site:
        """Return the site, without requests, before all events at or after an instant."""
        return self.site(max((event.n for event in self._events if event.at < since), default=0))

    def bounds(self, zone: Zone, picture: Picture, day: date | None) -> night.Bounds:
        """Return begin and end of the night of a day (None: the latest), by the journal up to the picture."""
        changes = [event for event in self._events if event.n <= picture.n]
        return night.night_bounds(changes, zone, picture.at, day)

    def reported(self, day: str) -> ev.Reported | None:
        """Return the event of the latest report on the night of a day (ISO date); None if there was none."""
        found = [each.event for each in self._events if isinstance(each.event, ev.Reported)]
        return next((event for event in reversed(found) if event.day == day), None)

    def night_over(self, zone: Zone, now: Instant) -> night.Bounds | None:
        """Return the latest night that is over, by the shift `night.NIGHT`; None without one."""
        bounds = night.night_bounds(self._events, zone, now)
        return bounds if bounds.shift is not None and bounds.end is not None else None


def report(
    past: Past, picture: Picture, day: date | None, clock: SiteClock, made: Instant, final: bool = True
) -> dict[str, Any]:
    """Return the report of the latest night or of ``day``: as it was last reported, or, if ``final`` or it
    never was, to the end of its last request. ``made``: instant of this making. Raises Refusal for a day to
    come or before the journal."""
    site = past.site(picture.n)
    zone = Zone(site.timezone)
    bounds = past.bounds(zone, picture, day)
    if day is not None:
        _need_begun(site, zone, picture.at, bounds)
    oldest = next(past.reader.events(limit=1), None)
    if oldest is not None and bounds.end is not None and bounds.end <= oldest.at:
        raise Refusal("night_too_early", day=bounds.day, begin=zone.text(oldest.at)[:10])
    former = None if final else past.reported(bounds.day.isoformat())
    if former is not None:
        picture = picture_of(former)
        site = past.site(picture.n)
        bounds = past.bounds(zone, picture, bounds.day)
    first = past.reader.oldest(bounds.start)
    since = bounds.start if first is None else min(first, bounds.start)
    events = past.reader.events(since=since)
    shown = takewhile(lambda each: each.n <= picture.n, events)
    now, of_site = picture.at, (site.settings, site.timezone)
    firings = calendar.coming(*of_site, now, Instant(now + COMING))
    coming = [{"at": zone.text(each.at), "shift": each.shift} for each in firings]
    days = calendar.sundays(*of_site, now, Instant(now + WEEK))
    holidays = [f"{day.isoformat()} {name}".rstrip() for day, name in days]
    opens: dict[str, Instant | None] = {}  # the stopped queues, and when a shift starts each
    for queue in site.settings.queues.values():
        if not queue.started:
            starting = [shift for shift in site.settings.shifts.values() if shift.starts(queue.name)]
            firing = calendar.next_firing(*of_site, now, starting)
            opens[queue.name] = None if firing is None else firing.at
    before = past.before(since)
    facts = night.Facts(picture.why, picture.samples, clock.text, coming, holidays, opens, made, before)
    with no_collector():
        return night.night_report(shown, site, bounds, picture.at, facts)


def _need_begun(site: Site, zone: Zone, now: Instant, bounds: night.Bounds) -> None:
    """Raise Refusal for a night that has not begun: it is before noon, or before its shift."""
    if bounds.start <= now and (bounds.shift is not None or bounds.end is not None):
        return
    shift = site.settings.shifts.get(night.NIGHT)
    noon = zone.at(bounds.day + timedelta(days=1), 12)
    of_site = (site.settings, site.timezone)
    if bounds.start <= now and not (shift and calendar.coming(*of_site, now, noon, shifts=(shift,))):
        return
    moment = zone.text(now)[:16].replace("T", " ")
    raise Refusal("night_to_come", day=bounds.day, now=moment)


def answer(serving: Serving, asked: rpc.Asked) -> Work:
    """Answer the message ``report_night`` with ``date``, ``group``, ``final``."""
    message = asked.message
    day = parse_day(str(message["date"])) if message.get("date") else None
    group = str(message["group"]) if message.get("group") else None
    final = bool(message.get("final")) or day is None
    picture, reader, clock = capture(serving), serving.readers.reports, serving.clock
    view = Visibility(serving, asked.caller)

    def work() -> dict[str, Any]:
        data = view.night(report(Past(reader), picture, day, clock, clock.now(), final))
        if group is not None:
            names = [each["name"] for each in data["groups"]]
            if not names:
                raise Refusal("empty_night", group=group, day=data["date"])
            if group not in names:
                raise Refusal("not_in_night", group=group, day=data["date"], known=listed(names))
            data = departments.page_of(data, group)
        return with_text(data, pages.night_text)

    return work
