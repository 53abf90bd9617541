"""User exits that were loaded, changed or removed in a recorded time: a replay asks each version from when it
was loaded on."""

import sqlite3
from collections.abc import Callable

from daemon.live import Live

from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.what_if import read_input, replayed

QUIET = """\
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("not now") if request.name == "{name}" else None
"""


def three(live: Live, waits: str) -> str:
    """Submit three requests, of which one waits for an exit; return that one, empty if none does."""
    ids = {name: live.submit("true", name=name) for name in "abc"}
    for name, id in ids.items():
        if name == waits:
            live.waits(id, "not now")
        else:
            live.ended(id)
    return ids.get(waits, "")


def a_day(live: Live) -> None:
    """An exit comes, changes and goes."""
    live.site().start()
    three(live, "")
    for name in "ab":
        live.exit("quiet", QUIET.format(name=name))
        live.set("reload exits")
        last = three(live, name)
    (live.home / "exits" / "quiet.py").unlink()
    live.set("reload exits")
    live.ended(last)
    live.exit("quiet", QUIET.format(name="c"))  # saved and never loaded
    live.stop()


def test_each_version_is_asked_from_its_own_instant_on(make_live: Callable[..., Live]) -> None:
    live = make_live()
    a_day(live)
    data = live.run("nqspy", "replay", "--json").ok().data
    assert (data["differences"], data["exits"]) == (0, {"unknown_until": None, "missing": []})
    versions = read_input(HomeJournal(live.home)).versions
    assert [len(files or {}) for _, files in versions.loads] == [0, 0, 1, 1, 0]
    last = versions.loads[-2][0]
    found = replayed(read_input(HomeJournal(live.home), since=last))
    assert not found.was.differences
    # Without the copy of a version that version is not asked, and named.
    with sqlite3.connect(live.home / "nqs.db") as database:
        digest = dict(versions.loads[2][1] or {})["quiet"]
        assert database.execute("DELETE FROM blobs WHERE digest = ?", (digest,)).rowcount == 1
    database.close()
    done = live.run("nqspy", "replay")
    assert done.status == 1
    assert f"exit quiet ({digest}), loaded 20" in done.out
    assert "does not say which" not in done.out
