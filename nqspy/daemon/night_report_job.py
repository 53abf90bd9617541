"""Report of the night that has just ended, made automatically once for each night, in the reports' thread.
First the files are written, with the mails as a file next to them; then the event `Reported` is committed;
only then are the mails sent. After a crash before the commit the report is made again; after a crash behind
it the next daemon sends the remaining mails."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from itertools import islice
from typing import Any

from msgspec.structs import asdict

from nqspy.answers import nights
from nqspy.daemon.inbox import EngineCall, Host
from nqspy.daemon.log import LOG
from nqspy.daemon.notices import ExitNotices, Notices, managers
from nqspy.mail.message import NIGHT as NIGHT_MAIL
from nqspy.mail.message import MailMessage
from nqspy.model.actions import Notify
from nqspy.model.events import Alarm, Recorded, Reported, ShiftChanged
from nqspy.model.people import is_address
from nqspy.model.texts import counted
from nqspy.report import departments, pages
from nqspy.report.night import NIGHT
from nqspy.report.night_pages import night_html
from nqspy.report.time_text import Zone
from nqspy.system.private_files import write_private

REPORT = "report"
"""Name of the shift at whose start the night is reported; without one it is at the end of the night."""

RETRY = 60.0
"""Real seconds until a failed report is tried again."""

ROWS = 40
"""Rows of a table in a mail; the page and the data have all."""

MAILS = "mails.json"

Addresses = dict[str, tuple[str, ...]]


_Made = tuple[Reported, dict[str, Any]]
"""Event and data of a report whose files are written."""


class NightReportJob:
    """Makes night reports; in the engine's thread, with long work in the reports' thread."""

    def __init__(
        self, host: Host, work: Callable[[Callable[[], None]], None], notices: Notices, hooks: ExitNotices
    ) -> None:
        """``work``: has a function run in the reports' thread, and returns at once."""
        self._host, self._in_reports_thread, self._notices, self._hooks = host, work, notices, hooks
        self._due = False
        self._busy = False
        self._alarmed = False

    def begin(self) -> None:
        """Report the last night if it has no report yet, and send its unsent mails."""
        self._due = True
        self.check()

    def watch(self, happened: Iterable[Recorded]) -> None:
        """Note changes of the shift among these events: they may make a report due."""
        self._due = self._due or any(isinstance(recorded.event, ShiftChanged) for recorded in happened)

    def check(self) -> None:
        """Start the report if one is due. A night that was ended by hand is not over: it may go on."""
        if not self._due or self._busy:
            return
        self._due = False
        site = self._host.engine.site
        shift = site.shift
        if shift.current in (None, NIGHT) or (shift.manual and shift.current != REPORT):
            return
        self._busy = True
        picture = nights.capture(self._host)
        site = self._host.engine.site
        zone, done = Zone(site.timezone), site.reported
        mails = {name: group.mail for name, group in site.settings.groups.items()}
        members = {name: group.members for name, group in site.settings.groups.items()}
        operators = tuple(managers(site, operators=True).split(","))

        def work() -> None:
            made, error = None, ""
            try:
                made = self._make(picture, zone, done, (mails, members, operators))
            except Exception as problem:
                LOG.error("the night's report failed", exc_info=True)
                error = f"the night's report failed: {problem}; nqsd tries again every minute"
            self._host.inbox.put(EngineCall(lambda: self._finish(made, error)))

        self._in_reports_thread(work)

    def _make(
        self, picture: nights.Picture, zone: Zone, done: str,
        people: tuple[Addresses, Addresses, tuple[str, ...]],
    ) -> _Made | None:  # fmt: skip
        """Write the files of the last night, unless reported; in the reports' thread. None: nothing to do."""
        past = nights.Past(self._host.readers.reports, picture.n)
        bounds = past.night_over(zone, picture.at)
        if bounds is None or bounds.day.isoformat() <= done:
            return None
        day, clock = bounds.day.isoformat(), self._host.clock
        data = nights.report(past, picture, bounds.day, clock, clock.now())
        folder = self._host.home.reports / day
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        names = [each["name"] for each in data["groups"]]
        cut = {name: departments.page_of(data, name) for name in names}
        files = {"operators.html": night_html(data)}
        files |= {file_of(name): night_html(page) for name, page in cut.items()}
        messages = digests(data, cut, *people)
        write_private(folder / "night.json", json_of(data))
        for name, text in files.items():
            write_private(folder / name, [text])
        write_private(folder / MAILS, [json.dumps([asdict(message) for message in messages])])
        event = nights.event_of(picture, day, ("night.json", *files), len(messages))
        if not self._host.exits.has("night_report"):
            cut.clear()
            empty(data)
        return event, data

    def _finish(self, made: _Made | None, error: str) -> None:
        host, self._busy = self._host, False
        if made is not None:
            host.note(made[0])
            host.commit()
            if host.engine.site.reported != made[0].day:
                error = "the night's report could not be journaled; nqsd tries again every minute"
        if error:
            if not self._alarmed:
                self._alarmed = True
                host.note(Alarm("report", error))
                notice = Notify("", "nqspy: the night's report failed", error)
                self._notices.mail(notice, host.engine.site)
            again = EngineCall(partial(setattr, self, "_due", True))
            timer = threading.Timer(RETRY, lambda: host.inbox.put(again))
            timer.daemon = True
            timer.start()
            return
        self._alarmed = False
        site = host.engine.site
        if site.reported:
            mails = host.home.reports / site.reported / MAILS
            self._notices.mail_queue.send_file(mails, copy(site.settings.mail), site.name)
        if made is not None:
            event, data = made
            LOG.info("the report of the night of %s is in %s", event.day, host.home.reports / event.day)
            self._hooks.report(data)


def json_of(data: dict[str, Any]) -> Iterator[str]:
    """Yield the output of ``nqspy report night --json`` in short pieces, so that other threads can run."""
    chunks = json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(data)
    while piece := "".join(islice(chunks, 10_000)):
        yield piece
    yield "\n"


def empty(data: dict[str, Any]) -> None:
    """Empty the long lists of a report in parts: freeing 100,000 rows at once would stall other threads."""
    for value in data.values():
        while isinstance(value, list) and value:
            del value[-1_000:]


def file_of(group: str) -> str:
    """Return the file name of a department's page, never that of the operators' page."""
    return f"{group}.html" if group != "operators" else "group-operators.html"


def digests(
    data: dict[str, Any], cut: dict[str, dict[str, Any]], mails: Addresses, members: Addresses,
    operators: Iterable[str],
) -> list[MailMessage]:  # fmt: skip
    """Return the mails about a night: for each department (``cut``: its part of the data) to its addresses in
    ``mails``, else to its ``members`` with requests; and to the operators."""
    found = [_message(data, "operators", address) for address in operators if is_address(address)]
    for each in data["groups"]:
        name, owners = each["name"], each["owners"]
        mine = [owner for owner in owners if owner in members.get(name, ())]
        addresses = mails.get(name) or mine or owners
        found += [_message(cut[name], name, address) for address in addresses if is_address(address)]
    return found


def _message(data: dict[str, Any], part: str, address: str) -> MailMessage:
    day, requests, well = data["date"], data["requests"], data["ended_ok"]
    subject = f"nqspy: night of {day}, {part}: {counted(requests, 'request')}, {well} ended well"
    text, id = pages.night_text(data, ROWS), f"{NIGHT_MAIL}{day}.{part}.{address}"
    return MailMessage(address, subject, text, id)
