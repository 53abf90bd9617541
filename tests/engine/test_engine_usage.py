"""Use: corrected by hand, charged by PE time, expected by best guesses; caps that time alone opens, limits
that are too long, and contracts."""

from math import log

import pytest
from engine.harness import ANNE, MAX, PLAIN, Centre
from engine.story import Story, play
from engine.test_engine_look_ahead import ForecastStory

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR
from nqspy.model.requests import Used
from nqspy.store.journal import SqliteJournal

GROUPS = f"""{PLAIN}
create group ymp share=80
create group d1 parent=ymp share=3 members=(anne, eva)
create group d2 parent=ymp share=1 members=(ben)
create group d3 share=20 members=(dora)
"""


class UseStory(Story):
    """A test with accounts in minutes: of d1 anne has used 30 and eva 10, of d2 ben 20."""

    def __init__(self, centre: Centre) -> None:
        super().__init__(centre)
        centre.submit("anne", "eva", "ben")
        centre.later(minutes=1)

    def use(self, words: str) -> None:
        """Check the minutes of accounts of groups (``g:d1=40``) and users (``u:d1:anne=30``)."""
        wanted = {name: float(minutes) for name, minutes in (each.split("=") for each in words.split())}
        assert {name: use(self.centre, name) / 60_000 for name in wanted} == pytest.approx(wanted, rel=1e-3)


def use(centre, key):
    site = centre.site
    account = site.accounts.get(key)
    return account.at_time(centre.sim.now, site.settings.usage.half_life) if account else 0.0


STORIES = {
    "it is set as of now, and its users are scaled with it": """later 24h
        qmgr set usage of group d1 40min by max; use g:d1=40 u:d1:anne=30 u:d1:eva=10 g:d2=10
        events usage_corrected 1; later 24h; use g:d1=20""",
    "it is changed by an amount and never falls below 0": """qmgr set usage of group d2 +5min by max
        use g:d2=25; qmgr set usage of group d2 = -10min; use u:d2:ben=15; qmgr set usage of group d2 -3h
        use g:d2=0 u:d2:ben=0""",
    "of a group with others below it it is corrected as a whole": """qmgr set usage of group ymp 30min by max
        use g:d1=20 g:d2=10 u:d1:anne=15""",
    "of a group that has none it is nobody's in particular": """qmgr set usage of group d3 2h
        qmgr set usage of group default 1h; use g:d3=120 g:default=60 u:d3:dora=0""",
    "the next start is decided by it where the rule looks at use": """
        qmgr set machine pes=1 | set sched_factor share 20 time 1 | set global share_rule=decayed
        submit dora, ben, anne; qmgr set usage of group d1 1min | set usage of group d2 90h; later 1m
        starts 1 2 3 4 6; state 5 queued""",
    # 50 % of 4 PEs and 1 h: 2 h / ln 2. Twice that is forgotten to the half in an hour.
    "a cap opens when enough is forgotten though nothing else happens": """
        qmgr set group d1 limit=50% | set usage half_life=1h | set usage of group d1 20774s; submit anne
        state 4 queued; why 4 LIMIT group d1; later 59m; state 4 queued; later 2m; starts 1 2 3 4""",
}


def lengths(request):
    """Run a request one minute, in which some use the time of several CPUs."""
    return Run(wall=60_000, cpu={"anne": 30, "eva": 10, "ben": 20}.get(request.owner, 1) * 60_000)


@pytest.mark.parametrize("title", STORIES)
def test_use(title):
    story = UseStory(Centre(GROUPS, pes=4, lengths=lengths))
    story.play(STORIES[title])
    story.centre.is_sound()


def test_a_correction_says_and_journals_what_it_was():
    centre = Centre(GROUPS)
    centre.qmgr("set usage of group d1 30min")
    answer = centre.ask(centre.command("set usage of group d1 40min"), MAX)
    assert "40 min, was 30 min" in answer["text"]
    event = centre.events(ev.UsageCorrected)[-1]
    assert (event.group, event.former, event.value, event.who) == ("d1", 1_800_000, 2_400_000, "max")
    for nonsense, code in (
        (cm.CorrectUsage("d9", HOUR), "unknown_group"),
        (cm.CorrectUsage("d1", -5), "bad_value"),
        (cm.CorrectUsage("d1", 2**70, relative=True), "bad_value"),
    ):
        assert centre.refused(nonsense).code == code


@pytest.mark.parametrize("charge", ["cpu", "pe_wall"])
def test_a_lone_request_of_nine_hours_counts_as_it_accrued_however_rarely_passes_act(charge):
    centre = Centre(GROUPS + f"set usage charge={charge}\n", pes=4, length=9 * 3600)
    centre.submit("anne")
    centre.later(hours=9)
    exact = DAY / log(2) * (1 - 2 ** (-9 / 24))
    assert use(centre, "g:d1") == pytest.approx(exact, rel=0.01)
    assert use(centre, "u:d1:anne") == pytest.approx(exact, rel=0.01)
    centre.is_sound()


def test_wall_time_goes_on_between_samples_and_stands_still_while_suspended():
    centre = Centre(length=3_600)
    [seq] = centre.submit("anne")

    def wall() -> float:
        return centre.request(seq).used_until(centre.sim.now, centre.engine.samples.get(seq)).wall / 60_000

    found = []
    for minutes, command in (
        (10, cm.SuspendRequests((str(seq),))),
        (30, cm.SuspendRequests((str(seq),), resume=True)),
        (5, cm.SuspendRequests((str(seq),))),
        (7, cm.SuspendRequests((str(seq),), resume=True)),
    ):
        centre.later(minutes=minutes)
        found.append(wall())
        centre.ask(command)
    assert found == [10, 10, 15, 15]
    charged = centre.request(seq).run.charged
    centre.sim.restart()
    centre.later(minutes=1)
    assert wall() == 16
    assert centre.request(seq).run.charged == charged
    assert centre.request(seq).used_until(centre.sim.now, Used(1, 10**9, 2)) == Used(1, 10**9, 2)
    centre.is_sound()
    centre.later(minutes=44)
    assert centre.end_of(seq).used.wall == 3_600_000


# ---------------------------------------------------------------- best guesses
GUESSES = {
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


@pytest.mark.parametrize("title", GUESSES)
def test_guesses(title):
    ForecastStory(Centre()).play(GUESSES[title])


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
    ForecastStory(centre).play("probably 5 1200")  # half of her guess


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


def test_requests_that_failed_or_sometimes_run_long_are_not_reported():
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
"""Lines of a site where three of four PEs are held for ten minutes, and a wide request waits for all."""
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
