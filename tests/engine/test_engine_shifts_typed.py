"""A shift that is typed begins at its next firing; one of a file is in force when its latest one says so."""

from engine.harness import OLGA, PLAIN, ROOT, Centre, moment
from msgspec.structs import replace

from nqspy.model import commands as cm
from nqspy.model import events as ev

DAY = """
define shift day when=("30 8 * * *")
  set run_limit=1 batch
end
"""
NIGHT = """
define shift night when=("0 18 * * *"){}
  set run_limit=5 batch
end
"""


def centre(settings: str = PLAIN + DAY) -> Centre:
    return Centre(settings, at="2026-03-02T20:00:00+01:00")


def typed(place: Centre, text: str) -> str:
    """Types one command; what it answers."""
    answer = place.ask(replace(place.command(text), live=True), ROOT)
    place.later(seconds=1)
    return str(answer.get("text", ""))


def in_force(place: Centre) -> tuple[str | None, int | None]:
    return place.site.shift.current, place.site.settings.queues["batch"].run_limit


def test_a_shift_that_is_typed_begins_at_its_next_firing_and_says_so():
    place = centre()
    assert typed(place, NIGHT.format("")) == (
        "shift night begins at its next firing, tomorrow 18:00; "
        "with now behind its times, one that is past counts too\n"
    )
    assert in_force(place) == ("day", 1)
    place.sim.restart()
    place.later(hours=3)
    assert in_force(place) == ("day", 1), "nor after a restart"
    place.ask(cm.AutomaticShift(), OLGA)
    assert in_force(place) == ("day", 1), "nor by the calendar"
    place.until("2026-03-03T18:00:00+01:00")
    assert in_force(place) == ("night", 5)
    place.is_sound()


def test_with_the_word_now_the_firing_that_is_past_counts():
    place = centre()
    assert typed(place, NIGHT.format(" now")) == ""
    assert in_force(place) == ("night", 5)


def test_from_a_file_the_firing_that_is_past_counts():
    place = centre().qmgr(NIGHT.format(""))
    assert in_force(place) == ("night", 5)


def test_what_counts_outlasts_snap_and_files_alike():
    """A file that alters a typed shift says what holds."""
    place = centre()
    typed(place, NIGHT.format(""))
    define = place.command(NIGHT.format(""))
    place.ask(replace(define, upsert=True), ROOT)
    place.later(seconds=1)
    assert in_force(place) == ("night", 5)


def test_other_times_that_are_typed_count_from_now_on():
    place = centre(PLAIN + DAY + NIGHT.replace("18", "23").format(""))
    told = typed(place, 'set shift night when=("0 19 * * *", "0 23 * * *")')
    assert told.startswith("shift night begins at its next firing, today 23:00; ")
    assert in_force(place) == ("day", 1)
    place.until("2026-03-03T19:00:00+01:00")
    assert in_force(place) == ("night", 5)
    place.is_sound()


def test_times_that_a_shift_had_already_count_as_before():
    place = centre(PLAIN + DAY + NIGHT.format(""))
    assert in_force(place) == ("night", 5)
    typed(place, 'set shift night when=("0 1 * * *", "0 18 * * *")')
    assert place.site.settings.shifts["night"].counts.keys() == {"0 1 * * *"}
    place.ask(cm.SwitchShift("day"), OLGA)
    place.ask(cm.AutomaticShift(), OLGA)
    assert in_force(place) == ("night", 5)


def test_other_times_with_the_word_now_count_at_once():
    place = centre(PLAIN + DAY + NIGHT.replace("18", "23").format(""))
    assert typed(place, 'set shift night when=("0 19 * * *") now') == ""
    assert in_force(place) == ("night", 5)


def test_a_clock_that_was_years_ahead_when_it_was_typed_says_nothing():
    place = Centre(PLAIN, at="2036-03-02T20:00:00+01:00")
    typed(place, DAY)
    place.sim.now = moment("2026-03-02T20:00:00+01:00")
    place.sim.feed([])
    assert place.site.shift.current == "day"


def test_nothing_else_than_the_shift_changes_when_one_is_typed():
    place = centre()
    before = len(place.events(ev.ShiftChanged))
    typed(place, NIGHT.format(""))
    typed(place, "set shift night spill=drain")
    assert len(place.events(ev.ShiftChanged)) == before
