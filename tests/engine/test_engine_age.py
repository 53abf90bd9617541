"""From when a request's age counts, and that a burst chained by dependencies does not by-pass machine_gun."""

import pytest
from engine.harness import PLAIN, Centre, exits_of
from engine.story import play

from nqspy.model import commands as cm
from nqspy.model import events as ev

SUBMITTED = f"{PLAIN}set queue batch age_from=submitted\n"


def others_wait(centre, chained):
    """Mean wait in minutes of twelve people who come, one each ten minutes, while a burst of 60 requests of
    anne's waits that run for five minutes each."""
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
    """Events of the time before `age_from` say nothing of age: replayed, they leave the date alone."""
    centre = Centre(PLAIN, pes=1)
    centre.submit("ben")
    held = centre.submit("anne held")[0]
    date = centre.request(held).date_in_queue
    centre.later(seconds=60)
    centre.engine.note(ev.Released((held,), "u", "anne"), centre.sim.now)
    assert centre.request(held).date_in_queue == date
