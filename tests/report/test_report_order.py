"""Whether a night's report says that the order of a list was kept (semantics.md 1)."""

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from engine.harness import ANNE, PLAIN, ROOT, Centre
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.queues import Queue
from nqspy.model.requests import Dependency
from nqspy.report.night import night_bounds, night_report
from nqspy.report.night_metrics import overtaken
from nqspy.report.pages import night_text
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import zone_of
from nqspy.userexit.site_exits import SiteExits

PARIS = zone_of("Europe/Paris")
SHIPPED = Path(__file__).parents[2] / "exits"


def overtaking(diary, wait=(), before=(), **ask):
    """Start the second request of a list, which asks for 1 MB, while the first still waits."""
    book = diary(pes=4, d1=1)
    one = book.submit(-60, "d1", "anne", **{"memory": 1 << 20, **ask})
    two = book.submit(-50, "d1", "anne", memory=1 << 20)
    book.night()
    for second, event in enumerate(before, -10):
        book.add(second, event)
    book.decide(0, two, wait=[(one, *each) for each in wait])
    return book.report(10)


def test_starting_a_later_one_first_changes_the_order(diary):
    data = overtaking(diary)
    assert not data["order_kept"]
    assert data["line"].endswith("order changed")
    assert [(each["started"], each["before"]) for each in data["overtaken"]] == [("2.ymp", "1.ymp")]
    assert re.search(r" 2\.ymp .* 1\.ymp$", night_text(data), re.MULTILINE)


def test_who_fits_before_a_promised_start_changes_no_order_and_who_runs_longer_does(diary):
    def started(mine, other, **settings):
        book = diary(pes=4, d1=1)
        book.site.settings.queues["night"] = Queue("night", **settings)
        book.submit(-60, "d1", "anne", wall=other)
        two = book.submit(-50, "d1", "anne", wall=mine)
        book.night()
        book.decide(0, two)
        return book.report(10)["order_kept"]

    assert started(600_000, 3_600_000, reserve=1)
    assert not started(3_600_000, 600_000, reserve=1)
    assert not started(600_000, 3_600_000, reserve=0)
    assert started(600_000, 3_600_000, order="sjf")


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (("EXIT", "dependency", "job of anne has not ended"), True),
        (("DEPENDENCY", "dependency", "waits for 9.ymp"), True),
        (("LIMIT", "queue night", "user limit 2 of queue night is reached for anne"), False),
        (("LIMIT", "queue night", "run limit 4 of queue night is reached"), False),
        (("NO_PES", "machine", "no PE is free"), False),
        (("LATER", "pass", "the next pass will look at it"), False),
    ],
)
def test_a_journaled_reason_excuses_unless_the_later_one_met_it_as_well(diary, reason, kept):
    assert overtaking(diary, wait=[reason])["order_kept"] is kept


def test_a_rank_that_is_given_meanwhile_hides_nobody_from_the_pass(evening):
    book, one, two = evening(2, pes=4)
    seen = book.site.n
    book.add(0, ev.Ranked(one, 0, "op"))
    book.add(0, ev.Decided(seen))
    book.add(0, ev.Starting(two, 1, (0,)))
    assert not book.report(10)["order_kept"]


def test_larger_requests_may_be_passed_over_for_lack_of_room(diary):
    no_pes = ("NO_PES", "machine", "it asks for 3 PEs, 1 is free")
    assert overtaking(diary, wait=[no_pes], pes=3)["order_kept"]
    memory = ("LIMIT", "global", "global memory limit 1gb leaves 0b, it counts 1gb")
    assert overtaking(diary, wait=[memory], memory=1 << 30)["order_kept"]
    assert not overtaking(diary, wait=[memory])["order_kept"]


def test_what_could_not_start_is_no_change_of_order(diary):
    one, two = 1, 2
    held, first_by_hand = ev.Held((one,), "o", "op"), ev.Ranked(two, 2, "op")
    moved_in = ev.Moved((one,), "day", "op"), ev.Moved((one,), "night", "op")
    for before in ([held], [first_by_hand], moved_in):
        assert overtaking(diary, before=before)["order_kept"], before


@pytest.mark.parametrize("started", [1, 2])
def test_what_is_released_after_the_pass_looked_neither_overtakes_nor_is_overtaken(diary, started):
    book = diary(pes=1, d1=1)
    one, two = book.submit(-60, "d1"), book.submit(-50, "d1")
    if started == two:
        book.add(-40, ev.Held((one,), "o", "op"))
    book.night()
    seen = book.site.n
    if started == one:
        book.add(0, ev.Held((one,), "o", "op"))
    book.add(0, ev.Released((one,), "o", "op", aging=started == one))
    book.add(0, ev.Decided(seen))
    book.add(0, ev.Starting(started, 1, (0,)))
    assert book.report(10)["order_kept"]


