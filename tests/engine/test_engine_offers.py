"""User exits: how many candidates are offered in a pass, arrays, loading, and the age of a burst."""

import pytest
from engine.harness import OLGA, PLAIN, Centre, asked, exits_of, item
from engine.story import play

from nqspy.core.no_exits import NoExits
from nqspy.engine.handlers import exits as exits_desk
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import index_of

EXIT = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("not tonight") if request.name == "x" else None
"""


@pytest.fixture
def choosy(tmp_path):
    return exits_of(tmp_path / "exits", choosy=EXIT)


BY_CLASS = "create class production\nset queue batch order=class\n"


@pytest.mark.parametrize("order", ["", BY_CLASS])
def test_those_behind_more_refused_ones_than_a_pass_offers_start_on_idle_pes(choosy, order):
    centre = Centre(f"{PLAIN}{order}set global offers_per_pass=3\n", exits=choosy, length=36_000)
    refused = centre.submit(*["anne name=x"] * 20)
    [fits] = centre.submit("ben name=y")
    centre.later(seconds=1)
    assert centre.state(fits) == "running"
    centre.is_sound()
    calls = sum(row["calls"] for row in choosy.listing())
    centre.later(hours=1)
    assert sum(row["calls"] for row in choosy.listing()) == calls, "nothing has happened: no exit is asked"
    assert {centre.engine.plan.reasons.of(seq, "batch").text for seq in refused} == {"not tonight"}


@pytest.mark.parametrize("order", ["", BY_CLASS])
def test_with_no_pe_free_a_pass_does_not_go_on(choosy, order):
    centre = Centre(f"{PLAIN}{order}set global offers_per_pass=3\n", exits=choosy, pes=1, length=3600)
    centre.submit("ben name=y")
    centre.submit(*["anne name=x"] * 20)
    before = sum(row["calls"] for row in choosy.listing())
    centre.later(minutes=30)
    assert sum(row["calls"] for row in choosy.listing()) == before


# ---------------------------------------------------------------- the walk goes on, whatever happens
BUSY = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if request.name.startswith("x"):
        return refuse(f"{len(view.running())} are running")
"""


def test_events_that_keep_coming_do_not_keep_a_pe_idle_behind_three_hundred_refused(tmp_path):
    """Every event changes what the refusals depend on, and comes before all candidates were offered."""
    exits = exits_of(tmp_path / "exits", busy=BUSY)
    centre = Centre(f"{PLAIN}set global offers_per_pass=100\n", exits=exits, pes=2, length=36_000)
    engine, now = centre.engine, centre.sim.now
    centre.submit("zoe name=y")
    centre.qmgr("stop queue batch")
    centre.submit(*["anne name=x"] * 300)
    [fits] = centre.submit("ben name=y")
    centre.qmgr("set global run_limit=2")
    engine.feed([asked(centre.command("start queue batch"))], now)
    for _ in range(12):
        now += 1
        engine.feed([asked(cm.Submit((item("cleo name=x", now),)))], now)
        engine.feed([], now)
        if centre.state(fits) == "running":
            break
    assert centre.state(fits) == "running", "the walk begins again at each event"
    assert max(row["calls"] for row in exits.listing()) <= 2 * 12 * 100


WAITS = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if request.name == "x" or (request.name == "z" and view.queue("batch").priority < 60):
        return refuse("not yet")
