"""Backups while the daemon works, restore, rotation by the site's clock, and what the doctor says of it."""

import gzip
import json
import os
import shutil
import subprocess
import threading

import pytest
from daemon import everybody
from daemon.live import until

from nqspy.daemon.home import Home
from nqspy.daemon.tools import examine
from nqspy.rpc.client import Client
from nqspy.store import copies

MARCH, JULY = "2026-03-02T20:00:00+01:00 x60", "2026-07-20T20:00:00+02:00 x60"


def backups(live):
    return copies.listed(live.home / "nqs.db")


def finding(live, what):
    return [(each.state, each.text) for each in examine(Home(live.home)) if each.what == what]


def test_backups_under_load_hold_nobody_up_and_each_is_whole(live):
    live.set("stop queue batch")
    promised, enough = [], threading.Event()

    def submit():
        with Client(live.home) as client:
            while not enough.is_set():
                promised.append(client.submit("true\n", shell="/bin/sh", workdir=live.work).id)

    thread = threading.Thread(target=submit)
    thread.start()
    for number in range(2):
        before, file = len(promised), live.work / f"copy{number}.db"
        live.run("nqspy", "backup", str(file)).ok()
        assert copies.problem(file) is None
        assert len(promised) > before, "submissions went on meanwhile"
    enough.set()
    thread.join()
    assert len(live.client.requests()) == len(promised)
    live.run("nqspy", "backup", str(file)).refused(str(file), "exists")


EXCHANGES = """
import os, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    for name in os.listdir("."):
        try:
            if not os.path.islink(name):
                os.unlink(name)
                os.symlink(sys.argv[2], name)
        except OSError:
            pass
"""


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: somebody else acts")
def test_who_exchanges_names_where_root_puts_a_backup_has_nothing_of_it(live, open_folder):
    precious, theirs = live.work / "precious", open_folder / "theirs"
    precious.write_text("root's")
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    words = [everybody.interpreter(), "-c", EXCHANGES]
    with everybody.begin([*words, str(theirs), str(precious)], stdout=subprocess.PIPE) as somebody:
        try:
            assert somebody.stdout is not None
            somebody.stdout.readline()
            done = [live.run("nqspy", "backup", str(theirs / f"{n}.db")) for n in range(4)]
        finally:
            somebody.kill()
    assert precious.read_text() == "root's"
    assert all(each.status == 0 or "was replaced" in each.err for each in done), done
    assert not list((live.home / "backups").iterdir())


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the home becomes another's")
def test_root_backs_up_somebodys_home_with_his_rights_only(live, open_folder):
    live.stop()
    home = open_folder / "home"
    shutil.copytree(live.home, home, ignore=shutil.ignore_patterns("*.sock"))
    for path in (home, *home.rglob("*")):
        os.chown(path, 65534, 65534)
    precious = live.work / "precious"
    precious.mkdir(mode=0o700)
    (home / "backups").symlink_to(precious)
    assert live.run("nqspy", "backup", "--home", str(home)).status == 1
    assert not list(precious.iterdir())
    (home / "backups").unlink()
    live.run("nqspy", "backup", "--home", str(home)).ok()
    [made] = (home / "backups").iterdir()
    assert {path.stat().st_uid for path in (home / "backups", made)} == {65534}
    live.run("nqspy", "backup", str(live.work / "mine.db"), "--home", str(home)).ok()
    assert (live.work / "mine.db").stat().st_uid == 0
    assert copies.problem(live.work / "mine.db") is None


@pytest.mark.slow
def test_backups_are_made_by_the_sites_clock_the_last_few_kept_and_an_alarm_says_where_they_fail(make_live):
    live = make_live().site().start("--clock", "2026-03-02T20:00:00+01:00 x100000")
    live.set("set backup every=12h keep=2")
    until(lambda: len(backups(live)) == 2, "two backups")
    first = backups(live)[0]
    until(lambda: backups(live)[0] != first, "the oldest goes when there is a third")
    assert len(backups(live)) <= 3
    [(state, text)] = finding(live, "backups")
    assert "passes integrity_check" in text, state
    live.set("set backup every=off")
    assert "set backup every=off" in live.qmgr("snap").out
    until(lambda: not list((live.home / "backups").glob("*.new")), "none is under way")
    (live.home / "backups").rename(live.home / "kept")
    (live.home / "backups").write_text("in the way")
    live.set("set backup every=1h")
    until(lambda: live.events("alarm"), "an alarm")
    assert live.events("alarm")[0]["who"] == "backup"
    assert live.ended(live.submit("true"))["exit_status"] == 0
    live.run("nqspy", "backup").refused("backup")