def test_lists_of_other_groups_and_queues_are_lists_of_their_own(diary):
    book = diary(pes=4, d1=1, d2=1)
    book.submit(-60, "d1")
    book.submit(-60, "d2", queue="day")
    last = book.submit(-50, "d2")
    book.night()
    book.decide(0, last)
    assert book.report(10)["order_kept"]


def test_a_request_with_a_date_joins_its_list_when_the_date_has_come(diary):
    book = diary(pes=4, d1=1)
    dated = book.submit(-60, "d1", state="waiting", eligible=30)
    one, two = book.submit(-50, "d1"), book.submit(-50, "d1")
    book.night()
    book.decide(0, one)
    book.add(30, ev.Eligible((dated,)))
    book.decide(40, two)
    assert book.report(50)["order_kept"]


def test_what_waits_for_others_is_not_passed_over_and_is_told_with_its_reason(diary):
    book = diary(pes=1, d1=1)
    first = book.submit(-60, "d1")
    second = book.submit(-50, "d1", after=(Dependency(first),))
    third = book.submit(-40, "d1")
    fourth = book.submit(-30, "d1", after=(Dependency(second),))
    book.night()
    book.decide(0, first)
    book.end(100, first, cpu=100)
    book.add(100, ev.DependencyMet((second,), first, ("ok", "any", "start"), "it ended"))
    book.decide(100, second)
    book.end(200, second, cpu=100, status=1)
    book.add(200, ev.DependencyFailed((fourth,), second, ("ok",), "it failed"))
    book.decide(200, third)
    book.end(300, third, cpu=100)
    book.morning()
    data = book.report(9 * 3600 + 60)
    assert "order kept" in data["line"]
    [waits] = data["waiting"]
    assert (waits["id"], waits["reason"]["code"]) == ("4.ymp", "DEPENDENCY")


# ---------------------------------------------------------------- as the scheduler orders
def overtakings(centre):
    """Return which request was started before which, by the journal of a simulated site."""
    replay, decided, found = HistoryReplay(centre.site.requests), None, []
    for each in centre.journal.events():
        if isinstance(each.event, ev.Starting):
            found += [(each.event.seq, seq) for seq in overtaken(replay, each.event, decided)]
        elif isinstance(each.event, ev.Decided):
            decided = each.event
        replay.add(each)
    return found


def test_a_release_puts_a_request_behind_those_that_waited_meanwhile():
    centre = Centre(f"{PLAIN}set queue batch run_limit=1\n", at="2026-03-02T22:00:00+01:00", length=10)
    one, two, three = centre.submit("anne", "anne", "anne")
    centre.ask(cm.HoldRequests((centre.id(two),), "u"))
    centre.later(seconds=1)
    centre.ask(cm.ReleaseRequests((centre.id(two),), "u"))
    centre.later(seconds=60)
    assert centre.starts() == [one, three, two]
    now, events = centre.sim.now, list(centre.journal.events())
    data = night_report(events, centre.site, night_bounds(events, PARIS, now), now)
    assert data["order_kept"]
    assert data["line"].endswith("order kept")


def held_and_released(centre):
    seqs = centre.submit("anne", "anne held", "anne")
    centre.later(seconds=1)
    centre.ask(cm.ReleaseRequests((centre.id(seqs[1]),), "u"))
    centre.qmgr(AGE)


def one_behind_a_later_one_of_its_own(centre):
    """Submit anne's first, which waits for her last, preferred by her; ben's is between the two."""
    *_, last = centre.submit("olga", "anne", "ben", "anne")
    centre.ask(cm.ModifyRequest((centre.id(last),), {"priority": 5}), by=ANNE)


def a_list_with_a_held_one(centre):
    centre.submit("ben")
    first, *_ = centre.hand_in("anne held", "anne", "anne")["ids"]
    centre.later(seconds=1)
    centre.ask(cm.ReleaseRequests((first,), "u"))


AGE = "set queue batch age_from=submitted"


