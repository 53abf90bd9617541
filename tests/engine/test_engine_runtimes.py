"""Best guesses, what is remembered of them, and what owners are told of their wall limits."""

import pytest
from engine.harness import ANNE, BEN, Centre, item

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.store.journal import SqliteJournal


def begins_in(centre, seq):
    """When it is told to start, probably; in s."""
    found = centre.outlooks(seq)[seq].probably
    return (found.start - centre.sim.now) / 1000


def alter(centre, values, by=ANNE):
    return centre.ask(cm.ModifyRequest(("1",), values), by)


def test_who_waits_for_one_with_a_best_guess_is_told_by_it():
    centre = Centre(pes=1, length=300)
    centre.submit("anne wall=1:00:00 guess=5:00", "ben wall=60")
    assert begins_in(centre, 2) == 300
    assert centre.outlooks(2)[2].latest.start == centre.sim.now + 3_600_000, "at the latest by the limit"


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
    assert begins_in(centre, 5) == 1200, "half of what she guesses"


@pytest.mark.parametrize(
    ("line", "said"),
    [("anne guess=0", "such as best_guess=1:30:00"), ("anne guess=unlimited", "such as best_guess=1:30:00"),
     ("anne wall=10 guess=11", "a best guess of 11 lies above the wall limit of 10")],
)  # fmt: skip
def test_what_is_no_guess_is_refused(line, said):
    centre = Centre()
    assert said in str(centre.refused(cm.Submit((item(line, centre.sim.now),)), ANNE))


def test_a_guess_is_altered_while_it_waits_and_while_it_runs():
    centre = Centre(pes=1, length=1200)
    centre.submit("anne wall=1:00:00 guess=5:00", "ben wall=60")
    centre.later(minutes=4)
    assert begins_in(centre, 2) == 60
    assert alter(centre, {"ask/best_guess": 1_200_000})["done"] == ["1.sim"]
    assert begins_in(centre, 2) == 960
    assert alter(centre, {"ask/best_guess": None})["done"] == ["1.sim"]
    assert centre.request(1).spec.ask.best_guess is None
    assert begins_in(centre, 2) == 3360, "by its limit again"
    [failed] = alter(centre, {"ask/best_guess": 3_600_001})["failed"]
    assert "lies above the wall limit of 1:00:00" in failed["text"]
    [failed] = alter(centre, {"ask/best_guess": 60_000}, BEN)["failed"]
    assert "only its owner" in failed["text"]
    assert centre.request(1).spec.ask.best_guess is None
    centre.is_sound()


# ---------------------------------------------------------------- who asks for too much


def texts(centre):
    return [notice.text for notice in centre.sim.notices]


def test_the_mail_at_the_end_tells_of_a_limit_far_too_long():
    centre = Centre(length=60)
    centre.submit("anne mail=end wall=10:00:00", "ben mail=end wall=5:00", "cleo wall=10:00:00")
    centre.later(minutes=5)
    anne, ben = texts(centre)
    assert "exit status 0. Of its wall limit: the one like it ran 1:00 at most, of a wall limit of" in anne
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
