"""Use corrected by hand, caps that open by time alone, and use charged by PE time, in the engine."""

from math import log

import pytest
from engine.harness import MAX, PLAIN, ROOT, Centre

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR
from nqspy.model.requests import Used
from nqspy.shares import FairShare, balance_of

GROUPS = (
    PLAIN
    + """
create group ymp share=80
create group d1 parent=ymp share=3 members=(anne, eva)
create group d2 parent=ymp share=1 members=(ben)
create group d3 share=20 members=(dora)
"""
)


def used_centre():
    """d1 has used 30 min by anne and 10 by eva, d2 20 by ben, all within the last minute."""
    minutes = {"anne": 30, "eva": 10, "ben": 20}
    centre = Centre(GROUPS, pes=4, lengths=lambda r: Run(wall=60_000, cpu=minutes.get(r.owner, 1) * 60_000))
    centre.submit("anne", "eva", "ben")
    centre.later(minutes=1)
    return centre


def use(centre, key):
    site = centre.site
    account = site.accounts.get(key)
    return account.at_time(centre.sim.now, site.settings.usage.half_life) if account else 0.0


def test_use_is_set_as_of_now_and_its_users_are_scaled_with_it():
    centre = used_centre()
    centre.later(hours=24)
    answer = centre.ask(centre.command("set usage of group d1 40min"), MAX)
    assert answer["text"] == "use of group d1: 40:00, was 19:59.711"
    assert use(centre, "g:d1") == pytest.approx(40 * 60_000)
    assert use(centre, "u:d1:anne") == pytest.approx(30 * 60_000)
    assert use(centre, "u:d1:eva") == pytest.approx(10 * 60_000)
    assert use(centre, "g:d2") == pytest.approx(10 * 60_000, rel=1e-3), "nobody else's changes"
    [event] = centre.events(ev.UsageCorrected)
    assert (event.group, event.former, event.value, event.who) == ("d1", 1_199_711, 40 * 60_000, "max")
    centre.later(hours=24)
    assert use(centre, "g:d1") == pytest.approx(20 * 60_000), "it is forgotten like any other use"
    centre.is_sound()


def test_use_is_changed_by_an_amount_and_never_falls_below_0():
    centre = used_centre()
    centre.qmgr("set usage of group d2 +5min", by=MAX)
    assert use(centre, "g:d2") == pytest.approx(25 * 60_000, rel=1e-3)
    centre.qmgr("set usage of group d2 = -10min", by=ROOT)
    assert use(centre, "u:d2:ben") == pytest.approx(15 * 60_000, rel=1e-3)
    centre.qmgr("set usage of group d2 -3h", by=ROOT)
    assert use(centre, "g:d2") == use(centre, "u:d2:ben") == 0
    centre.is_sound()


def test_a_group_with_others_below_it_is_corrected_as_a_whole():
    centre = used_centre()
    centre.qmgr("set usage of group ymp 30min", by=MAX)
    shares = {key: use(centre, key) / 60_000 for key in ("g:d1", "g:d2", "u:d1:anne")}
    assert shares == pytest.approx({"g:d1": 20, "g:d2": 10, "u:d1:anne": 15})
    ledger = FairShare(centre.site, centre.sim.now, {})
    assert ledger.use("ymp") == pytest.approx(30 * 60_000)
    centre.is_sound()


def test_use_of_a_group_that_has_none_is_nobodys_in_particular():
    centre = used_centre()
    centre.qmgr("set usage of group d3 2h").qmgr("set usage of group default 1h")
    assert use(centre, "g:d3") == 2 * HOUR
    assert use(centre, "g:default") == HOUR
    assert [key for key in centre.site.accounts if key.startswith("u:d3")] == []
    centre.is_sound()


def test_the_next_start_is_decided_by_the_corrected_use():
    """Under the rule that looks at use; what is owed under the other is no use."""
    centre = used_centre().qmgr("set machine pes=1\nset sched_factor share 20 time 1\n")
    centre.qmgr("set global share_rule=decayed")
    running, modest, greedy = centre.submit("dora", "ben", "anne")
    centre.qmgr("set usage of group d1 1min\nset usage of group d2 90h", by=MAX)
    centre.later(minutes=1)
    assert centre.starts()[-2:] == [running, greedy]
    assert centre.state(modest) == "queued"


def test_a_group_that_does_not_exist_and_nonsense_are_refused():
    centre = Centre(GROUPS)
    assert str(centre.refused(cm.CorrectUsage("d9", HOUR))) == (
        "there is no group d9; groups: ymp, d1, d2, d3, default"
    )
    assert "at least 0" in str(centre.refused(cm.CorrectUsage("d1", -5)))
    assert "at most" in str(centre.refused(cm.CorrectUsage("d1", 2**70, relative=True)))


# ---------------------------------------------------------------- caps


def test_a_capped_group_is_started_again_when_enough_is_forgotten_though_nothing_else_happens():
    centre = Centre(GROUPS + "set group d1 limit=50%\nset usage half_life=1h\n", pes=2, length=60)
    # 50 % of 2 PEs and 1 h: 1 h / ln 2 = 86.6 min. Twice that is forgotten to the half in an hour.
    centre.qmgr("set usage of group d1 10387s")
    [seq] = centre.submit("anne")
    assert centre.state(seq) == "queued"
    reason = centre.engine.plan.reasons.own[seq]
    assert (reason.code, reason.who) == ("LIMIT", "group d1")
    centre.later(minutes=59)
    assert centre.state(seq) == "queued"
    centre.later(minutes=2)
    assert centre.state(seq) in ("running", "ended")
    assert centre.starts() == [seq]
    centre.is_sound()


# ---------------------------------------------------------------- what is charged


@pytest.mark.parametrize("charge", ["cpu", "pe_wall"])
def test_a_lone_request_of_nine_hours_counts_as_it_accrued_however_rarely_passes_act(charge):
    centre = Centre(GROUPS + f"set usage charge={charge}\n", pes=4, length=9 * 3600)
    centre.submit("anne")
    centre.later(hours=9)
    exact = DAY / log(2) * (1 - 2 ** (-9 / 24))
    assert use(centre, "g:d1") == pytest.approx(exact, rel=0.01)
    assert use(centre, "u:d1:anne") == pytest.approx(exact, rel=0.01)
    centre.is_sound()


def test_what_is_owed_outlives_a_restart_and_the_journal_gives_it_again():
    centre = Centre(GROUPS + "set sched_factor share 20 time 1\n", pes=2, length=600)
    for _ in range(6):
        centre.submit("anne", "anne", "ben")
        centre.later(minutes=7)
    before = {key: account.entry for key, account in centre.site.accounts.items()}
    assert any(entry.present for entry in before.values())
    assert any(entry.ready for entry in before.values())
    assert {key: account.entry for key, account in centre.journal.load().accounts.items()} == before
    centre.sim.restart()
    assert balance_of(centre.site).startable() == {"d1:anne": 2, "d2:ben": 2}
    centre.later(hours=2)
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
