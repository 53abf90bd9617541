"""What moves cost is told: of a request, of the site of late, and of a night."""

import pytest
from engine.harness import Centre, moment
from engine.test_engine_look_ahead_classes import site_of

from nqspy.core.classes import GANG, class_in
from nqspy.report.json_objects import AnswerContext, request_object
from nqspy.report.night import Bounds, night_report
from nqspy.report.pages import night_text
from nqspy.report.time_text import Zone, zone_of
from nqspy.report.why import why_text

PARIS = zone_of("Europe/Paris")


def twice_bumped() -> tuple[Centre, int]:
    """A job of 6 PEs that gave way twice and runs again; each time it moved out for 12 s."""
    centre = site_of(2_000)
    [long] = centre.submit("anne pes=6 wall=3000 queue=apps class=production")
    for pes in (2, 6):
        centre.later(minutes=5)
        centre.submit(f"anne pes={pes} wall=60 queue=apps class=interactive")
        centre.later(seconds=1)
    return centre, long


def seen(centre: Centre, seq: int) -> dict:
    context = AnswerContext("sim", Zone("Europe/Paris"), centre.sim.now)
    return request_object(centre.request(seq), context)


def test_a_request_says_how_often_it_left_its_pes_and_what_that_took():
    centre, long = twice_bumped()
    assert centre.state(long) == "suspended"
    assert ", last on PEs " in why_text(seen(centre, long))
    assert seen(centre, long)["moved"] == {"times": 1, "took_s": 12, "paged_bytes": 0}
    centre.later(minutes=5)
    assert centre.state(long) == "running"
    found = seen(centre, long)
    assert ", now on PEs " in why_text(found)
    assert found["moved"] == {"times": 2, "took_s": 24, "paged_bytes": 0}
    assert "moved: " in why_text(found)
    classes = {queue: class_in(centre.site, queue, found["class"]) for queue in ("apps", "plain")}
    assert classes == {"apps": "production", "plain": ""}
    assert "queue apps, class production\n" in why_text(found | {"by_class": classes["apps"]})
    [other] = centre.submit("anne queue=plain wall=1000")
    assert "moved" not in seen(centre, other)


def test_show_gang_says_what_a_move_takes_and_who_is_disturbed_sooner():
    def shown(centre: Centre) -> dict[str, str]:
        return dict(GANG.status(centre.site, PARIS.stamp).rows)

    assert shown(site_of(2_000)) == {"moves": "none yet"}
    centre, _ = twice_bumped()
    centre.later(minutes=5)
    rows = shown(centre)
    assert rows["moves"].startswith("2 s for each PE")
    assert "do_not_disturb=1 " in rows["class production"]
    centre.qmgr("set class production do_not_disturb=2")
    assert "class production" not in shown(centre)
    assert GANG.status(centre.site, PARIS.stamp).data["moves"]["mean_s"] == 2


def test_the_night_report_counts_who_gave_way_and_the_pe_hours_that_it_cost():
    centre, _ = twice_bumped()
    centre.later(minutes=5)
    start = moment("2026-03-02T06:00:00+01:00")
    bounds = Bounds(PARIS.local(start).date(), start, None, None)
    data = night_report(centre.journal.events(), centre.site, bounds, centre.sim.now)
    assert data["moves"] == pytest.approx(
        {"gave_way": 2, "moved": 2, "pe_hours": 24 * 6 / 3600, "paged_bytes": 0}
    )
    assert "0.04 PE hours" in night_text(data)
