"""Best guesses, what is remembered of them, and what owners are told of their wall limits."""

import pytest
from engine.harness import ANNE, PLAIN, Centre
from engine.story import play
from engine.test_engine_look_ahead import OutlookStory

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.store.journal import SqliteJournal

STORIES = {
    "who waits for one with a best guess is told by it": """site pes=1 length=300
        submit anne wall=1:00:00 guess=5:00, ben wall=60; probably 2 300; latest 2 3600""",
    "a guess is altered while it waits and while it runs": """site pes=1 length=1200
        submit anne wall=1:00:00 guess=5:00, ben wall=60; later 4m; probably 2 60
        modify 1 ask.best_guess=1200000 by anne; probably 2 960; modify 1 ask.best_guess=null by anne
        probably 2 3360; modify 1 ask.best_guess=3600001 by anne -> 1:bad_value
        modify 1 ask.best_guess=60000 by ben -> 1:not_permitted; has 1 spec.ask.best_guess=null""",
    "what is no guess": """refuse anne guess=0 -> bad_guess; refuse anne guess=unlimited -> bad_guess
        refuse anne wall=10 guess=11 -> guess_above_limit""",
}


@pytest.mark.parametrize("title", STORIES)
def test_guesses(title):
    OutlookStory(Centre()).play(STORIES[title])


def test_guesses_are_measured_by_how_they_came_true_and_that_outlasts_a_restart(tmp_path):
    journal = SqliteJournal.open(tmp_path / "nqspy.db")
    centre = Centre(pes=1, journal=journal, lengths=lambda r: Run((r.spec.ask.best_guess or 0) // 2))
    centre.submit(*[f"anne wall=1:00:00 guess={n}:00" for n in (10, 20, 30)])
    centre.later(hours=1)
    assert [run.guess for run in centre.site.lifetimes.known["anne", "STDIN", 1].runs] == [500, 500, 500]
    known = centre.site.lifetimes
    centre.sim.restart()
    assert centre.site.lifetimes == known
    centre.submit("anne wall=1:00:00 guess=40:00", "ben wall=60")
    OutlookStory(centre).play("probably 5 1200")  # half of what she guesses


def texts(centre):
    return [notice.text for notice in centre.sim.notices]


def test_the_mail_at_the_end_tells_of_a_limit_far_too_long():
    centre = Centre(length=60)
    centre.submit("anne mail=end wall=10:00:00", "ben mail=end wall=5:00", "cleo wall=10:00:00")
    centre.later(minutes=5)
    anne, ben = texts(centre)
    assert "wall limit" in anne
    assert "wall limit" not in ben
    centre.qmgr("set limit_hint off")
    centre.submit("anne mail=end wall=10:00:00")
    centre.later(minutes=2)
    assert "wall limit" not in texts(centre)[-1]


def test_who_failed_or_runs_long_now_and_then_is_told_nothing():
    walls = iter((3601, 60))
    centre = Centre(pes=1, lengths=lambda r: Run(next(walls) * 1000))
    centre.submit(*["anne mail=end wall=10:00:00"] * 2)
    centre.later(hours=2)
    assert len(texts(centre)) == 2
    assert not any("wall limit" in text for text in texts(centre)), "one of them needed an hour"
    other = Centre(length=60)
    other.submit("anne mail=end wall=10:00:00")
    other.ask(cm.Delete(("1",), signal=9), ANNE)
    other.later(minutes=2)
    assert not any("wall limit" in text for text in texts(other))


# ---------------------------------------------------------------- requests with a contract, which fill holes

FILLING = PLAIN + "set queue batch order=fcfs reserve=1 backfill=contract\n"

HELD = "submit anne pes=3 wall=10:00, ben pes=4 wall=20:00"
"""Three of four PEs are held for ten minutes; a wide request waits for all."""
CONTRACTS = {
    "ended where its hole ends, and the reservation behind it is kept": """submit cleo wall=60:00 contract
        later 9m; state 3 running; later 1m; end 3 contract; ran 3 600; state 2 running""",
    "suspended it is ended there too": """submit cleo wall=60:00 contract; later 3m; suspend 3; later 6m
        state 3 suspended; later 1m; end 3 contract""",
    "given and taken back while it waits": """submit cleo wall=60:00; state 3 queued
        qmgr modify request 3 contract=on; state 3 running; submit dora pes=2 wall=60:00 contract
        qmgr modify request 4 contract=off; has 4 spec.contract=false""",
}


@pytest.mark.parametrize("title", CONTRACTS)
def test_contracts(title):
    play(f"{HELD}; {CONTRACTS[title]}", settings=FILLING, pes=4, lengths=lambda r: Run(wall=3_600_000))