"""


def test_a_refusal_from_before_a_change_is_asked_about_again_after_the_round(tmp_path):
    """The fourth request is refused in the first pass of a round, and a setting changes before the second."""
    exits = exits_of(tmp_path / "exits", waits=WAITS)
    centre = Centre(f"{PLAIN}set global offers_per_pass=4\n", exits=exits, pes=2, length=36_000)
    engine, now = centre.engine, centre.sim.now
    centre.qmgr("stop queue batch")
    *_, freed = centre.submit(*["anne name=x"] * 3, "ben name=z")
    centre.submit(*["cleo name=x"] * 10)
    engine.feed([asked(centre.command("start queue batch"))], now)
    engine.feed([], now)
    assert centre.state(freed) == "queued"
    engine.feed([asked(centre.command("set queue batch priority=60"))], now)
    for at in range(now, now + 10):
        engine.feed([], at)
    assert centre.state(freed) == "running"
    centre.is_sound()


@pytest.mark.parametrize("reserve", [0, 1])
def test_passes_come_to_rest_with_a_wide_request_behind_refused_ones(choosy, reserve):
    lines = f"{PLAIN}set global offers_per_pass=3\nset queue batch order=fcfs reserve={reserve}\n"
    centre = Centre(lines, exits=choosy, pes=4, length=36_000)
    centre.submit("zoe name=y wall=36000")
    centre.submit(*["anne name=x"] * 20, "ben name=y pes=4 wall=60", *["anne name=x"] * 5)
    centre.later(seconds=1)
    calls = sum(row["calls"] for row in choosy.listing())
    centre.later(hours=1)
    assert sum(row["calls"] for row in choosy.listing()) == calls


def test_a_look_ahead_neither_uses_nor_stores_refusals(choosy):
    centre = Centre(f"{PLAIN}set global offers_per_pass=2\n", exits=choosy, pes=2)
    seqs = centre.submit(*["anne name=x"] * 3)
    centre.estimate(seqs[1])
    [fits] = centre.submit("ben name=y")
    centre.later(seconds=1)
    assert centre.state(fits) == "running"
    centre.is_sound()


# ---------------------------------------------------------------- arrays
def test_an_elected_index_makes_the_rest_of_its_array_young(tmp_path):
    """As in a burst of single requests, the rest of the array waits behind other requests."""
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", "machine_gun"), pes=1, length=60)
    (array,) = centre.submit("anne array=1-5")
    centre.later(seconds=10)
    others = centre.submit("ben", "carl")
    centre.later(minutes=10)
    order = [index_of(seq) or seq for seq in centre.starts()]
    assert order == [1, 2, *others, 3, 4, 5], "the rest was as old as index 1 until index 2 was chosen"
    redated = [event for event in centre.events(ev.Redated) if array in event.seqs]
    assert len(redated) == 4, "the last index leaves nothing to be made younger"
    centre.is_sound()


def test_indices_of_one_array_are_no_equal_names(tmp_path):
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", "dependency"), pes=4, length=60)
    centre.qmgr("set exit dependency queues=batch")
    centre.submit("anne array=1-3 name=step")
    (later,) = centre.submit("anne name=step")
    assert sorted(index_of(seq) or 0 for seq in centre.starts()) == [1, 2, 3]
    assert centre.state(later) == "queued"
    assert centre.engine.plan.reasons.own[later].matches(code="EXIT", who="dependency")
    centre.later(minutes=2)
    assert centre.state(later) == "ended"


def test_jobselect_sees_how_many_are_left_and_is_asked_for_each(tmp_path):
    """At most two indices of an array of more than three run; the last ones need not wait."""
    text = '''"""Counts."""
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    mine = [each for each in view.running(owner=request.owner) if each.array == request.array]
    if request.array and request.count > 3 and len(mine) >= 2:
        return refuse(f"{request.count} left, {len(mine)} run")
    return None
'''
    centre = Centre(PLAIN, exits=exits_of(tmp_path / "exits", count=text), pes=8, length=60)
    (array,) = centre.submit("anne array=1-7")
    assert [index_of(seq) for seq in centre.starts()] == [1, 2]
    assert centre.engine.plan.reasons.own[array].text == "5 left, 2 run"
    centre.later(seconds=61)
    assert [index_of(seq) for seq in centre.starts()] == [1, 2, 3, 4, 5, 6, 7]
    centre.is_sound()


# ---------------------------------------------------------------- loading
class Loaded(NoExits):
    """Exits of these files; ``told``: the answer of a reload."""

    def __init__(self, **files: bytes) -> None:
        self.known, self.told = files, "loaded"

    def files(self):
        return self.known

    def reload(self):
        return self.told


@pytest.fixture
def centre() -> Centre:
    return Centre(PLAIN + "set managers = (olga:m)\n", exits=Loaded(quiet=b"first"))


def test_each_reload_is_journaled_with_a_copy_of_each_file(centre: Centre) -> None:
    centre.ask(cm.ReloadExits(), OLGA)
    centre.engine.exits.known = {"quiet": b"second", "huge": b"x" * (exits_desk.LONGEST_COPY + 1)}
    centre.ask(cm.ReloadExits(), OLGA)
    first, second = (dict(each.files) for each in centre.events(ev.LoadedExits))
    assert centre.journal.blob(first["quiet"]) == b"first"
    assert centre.journal.blob(second["quiet"]) == b"second"
    with pytest.raises(KeyError):
        centre.journal.blob(second["huge"])
    assert centre.site.loaded_exits == second == centre.journal.load().loaded_exits


def test_exits_that_are_still_being_loaded_are_not_journaled(centre: Centre) -> None:
    centre.engine.exits.told = ""
    assert centre.ask(cm.ReloadExits(), OLGA)["text"]
    assert not centre.events(ev.LoadedExits)


def test_a_start_journals_only_exits_that_the_journal_does_not_know(centre: Centre) -> None:
    for _ in range(2):
        exits_desk.loaded_at_start(centre.engine.transaction(centre.sim.now))
        centre.engine.flush(centre.sim.now)
    assert len(centre.events(ev.LoadedExits)) == 1


# ---------------------------------------------------------------- age, and bursts
SUBMITTED = f"{PLAIN}set queue batch age_from=submitted\n"


def others_wait(centre, chained):
    """Return the mean wait in minutes of twelve requests, one each ten minutes, while a burst of 60 requests
    of anne's waits that run five minutes each."""
    burst = centre.submit("anne")
    for _ in range(59):
        burst += centre.submit(f"anne after={burst[-1]}:any" if chained else "anne")
    others = []
    for number in range(12):
        centre.later(minutes=10)
        others += centre.submit(f"user{number}")
    centre.later(hours=12)
    waits = centre.waits()
    return sum(waits[seq] for seq in others) / len(others)


