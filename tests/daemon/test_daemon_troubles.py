"""What nqsd status and doctor name, that it goes with its cause, and which files are read again for that."""

import os
from dataclasses import replace

import pytest
from daemon import everybody
from daemon.live import Done, shared, until
from daemon.person import submit_as
from small_disk import small_disk

from nqspy.daemon import tools
from nqspy.daemon.home import Home
from nqspy.daemon.tools import examine
from nqspy.daemon.troubles import FolderCache

live = shared
HEAD = "from nqspy.userexit import userexit\n@userexit\n"
FAILS = HEAD + "def {hook}(request):\n    raise RuntimeError('no way')\n"
FINE = HEAD + "def {hook}(request):\n    return None\n"


def alarms(live):
    return live.client.call("status")["alarms"]


GOOD = "create batch_queue more priority=1\n"
BAD = f"{GOOD}set nonsense 3\n"


def test_a_file_of_queues_d_is_named_until_it_is_applied_or_again_what_it_was(live):
    live.accepts_trouble = True
    file = live.home / "queues.d" / "20-more.qmgr"
    file.write_text(BAD)
    assert alarms(live)[0].startswith("queues.d: 20-more.qmgr is new")
    done = live.qmgr("reload queues")
    assert (done.status, "20-more.qmgr, line 2" in done.err) == (1, True)
    [message] = alarms(live)
    assert ("20-more.qmgr, line 2" in message, "\n" in message) == (True, False)
    assert "more" not in live.run("qstat", "-b").out
    file.write_text(GOOD)
    assert live.qmgr("reload queues").ok().out == "applied 20-more.qmgr\n"
    assert alarms(live) == []
    assert "more" in live.run("qstat", "-b").out
    assert live.qmgr("reload queues").ok().out == "no file has changed\n"
    file.write_text(BAD)
    live.restart()
    assert "was not applied" in alarms(live)[0]
    file.write_text(GOOD)
    assert alarms(live) == [], "it is again what is in force"
    file.unlink()
    assert "20-more.qmgr" in alarms(live)[0]
    live.qmgr("reload queues").ok()
    assert alarms(live) == []


@pytest.mark.parametrize("text", ["shift night could not be entered: PE 1 is held by 14.vm", ""])
def test_a_shift_that_cannot_be_entered_is_named_with_the_reason(fresh, text):
    site = fresh.daemon.engine.site
    site.shift = replace(site.shift, failed="night", failed_text=text)
    assert fresh.daemon.alarms() == [text or "shift night could not be entered"]
    site.shift = replace(site.shift, failed=None, failed_text="")
    assert fresh.daemon.alarms() == []


def test_a_changed_exit_is_named_until_it_is_loaded_and_why_that_was_refused(live):
    live.exit("calm", FINE.format(hook="jobend"))
    assert alarms(live)[0].startswith("exits: calm.py is new")
    live.qmgr("reload exits").ok()
    assert alarms(live) == []
    live.exit("calm", "def jobselect(\n")
    assert "calm.py" in alarms(live)[0]
    live.qmgr("reload exits").refused("calm.py, line 1", "stay in force")
    assert "calm.py, line 1" in next(line for line in alarms(live) if "reload exits was refused" in line)
    live.exit("calm", FINE.format(hook="jobend"))
    assert [line for line in alarms(live) if "was refused" in line], "until one succeeds"
    live.qmgr("reload exits").ok()
    assert alarms(live) == []


def test_an_exit_and_a_notice_that_fail_are_named_until_they_are_others(make_live):
    exits = {"bad": FAILS.format(hook="jobselect"), "note": FAILS.format(hook="jobend")}
    live = make_live().site(exits=exits).start()
    live.accepts_trouble = True
    id = live.submit("true")
    until(lambda: [line for line in alarms(live) if "exit bad failed" in line], "an alarm")
    assert "no way" in live.run("nqsd", "status").out
    live.qmgr("disable exit bad").ok()
    assert not [line for line in alarms(live) if "bad" in line]
    assert live.ended(id)["exit_status"] == 0
    until(lambda: [line for line in alarms(live) if "note" in line and "no way" in line], "an alarm")
    live.qmgr("enable exit bad").ok()
    live.exit("bad", FINE.format(hook="jobselect"))
    live.exit("note", FINE.format(hook="jobend"))
    live.qmgr("reload exits").ok()
    assert alarms(live) == []
    assert live.ended(live.submit("true"))["exit_status"] == 0


