"""``qmgr verify --replay`` and ``qmgr plan``: what a file would have changed in the nights that were."""

import os
from functools import partial

import pytest
from daemon import everybody
from daemon.live import ONE_QUEUE, Live

from nqspy.cli import past

ONE_PE = f"{ONE_QUEUE}set machine pes=1\ncreate group d1 share=60\ncreate group d2 share=40\n"
NOT_AGAIN = "the last night is not replayed"
WIDER = "set machine pes=3\nset sched_factor time 5\n"


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Return a site after three requests that ran one after the other, for two departments."""
    folder = tmp_path_factory.mktemp("past")
    live = Live(folder / "home", folder / "work").site(ONE_PE).start()
    ids = [
        live.submit("sleep 1.3", name=f"n{n}", account=group) for n, group in enumerate(("d1", "d2", "d2"))
    ]
    for each in ids:
        live.ended(each)
    live.write("wider.qmgr", WIDER)
    yield live
    live.close()


def happened(live):
    return [each["n"] for each in live.events()]


def test_a_file_that_is_verified_tells_of_the_last_nights_under_it(night):
    before = happened(night), night.qmgr("show all").out
    told = night.run("qmgr", "verify", "--replay", "7d", "wider.qmgr").ok()
    assert "every start within 1 s of the journal\n" in told.out
    assert "with wider.qmgr: " in told.out
    assert "\nstarts: 2 earlier, 0 later, 1 the same\n" in told.out
    rows = {row[0]: row[1:4] for row in (line.split() for line in told.lines) if row}
    assert (rows["d1"], rows["d2"]) == (["0", "0", "1"], ["2", "0", "0"])
    assert "why: without the change: needs 1 PE" in told.out.replace("\n    ", " ")
    assert told.err == ""
    data = night.run("qmgr", "verify", "--json", "--replay", "1d", "wider.qmgr").ok().out.splitlines()[-1]
    assert '"starts": {"earlier": 2, "later": 0, "same": 1' in data
    assert (happened(night), night.qmgr("show all").out) == before


def test_a_file_that_is_wrong_or_asks_more_than_settings_is_one_line(night):
    night.write("wrong.qmgr", "set queue batch share_limt=3\n")
    done = night.run("qmgr", "verify", "--replay", "7d", "wrong.qmgr")
    assert (done.status, done.out) == (1, "")
    assert "wrong.qmgr, line 1" in done.err
    night.write("acts.qmgr", "set machine pes=3\nstop queue batch\nhold request 1\n")
    done = night.run("qmgr", "verify", "--replay", "7d", "acts.qmgr").refused(
        "'hold request' is not a setting"
    )
    soon = night.run("qmgr", "verify", "--replay", "soon", "wider.qmgr").refused("'soon'")
    assert soon.err.startswith("qmgr: "), "who was called says it"
    night.run("qmgr", "apply", "--replay", "7d", "wider.qmgr").refused("verify FILE or plan FILE")
    night.run("qmgr", "verify", "--replay", "7d", "-").refused("verify FILE or plan FILE")


def test_a_plan_closes_with_the_last_night_in_a_few_lines(night):
    plan = night.run("qmgr", "plan", "wider.qmgr").ok().out
    changes, _, last = plan.partition("\n\n")
    assert "machine pes: 1 -> 3" in changes
    assert "\nstarts: 2 earlier, 0 later, 1 the same\n" in last
    assert "REQUEST" not in last
    assert "REQUEST" in night.run("qmgr", "plan", "--replay", "7d", "wider.qmgr").ok().out
    assert night.run("qmgr", "plan", "--replay", "no", "wider.qmgr").ok().out == changes + "\n"
    assert "replayed" not in night.run("qmgr", "--json", "plan", "wider.qmgr").ok().out
    night.write("acts.qmgr", "stop queue batch\nhold request 9\n")
    plan = night.run("qmgr", "plan", "acts.qmgr").out
    assert plan.endswith(
        f"\n{NOT_AGAIN}: acts.qmgr: 'hold request' is not a setting; a replay changes settings only\n"
    )


def test_a_plan_does_not_wait_long_for_the_last_night(night, monkeypatch, capfd):
    monkeypatch.setattr(past, "WITHIN", 0.05)
    past.close_plan(str(night.home), str(night.work / "wider.qmgr"), "24h")
    why = "it takes more than 0.05 s; use --replay 24h to wait for it"
    assert capfd.readouterr().out == f"\n{NOT_AGAIN}: {why}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs people of other names")
def test_who_may_not_read_the_journal_is_told_so_in_one_line(open_folder):
    live = Live(open_folder / "home", open_folder / "work")
    live.site(ONE_PE + "set managers = (nobody:m)\n").start()
    try:
        live.ended(live.submit("true"))
        file = str(live.write("wider.qmgr", WIDER))
        qmgr = partial(everybody.run_nqspy, live, open_folder, "cli.qmgr")
        qmgr("verify", "--replay", "7d", file).refused(past.OWNERS)
        plan = qmgr("plan", file).ok()
        assert plan.out.endswith(f"\n{NOT_AGAIN}: {past.OWNERS}\n")
        assert plan.err == ""
    finally:
        live.close()
