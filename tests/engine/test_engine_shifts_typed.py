"""A shift that is typed begins at its next firing; one of a file is in force when its latest one says so."""

import pytest
from engine.harness import PLAIN, ROOT, Centre, moment
from engine.story import Story
from msgspec.structs import replace

DAY = 'define shift day when=("30 8 * * *") | set run_limit=1 batch | end'
NIGHT = 'define shift night when=("0 18 * * *") | set run_limit=5 batch | end'
LATE = NIGHT.replace("18", "23")


class TypedStory(Story):
    """A story in which commands are typed at a terminal, or stand in a file."""

    def typed(self, words: str, expected: str = "") -> None:
        """Type one command, and check how the answer begins; without it there is none."""
        command = self.centre.command(words.replace("|", "\n"))
        told = str(self.centre.ask(replace(command, live=True), ROOT).get("text", ""))
        assert told.startswith(expected) if expected else not told, told
        self.later("1s")

    def file(self, words: str) -> None:
        """Have a command stand in a file of ``queues.d``."""
        self.centre.ask(replace(self.centre.command(words.replace("|", "\n")), upsert=True), ROOT)
        self.later("1s")


BEGINS = "-> shift night begins at its next firing,"
STORIES = {
    "it begins at its next firing and says so": f"""typed {NIGHT} {BEGINS} tomorrow 18:00; shift day 1
        restart
        later 3h; shift day 1; qmgr set shift automatic by olga; shift day 1
        until 2026-03-03T18:00:00+01:00; shift night 5""",
    "with the word now the firing that is past counts": f"""typed {NIGHT.replace(") |", ") now |", 1)}
        shift night 5""",
    "from a file the firing that is past counts": f"qmgr {NIGHT}; shift night 5",
    "a file that alters it says what holds": f"typed {NIGHT} {BEGINS}; file {NIGHT}; shift night 5",
    "other times count from now on": f"""qmgr {LATE}
        typed set shift night when=("0 19 * * *", "0 23 * * *") {BEGINS} today 23:00; shift day 1
        until 2026-03-03T19:00:00+01:00; shift night 5""",
    "times that it had already count as before": f"""qmgr {NIGHT}; shift night 5
        typed set shift night when=("0 1 * * *", "0 18 * * *") {BEGINS}; qmgr switch shift day by olga
        qmgr set shift automatic by olga; shift night 5""",
    "other times with the word now count at once": f"""qmgr {LATE}
        typed set shift night when=("0 19 * * *") now; shift night 5""",
    "nothing else changes": f"""events shift_changed 1; typed {NIGHT} {BEGINS}
        typed set shift night spill=drain; events shift_changed 1""",
}


@pytest.mark.parametrize("title", STORIES)
def test_typed_shifts(title):
    story = TypedStory(Centre(PLAIN).qmgr(DAY.replace("|", "\n")))
    story.play(STORIES[title])
    story.centre.is_sound()


def test_a_clock_that_was_years_ahead_when_it_was_typed_says_nothing():
    story = TypedStory(Centre(PLAIN, at="2036-03-02T20:00:00+01:00"))
    command = story.centre.command(DAY.replace("|", "\n"))
    story.centre.ask(replace(command, live=True), ROOT)
    story.centre.sim.now = moment("2026-03-02T20:00:00+01:00")
    story.centre.sim.feed([])
    assert story.centre.site.shift.current == "day"
