"""What requests that hold no PEs and their applications are charged, to whom, and that nothing is charged
twice or not at all."""

import pytest
from engine.harness import ANNE, BEN, MAX, Centre, item
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


def runs_application(centre, line, around=None, by=ANNE, kind="production"):
    """An application, called in the request around it."""
    plain = item(line, centre.sim.now)
    within = centre.id(around) if around is not None else ""
    spec = replace(plain.spec, caller=(77, 1234), job_class=kind, within=within)
    [id] = centre.ask(cm.Submit((replace(plain, spec=spec),)), by)["ids"]
    return int(id.partition(".")[0])


def use(centre, group):
    """Minutes charged to a group, of all domains, once a pass has told what was used."""
    centre.submit("max name=tick queue=front")
    site, half_life = centre.site, centre.site.settings.usage.half_life
    found = (account for key, account in site.accounts.items() if key.rpartition("g:")[2] == group)
    return sum(each.at_time(centre.sim.now, half_life) for each in found) / MIN


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
    runs_application(centre, "anne name=wide pes=4", one)
    runs_application(centre, "ben name=narrow pes=1", other, by=BEN)
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
    runs_application(centre, "anne name=wide pes=4", script)
    runs_application(centre, "ben name=narrow", by=BEN)
    centre.later(minutes=30)
    use(centre, "d1")
    period = Period(begin, centre.sim.now, None, True)
    found = quota_report(centre.journal.events(), centre.site, period, centre.sim.now)
    got = {row["name"]: row for row in found["groups"]}
    assert (got["d1"]["got_s"], got["d2"]["got_s"]) == pytest.approx((80 * 60, 30 * 60), rel=1e-2)
    assert got["d1"]["could_s"] == pytest.approx(80 * 60, rel=1e-2), "its script has no PE time to come"


def test_one_that_gave_its_pes_is_not_charged_until_it_has_some_again():
    centre = centre_of({**RUNS, "long": (60, 60), "short": (30, 30)}, pes=2)
    centre.qmgr("set group d1 limit=unlimited")
    long = runs_application(centre, "anne name=long pes=2")
    centre.later(minutes=20)
    runs_application(centre, "ben name=short pes=2", by=BEN, kind="interactive")
    centre.later(minutes=20)
    assert centre.state(long) == "suspended"
    assert (use(centre, "d1"), use(centre, "d2")) == pytest.approx((40, 40), rel=1e-2)
    centre.later(minutes=20)
    assert (use(centre, "d1"), use(centre, "d2")) == pytest.approx((60, 60), rel=1e-2)
    centre.later(hours=1)
    assert use(centre, "d1") == pytest.approx(120, rel=1e-2)
    centre.is_sound()


def test_a_script_leaves_its_departments_cap_to_its_applications():
    centre = centre_of(RUNS, pes=4)
    [script] = centre.submit("anne name=script pes=2 queue=front")
    application = runs_application(centre, "anne name=wide pes=2", script)
    assert centre.state(application) == "running", "d1 may hold two PEs, and its script holds none"
    [more] = centre.submit("anne name=script pes=4 queue=front")
    assert centre.state(more) == "running", "however many it asks for"


def test_a_department_whose_use_is_spent_starts_no_scripts_either():
    centre = centre_of(RUNS, pes=4).qmgr("set usage half_life=1h")
    centre.qmgr("set usage of group d1 10h", by=MAX)
    [script] = centre.submit("anne name=script queue=front")
    [other] = centre.submit("ben name=script queue=front")
    assert (centre.state(script), centre.state(other)) == ("queued", "running")


def test_an_application_is_charged_to_the_department_of_the_request_around_it():
    """Though its owner is no member: a manager handed the request in."""
    centre = centre_of(RUNS)
    handed_in = item("anne name=script account=guests queue=front", centre.sim.now, user="anne")
    handed_in = replace(handed_in, spec=replace(handed_in.spec, owner="anne"))
    [id] = centre.ask(cm.Submit((handed_in,)), MAX)["ids"]
    script = int(id.partition(".")[0])
    application = centre.request(runs_application(centre, "anne name=wide", script))
    assert (application.group, application.spec.account) == ("guests", "guests")
    centre.later(minutes=20)
    assert use(centre, "guests") == pytest.approx(20, rel=1e-2)
    assert use(centre, "d1") == 0