@pytest.mark.parametrize(
    ("script", "happens", "starts"),
    [
        ("", lambda centre: centre.submit("anne", "anne after=1:any", "anne"), [1, 3, 2]),
        (AGE, lambda centre: centre.submit("anne", "anne after=1:any", "anne"), [1, 2, 3]),
        ("", held_and_released, [1, 3, 2]),
        ("", a_list_with_a_held_one, [1, 2, 3, 4]),
        ("", one_behind_a_later_one_of_its_own, [1, 3, 4, 2]),
    ],
)
def test_what_the_scheduler_starts_in_its_order_overtakes_nothing(script, happens, starts):
    centre = Centre(f"{PLAIN}set queue batch run_limit=1\n{script}\n", length=10)
    happens(centre)
    centre.later(seconds=60)
    assert (centre.starts(), overtakings(centre)) == (starts, [])


def test_one_that_an_exit_gave_a_later_date_counts_as_overtaken(tmp_path):
    """An exit's date changes the order in which a list was handed in: the report says so."""
    folder = tmp_path / "exits"
    folder.mkdir(mode=0o755)
    shutil.copy(SHIPPED / "machine_gun.py", folder)
    centre = Centre(f"{PLAIN}set queue batch run_limit=1\n", exits=SiteExits(folder), length=10)
    running, first, second, last = centre.submit("olga", "anne", "anne", "ben")
    centre.later(seconds=60)
    assert centre.starts() == [running, first, last, second]
    assert overtakings(centre) == [(last, second)]


IDS = st.lists(st.integers(1, 9).map(str), min_size=1, max_size=3).map(tuple)
LINES = st.builds(
    "{} pes={} {} at={} after={} queue={}".format,
    st.sampled_from(("anne", "ben")), st.integers(1, 2), st.sampled_from(("held", "", "")),
    st.sampled_from(("0", "0", "0", "90")), st.sampled_from(("", "", "", "1:any", "2:any,3:start")),
    st.sampled_from(("batch", "batch", "batch", "other", "pipe")),
)  # fmt: skip
CHANGES = st.sampled_from(
    [ev.Change("set", f"queue/{queue}/{key}", value) for queue in ("batch", "other") for key, value in (
        ("age_from", "submitted"), ("age_from", "eligible"), ("run_limit", 1), ("run_limit", None),
        ("user_limit", 1), ("started", False), ("started", True))]
)  # fmt: skip
HAPPENINGS = st.one_of(
    st.lists(LINES, min_size=1, max_size=3).map(lambda lines: ("submit", lines)),
    st.lists(LINES, min_size=1, max_size=3).map(lambda lines: ("hand_in", lines)),
    st.one_of(
        st.builds(cm.HoldRequests, IDS, st.sampled_from(("u", "o", "s"))),
        st.builds(cm.ReleaseRequests, IDS, st.just(None)),
        st.builds(cm.MoveRequests, IDS, st.sampled_from(("batch", "other"))),
        st.builds(cm.RerunRequests, IDS),
        st.builds(cm.Delete, IDS),
        st.builds(cm.ModifyRequest, IDS, st.sampled_from(({"priority": 5}, {"priority": -5}, {"ask/pes": 2},
                                                          {"eligible": 1_772_478_200_000}))),
        st.builds(lambda change: cm.Configure((change,)), CHANGES),
    ).map(lambda command: ("ask", command)),
)  # fmt: skip
TWO_QUEUES = f"""{PLAIN}
create batch_queue other priority=20
create pipe_queue pipe priority=5 destination=(other, batch)
enable queue other, pipe
start queue other, pipe
"""


@pytest.mark.parametrize(
    ("wishes", "starts"),
    [(" at=90,, at=90 queue=other", [2, 3, 1, 4]), (",, queue=other, at=90", [*range(1, 6)])],
)
def test_what_is_too_wide_is_passed_over_though_the_run_limit_is_reached_afterwards(wishes, starts):
    centre = Centre(TWO_QUEUES, pes=2, length=100)
    centre.submit(*(f"anne pes=1{wish}" for wish in wishes.split(",")))
    centre.qmgr("set queue batch run_limit=1")
    centre.submit("anne pes=2")
    centre.later(hours=1)
    assert (centre.starts(), overtakings(centre)) == (starts, [])


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from((0, 0, 1, 500, 50_000)), HAPPENINGS), max_size=16), st.integers(1, 2)
)
def test_no_order_is_changed_where_no_exit_and_no_operator_changed_it(happenings, pes):
    """Whatever people do, while the oldest is first: the report's lists are the scheduler's."""
    centre = Centre(TWO_QUEUES, pes=pes, length=100)
    for ms, (word, what) in happenings:
        centre.sim.run(centre.sim.now + ms)
        with contextlib.suppress(Refusal):
            if word == "ask":
                centre.ask(what)
            elif word == "submit":
                centre.submit(*what)
            else:
                centre.hand_in(*what, by=ROOT)
    centre.later(hours=1)
    assert overtakings(centre) == []