@pytest.fixture
def machine_gun(tmp_path):
    return exits_of(tmp_path / "exits", "machine_gun")


@pytest.mark.parametrize("settings", [PLAIN, SUBMITTED])
def test_a_burst_chained_by_after_does_not_by_pass_machine_gun(machine_gun, settings):
    waits = [
        others_wait(Centre(settings, exits=machine_gun, pes=1, length=300), chained)
        for chained in (False, True)
    ]
    assert max(waits) <= 10, waits


def test_a_redating_reaches_those_that_wait_for_others(machine_gun):
    centre = Centre(SUBMITTED, exits=machine_gun, pes=1)
    centre.submit("zoe")
    first, held = centre.submit("anne", "anne held")
    chained = centre.submit(f"anne after={first}:any", "anne after=1:any,4:any")
    other = centre.submit(f"ben after={first}:any")[0]
    submitted = centre.sim.now
    centre.later(minutes=10)
    [redated] = centre.events(ev.Redated)
    assert (redated.cause, redated.seqs) == (first, tuple(chained))
    assert {centre.request(seq).date_in_queue for seq in chained} == {centre.sim.now}
    assert {centre.request(seq).date_in_queue for seq in (held, other)} == {submitted}
    centre.is_sound()


@pytest.mark.parametrize(("age_from", "released", "met"), [("eligible", 0, 0), ("submitted", 60, 600)])
def test_age_counts_from_eligibility_or_from_submission(age_from, released, met):
    story = f"""submit ben, anne after=1:any, anne held, anne at=120; moved 2 0 3 0 4 0; later 60s
        release 3 letter=u; moved 3 {released}; later 60s; moved 4 0; later 480s; moved 2 {met}"""
    play(story, settings=f"{PLAIN}set queue batch age_from={age_from}\n", pes=1, length=600)


@pytest.mark.parametrize("age_from", ["eligible", "submitted"])
def test_a_list_keeps_its_order_whatever_the_setting(age_from):
    centre = Centre(f"{PLAIN}set queue batch age_from={age_from}\n", pes=1, length=600)
    centre.submit("ben")
    answer = centre.hand_in("anne held name=a", "anne name=b", "anne name=c")
    seqs = [int(each.partition(".")[0]) for each in answer["ids"]]
    centre.later(seconds=60)
    centre.ask(cm.ReleaseRequests((centre.id(seqs[0]),), "u"))
    centre.later(hours=2)
    assert centre.starts()[1:] == seqs


def test_an_old_journal_gives_the_dates_that_it_gave_then():
    """Events from before `age_from` have no age, so a replay leaves the date as it is."""
    centre = Centre(PLAIN, pes=1)
    centre.submit("ben")
    held = centre.submit("anne held")[0]
    date = centre.request(held).date_in_queue
    centre.later(seconds=60)
    centre.engine.note(ev.Released((held,), "u", "anne"), centre.sim.now)
    assert centre.request(held).date_in_queue == date