LEAVES = HEAD + "def jobselect(request):\n    import os\n    os._exit(3)\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may speak as other users")
def test_the_alarm_of_an_exit_that_is_off_outlives_a_restart(make_live):
    live = make_live().site(exits={"mine": LEAVES}).start()
    live.accepts_trouble = True
    live.submit("true")
    submit_as(live, 1)  # one owner alone has no exit left out
    until(lambda: [line for line in alarms(live) if "exit mine is switched off" in line], "an alarm")
    before = alarms(live)
    for _ in range(2):  # the second one after a start that has not switched it off
        live.restart()
        assert alarms(live) == before
    assert "exit mine is" in live.run("nqspy", "doctor").out
    [row] = live.client.call("exits_list")["exits"]
    assert "ended with status 3" in row["left_out"]
    assert live.ended(live.submit("true"))["exit_status"] == 0
    live.qmgr("reload exits").ok()
    live.restart()
    assert alarms(live) == before, "it is off still"
    live.qmgr("enable exit mine", "disable exit mine").ok()
    assert alarms(live) == [], "somebody has switched it off who knows why"
    live.exit("mine", FAILS.format(hook="jobselect"))
    live.qmgr("reload exits", "enable exit mine").ok()
    live.restart()
    assert alarms(live) == []
    [row] = live.client.call("exits_list")["exits"]
    assert (row["enabled"], row.get("left_out")) == (True, None)
    id = live.submit("true")
    live.until(id, lambda job: "no way" in str(job["reason"]), "be failed on")


def test_a_full_disk_is_named_until_there_is_room(make_live):
    live = make_live()
    with small_disk(live.home, "size=48m"):
        live.site().start()
        live.accepts_trouble = True
        assert alarms(live) == []
        rest = os.statvfs(live.home)
        (live.home / "big").write_bytes(bytes(rest.f_bavail * rest.f_frsize - 300_000))
        [message] = [line for line in alarms(live) if "is full" in line]
        assert str(live.home) in message
        doctor = live.run("nqspy", "doctor")
        assert (doctor.status, "is full" in doctor.out) == (1, True)
        (live.home / "big").unlink()
        until(lambda: alarms(live) == [], "no alarm")
        live.stop()
        live.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the home is root's, who looks another one")
def test_doctor_asks_the_daemon_what_a_user_cannot_read(make_live, open_folder):
    """The home of a daemon that is another's: its spool and database are nobody else's to read."""
    live = make_live(str(open_folder / "home")).site().start()
    os.chmod(live.home, 0o755)
    live.run("nqspy", "doctor").ok()

    def doctor() -> Done:
        return everybody.run_nqspy(live, open_folder, "cli.nqspy", "doctor", "--home", str(live.home))

    done = doctor()
    assert "bad " not in done.ok().out
    assert "answers" in done.out
    (live.home / "queues.d" / "20-more.qmgr").write_text("create batch_queue more priority=1\n")
    done = doctor()
    assert done.status == 1
    assert "20-more.qmgr" in done.out


def test_the_alarm_of_mail_goes_with_its_way(live):
    live.accepts_trouble = True
    live.qmgr("set mail sendmail=/nope/sendmail")
    live.qsub("true", "-me")
    until(lambda: any("mail cannot be sent" in each for each in alarms(live)), "it fails")
    live.qmgr("set mail none").ok()
    until(lambda: alarms(live) == [], "the alarm goes")


