"""What requests that hold no PEs and their applications are charged, to whom, and that nothing is charged
twice or not at all."""

import pytest
from engine.harness import MAX, Centre, item
from engine.test_engine_applications import CallStory
from msgspec.structs import replace

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.report.counters import counters
from nqspy.report.quotas import Period, quota_report

MIN = 60_000
SITE = """
create group d1 share=1 limit=50% members=(anne)
create group d2 share=1 members=(ben)
create group guests share=1
set usage half_life=10000h
create domain nqs kind=command
create batch_queue front domain=nqs
create class production priority=2 wait=30:00 do_not_disturb=0
create class interactive priority=4 wait=0 do_not_disturb=0
create batch_queue apps order=class
enable queue all
start queue all
set default mpprun queue apps
set managers = (max:m)
"""


def centre_of(runs, charge="pe_wall", pes=4):
    """``runs``: minutes of wall and of CPU time, by the name of a request."""
    return Centre(
        SITE + f"set usage charge={charge}\n",
        pes=pes,
        lengths=lambda r: Run(wall=runs[r.name][0] * MIN, cpu=round(runs[r.name][1] * MIN)),
    )


def use(centre, group):
    """Minutes charged to a group, of all domains, once a pass has told what was used."""
    centre.submit("max name=tick queue=front")
    site, half_life = centre.site, centre.site.settings.usage.half_life
    found = (account for key, account in site.accounts.items() if key.rpartition("g:")[2] == group)
    return sum(each.at_time(centre.sim.now, half_life) for each in found) / MIN


def called(centre, line):
    """Call an application by its owner; return its number."""
    CallStory(centre).call(line)
    return centre.site.next_seq - 1


RUNS = {"script": (60, 2), "wide": (20, 70), "narrow": (50, 30), "tick": (0, 0)}


@pytest.mark.parametrize(
    ("charge", "early", "wide", "narrow"),
    [("pe_wall", 4 * 10, 4 * 20, 1 * 50), ("cpu", 35 + 2 / 6, 70 + 2, 30 + 2)],
)
def test_a_script_is_charged_what_it_uses_itself_and_its_applications_their_pes(charge, early, wide, narrow):
    centre = centre_of(RUNS, charge, pes=5).qmgr("set group d1 limit=unlimited")
    [one], [other] = (
        centre.submit(f"{who} name=script pes={pes} queue=front") for who, pes in (("anne", 4), ("ben", 1))
    )
    called(centre, f"anne name=wide pes=4 within={one}")
    called(centre, f"ben name=narrow pes=1 within={other}")
    centre.later(minutes=10)
    assert use(centre, "d1") == pytest.approx(early, rel=1e-2)
    centre.later(hours=2)
    assert (use(centre, "d1"), use(centre, "d2")) == pytest.approx((wide, narrow), rel=1e-2)
    shown = {
        row["name"]: row for row in counters(centre.journal.events(), centre.site, centre.sim.now)["groups"]
    }
    assert shown["d1"]["daily_finished_s"] == pytest.approx(60 * wide, rel=1e-2)
    assert shown["d2"]["used_s"] == pytest.approx(60 * narrow, rel=1e-2)
    centre.is_sound()


def test_the_report_of_quotas_has_what_was_charged():
    centre = centre_of(RUNS, pes=5).qmgr("set group d1 limit=unlimited")
    begin = centre.sim.now
    [script] = centre.submit("anne name=script pes=4 queue=front")
    called(centre, f"anne name=wide pes=4 within={script}")
    called(centre, "ben name=narrow")
    centre.later(minutes=30)
    use(centre, "d1")
    period = Period(begin, centre.sim.now, None, True)
    found = quota_report(centre.journal.events(), centre.site, period, centre.sim.now)
    got = {row["name"]: row for row in found["groups"]}
    assert (got["d1"]["got_s"], got["d2"]["got_s"]) == pytest.approx((80 * 60, 30 * 60), rel=1e-2)
    assert got["d1"]["could_s"] == pytest.approx(80 * 60, rel=1e-2), "its script has no PE time to come"


class ChargeStory(CallStory):
    """A story of applications with what departments are charged."""

    def use(self, words: str) -> None:
        """Check the minutes that are charged to groups: ``d1=40``."""
        wanted = {group: float(minutes) for group, minutes in (each.split("=") for each in words.split())}
        assert {group: use(self.centre, group) for group in wanted} == pytest.approx(wanted, rel=1e-2)


STORIES = {
    "one that gave its PEs is not charged until it has some again": (2, """qmgr set group d1 limit=unlimited
        call anne name=long pes=2; later 20m; call ben name=short pes=2 class=interactive; later 20m
        state 1 suspended; use d1=40 d2=40; later 20m; use d1=60 d2=60; later 1h; use d1=120"""),
    "a script leaves its department's cap to its applications": (4, """
        submit anne name=script pes=2 queue=front; call anne name=wide pes=2 within=1; state 2 running
        submit anne name=script pes=4 queue=front; state 3 running"""),
    "a department whose use is spent starts no scripts either": (4, """qmgr set usage half_life=1h
        qmgr set usage of group d1 10h; submit anne name=script queue=front, ben name=script queue=front
        state 1 queued 2 running"""),
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_charges(title):
    pes, text = STORIES[title]
    story = ChargeStory(centre_of({**RUNS, "long": (60, 60), "short": (30, 30)}, pes=pes))
    story.play(text)
    story.centre.is_sound()


def test_an_application_is_charged_to_the_department_of_the_request_around_it():
    """Though its owner is no member: a manager handed the request in."""
    centre = centre_of(RUNS)
    handed_in = item("anne name=script account=guests queue=front", centre.sim.now, user="anne")
    handed_in = replace(handed_in, spec=replace(handed_in.spec, owner="anne"))
    [id] = centre.ask(cm.Submit((handed_in,)), MAX)["ids"]
    script = int(id.partition(".")[0])
    application = centre.request(called(centre, f"anne name=wide within={script}"))
    assert (application.group, application.spec.account) == ("guests", "guests")
    centre.later(minutes=20)
    assert use(centre, "guests") == pytest.approx(20, rel=1e-2)
    assert use(centre, "d1") == 0
