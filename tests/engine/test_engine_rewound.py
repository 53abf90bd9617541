"""A start over a database that is older than what has happened: nothing runs twice, no number is given
twice."""

import copy

import pytest
from engine.harness import PLAIN, Centre

from nqspy.engine import lifecycle, restart
from nqspy.engine.restart import Later
from nqspy.model import columns
from nqspy.model.ids import array_key, member
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site


def rewound(minutes, *lines):
    """A centre whose journal is put back to so many minutes before; what happened in the machine since
    stays."""
    centre = Centre(PLAIN, pes=1, length=600)
    centre.submit(*lines)
    kept = copy.deepcopy(centre.journal.__dict__)
    centre.later(minutes=minutes)
    centre.journal.__dict__.update(kept)
    return centre


def begin(centre, seen, told=None):
    sim = centre.sim
    later = restart.later_than(centre.journal.load(), seen, told)
    sim.restart(later)
    return later


def test_a_start_that_is_not_rewound_finds_nothing():
    site = Site(next_seq=5)
    assert restart.later_than(site, {}) is None
    assert restart.later_than(site, {3: 1, 4: 2}) is None


def test_a_request_that_was_started_since_is_held_and_its_attempt_is_not_used_again():
    centre = rewound(1, "anne", "ben")
    site = centre.site
    assert not site.touched.requests
    later = begin(centre, {2: 3, 9: 1})
    assert (later.next_seq, later.attempts) == (10, {2: 3, 9: 1})
    ben = centre.site.requests[2]
    assert (ben.state, ben.attempts, ben.holds) == (State.HELD, 3, "o")
    assert centre.site.next_seq == 10
    [alarm] = [each.event for each in centre.journal.events() if each.event.kind == "alarm"]
    assert all(each in alarm.text for each in ("10.", ": 2.", ": 9."))
    [cleo] = centre.submit("cleo")
    assert cleo == 10
    replayed = Site()
    for each in centre.journal.events():
        lifecycle.apply(replayed, each)
    assert (replayed.next_seq, replayed.requests[2].attempts) == (11, 3)


def test_an_attempt_without_a_trace_after_a_restore_is_held_and_not_run_again():
    centre = rewound(30, "anne")  # it ends, and nothing of it stays
    begin(centre, {}, Later("a backup was restored", 7, {}))
    assert centre.site.requests[1].state is State.HELD
    assert centre.site.next_seq == 7
    centre.later(minutes=30)
    assert centre.sim.executor.begun == [(1, 1)]


def test_an_attempt_that_still_runs_after_a_restore_is_adopted():
    centre = rewound(1, "anne")
    begin(centre, {1: 1}, Later("a backup was restored", 2, {}))
    assert centre.site.requests[1].state is State.RUNNING
    centre.later(minutes=30)
    assert [row["seq"] for row in centre.journal.ended((1,))] == [1]
    assert centre.sim.executor.begun == [(1, 1)]


def night(spare):
    """What a night starts, in order, and how many names are kept in mind at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "SPARE", spare)
        settings = PLAIN + "set sched_factor share 20\ncreate group d1 share=30 members=(anne)\n"
        centre = Centre(settings, pes=2, length=300)
        centre.site.numbers.limit = spare
        for number in range(12):
            centre.submit(f"anne name=a{number}", f"ben name=b{number}", f"cleo name=c{number % 3}")
            centre.later(minutes=7)
        centre.later(minutes=200)
        starts = [each.event.seq for each in centre.journal.events() if each.event.kind == "starting"]
        return starts, len(centre.site.numbers.names)


def test_forgetting_names_changes_no_decision():
    """The same night twice: once every few new names have the others looked through."""
    starts, few = night(1)
    as_ever, many = night(10_000)
    assert starts == as_ever
    assert len(starts) == 36
    assert few < many


def test_an_index_that_began_since_is_held_as_a_request_of_its_own():
    """Its array would start it again: in the backup it had not begun."""
    centre = rewound(25, "anne array=1-4")
    began = member(array_key(1), 2)
    begin(centre, {began: 1})
    assert centre.state(began) == "held"
    centre.later(hours=2)
    assert centre.state(began) == "held"
    assert began not in centre.starts()[1:]
    check_site(centre.site)