# ---------------------------------------------------------------- restore
def test_nothing_runs_twice_and_no_number_is_given_twice_after_a_restore(live):
    """Before the backup: one waits, one runs. After it: the waiting one runs, and another is submitted."""
    live.set("set machine pes=4")
    gate = live.work / "gate"
    script = f"echo $QSUB_REQID >> ran; while [ ! -e {gate} ]; do sleep 0.02; done"
    runs = live.submit(script)
    live.running(runs)
    waits = live.submit(script, held=True)
    rests = live.submit("true", held=True)
    live.run("nqspy", "backup").ok()
    [copy] = backups(live)
    live.run("qrls", waits).ok()
    live.running(waits)
    later = live.submit(script)
    live.running(later)
    lost = live.submit("true", held=True)
    live.run("nqspy", "restore", str(copy.path)).refused("an nqsd serves", "nqsd stop")
    live.stop()
    done = live.run("nqspy", "restore", str(copy.path)).ok()
    assert len(done.lines) == 1
    assert "before-restore-" in done.out
    assert "events after number" in done.out
    live.start()
    live.set("set machine pes=4")
    assert live.job(runs)["state"] == "running", "adopted"
    assert live.job(rests)["held"] == ["u"]
    found = live.job(waits)
    assert (found["state"], found["attempt"]) == ("held", 1)
    assert "o" in live.why(waits)["held"]
    assert later not in [each.id for each in live.client.requests()]
    [alarm] = [each for each in live.events("alarm") if each["who"] == "restore"]
    assert later in alarm["text"]
    assert waits in alarm["text"]
    assert lost in alarm["text"], "it waited, and is to be submitted again"
    [restored] = live.events("restored")
    new = live.submit("true")
    assert int(new.split(".")[0]) > int(lost.split(".")[0])
    assert live.ended(new)["exit_status"] == 0
    gate.touch()
    assert live.ended(runs)["exit_status"] == 0
    assert sorted((live.work / "ran").read_text().split()) == sorted([runs, waits, later])
    live.run("qrls", "-h", "uo", waits).ok()
    ended = live.ended(waits)
    assert (ended["exit_status"], ended["attempt"]) == (0, 2)
    live.restart()
    assert len(live.events("restored")) == 1, "told once"
    assert restored["next_seq"] == int(lost.split(".")[0]) + 1


def test_a_damaged_database_names_the_backup_and_the_command_that_bring_it_back(live):
    id = live.submit("true")
    live.ended(id)
    live.run("nqspy", "backup").ok()
    live.stop()
    live.run("nqspy", "restore", "nowhere.db").refused("nowhere.db")
    live.run("nqspy", "restore", str(live.write("text", "no database" * 99))).refused("cannot be restored")
    live.run("nqspy", "restore", "x", "--home", str(live.work / "none")).refused("does not exist")
    (live.home / "nqs.db").write_bytes(b"")
    refused = live.run("nqsd", "start").refused("damaged", "nqspy restore", f"--home {live.home}")
    assert (live.home / "nqs.db").read_bytes() == b""
    words = refused.err.partition("nqspy restore ")[2].split()
    live.run("nqspy", "restore", *words).ok()
    live.start()
    assert live.job(id)["state"] == "ended"
    assert live.job(live.submit("true"))["seq"] == live.job(id)["seq"] + 1
    assert [state for state, _ in finding(live, "backups")] == ["ok"]
    [file] = (live.home / "backups").glob("nqs-*.db")
    file.rename(file.with_name("nqs-20990101T000000Z.db"))
    assert [state for state, _ in finding(live, "backups")] == ["bad"], "of the future: a clock was wrong"
    live.stop()
    (live.home / "nqs.db").unlink()
    live.run("nqsd", "start").refused("missing", "nqspy restore")


# ---------------------------------------------------------------- rotation
def test_old_history_moves_into_files_and_everybody_finds_it(make_live):
    live = make_live().site().start("--clock", MARCH)
    old = [live.submit(f"exit {n}") for n in range(3)]
    for id in old:
        live.ended(id)
    stays = live.submit("true", held=True)
    before = live.run("nqspy", "events", "--json").ok().lines
    report = live.run("nqspy", "report", "night", "--date", "2026-03-02", "--json").ok().data
    live.stop()
    live.start("--clock", JULY)
    folder = live.home / "history"
    until(
        lambda: folder.exists() and len(list(folder.glob("*.gz"))) >= 3 and "moved into" in live.log, "files"
    )
    assert live.run("nqspy", "events", "--json").ok().lines[: len(before)] == before
    rows = live.run("qstat", "--json", "--ended", *old).ok().data
    assert [(row["id"], row["exit_status"]) for row in rows] == [(id, n) for n, id in enumerate(old)]
    assert {row["id"] for row in live.run("qstat", "--json", "--ended").ok().data} == set(old)
    assert live.why(old[2])["exit_status"] == 2
    assert live.job(stays)["state"] == "held"
    again = live.run("nqspy", "report", "night", "--date", "2026-03-02", "--json").ok().data
    assert again["groups"] == report["groups"]
    [(state, text)] = finding(live, "history")
    assert state == "ok"
    assert "files" in text
    live.set("set history keep=unlimited")
    assert "set history keep=unlimited" in live.qmgr("snap").out
    assert live.qmgr("set history keep=1d").status == 1
    # The line of the first submission is in a file, and no longer in the database.
    [events] = folder.glob("events-000000001-*.gz")
    assert any(
        json.loads(line).get("kind") == "submitted"
        for line in gzip.decompress(events.read_bytes()).splitlines()
    )


def test_reports_of_nights_long_ago_are_removed_as_the_site_says(make_live):
    live = make_live().site()
    nights = live.home / "reports"
    for name in ("2024-12-31", "2025-01-01", "2026-11-01", "notes"):
        (nights / name).mkdir(parents=True)
        (nights / name / "night.json").write_text("{}")
    live.start("--clock", "2026-11-21T12:00:00+00:00 x1")
    until(lambda: not (nights / "2025-01-01").exists(), "reports older than a year to go")
    assert sorted(folder.name for folder in nights.iterdir()) == ["2026-11-01", "notes"]
    live.set("set history reports=1d")
    assert "set history reports=24:00:00" in live.qmgr("snap").ok().out
    live.set("set history reports=unlimited")
    assert (nights / "2026-11-01").is_dir(), "the last one stays however old it is"