def test_the_doctor_says_what_is_no_home(tmp_path):
    home = tmp_path / "home"
    for what in (f"{home} does not exist; ", f"{home} is empty; "):
        [found] = examine(Home(home))
        assert (found.state, what in found.text, "nqsd start" in found.text) == ("bad", True, True)
        home.mkdir(exist_ok=True)
    (home / "notes").write_text("mine")
    [found] = examine(Home(home))
    assert (found.state, f"{home} is not a home" in found.text) == ("bad", True)


def test_the_doctor_names_each_file_that_nqsd_does_not_read(tmp_path, monkeypatch):
    # Its own check forks by clone3, which hangs now and then beside the threads of a test's process.
    monkeypatch.delitem(tools._CHECKS, "cgroups")
    folders = [tmp_path / name for name in ("queues.d", "exits")]
    for folder, ending in zip(folders, (".qmgr", ".py"), strict=True):
        folder.mkdir(mode=0o755)
        os.mkfifo(folder / f"fifo{ending}")
        (folder / f"gone{ending}").symlink_to("/nowhere/at/all")
        (folder / f"open{ending}").touch()
        (folder / f"open{ending}").chmod(0o666)
        (folder / f"long{ending}").touch(0o644)
        os.truncate(folder / f"long{ending}", 3 << 30)
        (folder / f"two\nlines{ending}").write_text("")
        (folder / f"two\nlines{ending}").chmod(0o644)
    (folders[0] / "bytes.qmgr").write_bytes(b"# \xff\n")
    (folders[0] / "fine.qmgr").write_text(GOOD)

    def found(what):
        return [(each.state, each.text) for each in examine(Home(tmp_path)) if each.what == what]

    bad = {text.partition(" ")[0].strip(",:") for state, text in found("queues.d") if state == "bad"}
    assert {"bytes.qmgr", "fifo.qmgr", "gone.qmgr", "long.qmgr", "open.qmgr", "'two\\nlines.qmgr'"} == bad
    assert [text for state, text in found("queues.d") if state == "ok"] == ["fine.qmgr"]
    bad = {text.partition(":")[0] for state, text in found("exits") if state == "bad"}
    names = "fifo.py", "gone.py", "long.py", "open.py"
    assert {f"exits/{name}" for name in names} | {"'exits/two\\nlines.py'"} == bad
    for folder in folders:
        folder.chmod(0o777)
        [(state, text)] = found(folder.name)
        assert (state, text.partition(":")[0]) == ("bad", folder.name)


LONG_AGO = 1_000_000_000_000_000_000
CHANGES = (
    lambda folder: (folder / "a").write_text("22"),
    lambda folder: (folder / "a").unlink(),
    lambda folder: (folder / "c").write_text("3"),
    lambda folder: (folder / "b").rename(folder / "a"),
    lambda folder: (folder / "new").write_text("5") and (folder / "new").rename(folder / "a"),
    lambda folder: os.chmod(folder / "a", 0o666),
    lambda folder: os.chmod(folder, 0o777),
)


def test_any_change_is_seen_and_nothing_else_is_read_again(tmp_path, monkeypatch):
    cache, readings = FolderCache(), []

    def read():
        readings.append(1)
        return sorted(path.name + path.read_text() for path in tmp_path.iterdir())

    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    assert cache.get(tmp_path, read) == cache.get(tmp_path, read) == ["a1", "b1"]
    assert len(readings) == 2, "what was written just now is read again each time"
    monkeypatch.setattr("nqspy.daemon.troubles.time.time_ns", lambda: 4 * LONG_AGO)
    for change in CHANGES:
        cache.get(tmp_path, read)
        readings.clear()
        cache.get(tmp_path, read)
        assert not readings
        change(tmp_path)
        result = cache.get(tmp_path, read)
        assert (result, len(readings)) == (read(), 1), change
    with pytest.raises(ValueError, match="no"):
        FolderCache().get(tmp_path, lambda: int("no"))
    assert cache.get(tmp_path / "missing", lambda: 8) == 8
