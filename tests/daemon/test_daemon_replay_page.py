"""The manual's page "replay", gone through as it stands there."""

from daemon.test_daemon_first_rule import MANUAL, Reader


def test_what_the_page_shows_is_what_happens(make_live):
    live = make_live("play-work/play")
    live.work = live.home.parent
    reader = Reader(live)
    reader.goes_through((MANUAL / "replay.md").read_text())
    words = "\n".join(reader.typed)
    for step in ("nqspy replay -c", "qmgr plan", "--steps"):
        assert step in words
