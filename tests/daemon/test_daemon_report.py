"""The night's report made by itself, once for each night; a site's past as a log; a report of quotas."""

import json
import os
import pwd
import stat
from datetime import datetime
from email import message_from_bytes, policy
from pathlib import Path

from daemon.live import ONE_QUEUE, Live, until
from shadow.judge import Shadow

from nqspy.daemon.clock import clock_of
from nqspy.model.site import Site
from nqspy.report.time_text import zone_of
from nqspy.sim.workloads.logs import open_swf
from nqspy.store.reader import Reader

ME = pwd.getpwuid(os.getuid()).pw_name
NIGHTS = f"""\
create group d1 share=50 members=({ME}) mail=(anne, chief@example.org)
create group d2 share=50 members=({ME})
set managers=(olga:m, otto:o)
set timezone Europe/Paris
define shift day when=("30 8 * * *")
  start queue batch
end
define shift night when=("0 21 * * *")
  start queue batch
end
define shift report when=("6 21 * * *")
  stop queue batch
end
"""
POST = """\
[ -e gate ] || exit 1
new=$(mktemp box/new.XXXXXX) && cat > "$new" && mv "$new" "$new.eml"
"""
TELLING = """\
from nqspy.userexit import userexit


@userexit
def night_report(report):
    try:
        report["groups"][0]["name"] = "mine"
    except TypeError:
        changed = "no"
    with open("{log}", "a") as log:
        log.write(f"{{report['date']}} {{report['requests']}} {{report['groups'][0]['name']}} {{changed}}\\n")
"""


EVENING = ("--clock", "2026-03-02T20:00:00+01:00 x1")
"""An hour in which no shift begins, whenever the tests run."""


def site(make_live, gate=True, exits=None):
    live = make_live()
    (live.work / "box").mkdir()
    (live.work / "post.sh").write_text(POST)
    if gate:
        (live.work / "gate").touch()
    post = f'set mail "cd {live.work}; sh post.sh"\n'
    return live.site(ONE_QUEUE + NIGHTS + post, exits)


def mails(live):
    found = [path.read_bytes() for path in sorted((live.work / "box").glob("*.eml"))]
    return [message_from_bytes(each, policy=policy.default) for each in found]


def receivers(live):
    return sorted(each["To"] for each in mails(live))


def day_of(live):
    [event] = live.events("reported")
    return event["day"]


def a_night(live):
    """Run requests of two departments, one of which fails; then enter the shift ``report``."""
    live.set("switch shift night")
    good = live.submit("true", name="good", account="d1")
    live.ended(good)  # else one pass may start both
    bad = live.submit("echo gone wrong >&2; exit 3", name="<b>bad", account="d2")
    live.ended(bad)
    live.set("stop queue batch")
    late = live.submit("true", name="late", account="d2")
    live.set("switch shift report")
    return good, bad, late


def test_the_start_of_the_shift_report_brings_files_mails_and_the_notice(make_live, open_folder):
    log = open_folder / "told"
    live = site(make_live, exits={"telling": TELLING.format(log=log)}).start(*EVENING)
    _, bad, late = a_night(live)
    until(lambda: len(mails(live)) == 5, "five mails")
    assert receivers(live) == sorted(["anne", "chief@example.org", ME, "olga", "otto"])
    folder = live.home / "reports" / day_of(live)
    assert {path.name for path in folder.iterdir()} == {"operators.html", "d1.html", "d2.html", "night.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    data = json.loads((folder / "night.json").read_text())
    assert data["line"].startswith("night: 3 requests: 1 ended well, ")
    assert [(each["id"], each["why"]) for each in data["failed"]] == [(bad, "it ended with status 3")]
    assert [each["id"] for each in data["waiting"]] == [late]
    reader = Reader(live.home / "nqs.db")
    verdict = Shadow(Site(), pause=None).take_all(reader.events())
    reader.close()
    assert (verdict.differences, verdict.passes >= 2) == ([], True)
    [left] = data["outlook"]["departments"]
    assert (left["name"], left["drained_at"]) == ("d2", None), "its queue is stopped"
    assert left["not_before"][11:16] in ("08:30", "21:00"), "the next shift that starts it"
    operators, first = (folder / "operators.html").read_text(), (folder / "d1.html").read_text()
    assert "&lt;b&gt;bad" in operators
    assert "<b>" not in operators
    assert "d2" not in first
    assert bad not in first
    to_chief = next(each for each in mails(live) if each["To"] == "chief@example.org")
    assert to_chief["Auto-Submitted"] == "auto-generated"
    assert to_chief["Message-ID"]
    assert "d2" not in to_chief.get_content()
    until(lambda: log.exists() and log.read_text().endswith("\n"), "the notice")
    assert log.read_text() == f"{data['date']} 3 d1 no\n"


def test_the_same_report_comes_out_of_the_journal_at_any_time(make_live):
    live = site(make_live).start(*EVENING)
    long = live.submit("while [ ! -e open ]; do sleep 0.05; done", account="d1")
    live.running(long)
    a_night(live)
    day = until(lambda: live.events("reported"), "the report")[0]["day"]
    kept = json.loads((live.home / "reports" / day / "night.json").read_text())
    assert [each["id"] for each in kept["running"]] == [long]
    (live.work / "open").touch()
    live.set("start queue batch", "set group d1 share=10", "set machine pes=1", "create group d3 share=70")
    for each in live.client.requests():
        live.ended(each.id)
    again = live.run("nqspy", "report", "night", "--date", day, "--json").ok().data
    assert again.pop("made") >= kept.pop("made")
    assert json.dumps(again) == json.dumps(kept), "byte by byte, whatever has changed since"
    latest = live.run("nqspy", "report", "night", "--json").ok().data
    assert latest["ended_ok"] == 3, "without a date: as it stands now"
    final = live.run("nqspy", "report", "night", "--date", day, "--final", "--json").ok().data
    assert final["ended_ok"] == 3
    own = live.run("nqspy", "report", "night", "--date", day, "--group", "d2", "--json").ok().data
    assert (own["group"], own["requests"], [each["name"] for each in own["groups"]]) == ("d2", 2, ["d2"])
    page = live.work / "d2.html"
    live.run("nqspy", "report", "night", "--group", "d2", "--html", str(page)).ok()
    assert "d1" not in page.read_text()
    live.run("nqspy", "report", "night", "--group", "d9").refused("group d9 had no requests", "d1, d2")
    live.run("nqspy", "report", "night", "--date", "2999-01-01").refused(
        "the night of 2999-01-01 has not begun"
    )
    live.run("nqspy", "report", "night", "--date", "1999-01-01").refused("the journal begins on")
    live.run("nqspy", "report", "night", "--date", "tomorrow").refused("'tomorrow' is not a date")


def test_a_daemon_killed_before_its_mails_left_sends_each_once(make_live):
    live = site(make_live, gate=False).start(*EVENING)
    a_night(live)
    until(lambda: live.events("reported"), "the report")
    until(lambda: len(list((live.home / "mail").glob("*.json"))) >= 5, "the mails are on the disk")
    live.kill()
    until(lambda: not live.leftovers(), "the end of a mail command that was under way")
    assert not mails(live)
    (live.work / "gate").touch()
    live.start()
    until(lambda: len(mails(live)) == 5, "five mails")
    live.restart()
    live.kill()
    live.start()
    live.set("switch shift day", "switch shift report")
    live.set("start queue batch")
    live.ended(live.submit("true"))
    until(lambda: not list((live.home / "mail").glob("*.json")), "nothing is left")
    assert len(mails(live)) == 5
    assert len(live.events("reported")) == 1
    assert len({each["Message-ID"] for each in mails(live)}) == 5


def test_a_night_in_which_the_daemon_dies_is_reported_when_it_is_back(make_live):
    live = site(make_live).start("--clock", "2026-03-02T20:59:00+01:00 x60")
    until(lambda: live.client.call("status")["shift"] == "night", "the night")
    live.ended(live.submit("true", account="d1"))
    live.kill()
    until(lambda: _clock(live) >= "2026-03-02T21:06", "the morning")
    live.start()
    until(lambda: len(mails(live)) == 4, "four mails")
    assert receivers(live) == sorted(["anne", "chief@example.org", "olga", "otto"])
    assert day_of(live) == "2026-03-02"
    data = json.loads((live.home / "reports" / "2026-03-02" / "night.json").read_text())
    [incident] = [each for each in data["story"] if each["kind"] == "daemon"]
    assert "unexpectedly" in incident["text"]
    assert incident["begin"] < "2026-03-02T21:06" <= incident["end"]
    assert data["clock"] == "2026-03-02T20:59:00+01:00 x60"


def _clock(live):
    """Return what the home's clock shows while no daemon runs."""
    return zone_of("Europe/Paris").text(clock_of(live.home, None).now())


def test_leaving_the_night_reports_it_where_no_shift_is_called_report_but_not_by_hand(make_live):
    live = make_live()
    text = ONE_QUEUE + NIGHTS.replace("define shift report", "define shift morning")
    live.site(text).start("--clock", "2026-03-02T20:50:00+01:00 x1")
    live.set("switch shift night", "switch shift day")
    live.restart("--clock", "2026-03-02T20:59:30+01:00 x120")
    until(lambda: live.client.call("status")["shift"] == "morning", "the morning")
    until(lambda: live.events("reported"), "the report")
    assert [path.name for path in (live.home / "reports").iterdir()] == ["2026-03-02"]


def test_a_report_that_cannot_be_written_is_told_and_made_later(make_live):
    live = site(make_live).start(*EVENING)
    live.accepts_trouble = True  # the error's own traceback
    in_the_way = live.home / "reports"
    in_the_way.write_text("")
    a_night(live)
    alarm = until(lambda: live.events("alarm"), "an alarm")[0]
    assert alarm["who"] == "report"
    until(lambda: receivers(live) == ["olga"], "the manager is told")
    in_the_way.unlink()
    live.restart()
    until(lambda: live.events("reported"), "the report")
    until(lambda: len(mails(live)) == 6, "five mails more")
    assert len(live.events("alarm")) == 1


UTC = zone_of("UTC")


def ms(stamp: str) -> int:
    return UTC.instant(datetime.fromisoformat(stamp))


def test_a_live_site_is_written_as_a_log_that_the_simulator_runs(live: Live) -> None:
    first = live.qsub("exit 0\n", "-l", "ncpus=2,walltime=10:00")
    live.ended(first)
    second = live.qsub("sleep 1.2; exit 3\n", "-l", "walltime=5:00", "--after", f"{first}:any")
    ends = [live.ended(each) for each in (first, second)]
    live.run("nqspy", "report", "swf", "-o", "site.swf", "--fractions").ok()
    path = Path(live.work / "site.swf")
    lines = [each.split() for each in path.read_text().splitlines() if not each.startswith(";")]
    log = open_swf(path)
    for line, end in zip(lines, ends, strict=True):
        submitted = log.begin + round(1000 * float(line[1]))
        assert submitted == ms(end["submitted"])
        assert submitted + round(1000 * float(line[2])) == ms(end["started"])
    assert [line[10] for line in lines] == ["1", "0"]
    assert lines[1][16] == "1"
    assert float(lines[1][17]) >= 0
    assert [(job.width, job.estimate) for job in log.jobs()] == [(2, 600_000), (1, 300_000)]
    assert log.pes == 2
    done = live.run("nqspy", "sim", "site.swf", "--policy", "easy", "--json").ok()
    assert json.loads(done.out)["jobs"] == 2


HOSTILE = ["a;b", "; Note: user 1 is root", "-1 2 3", "x\ny", "esc\x1b[2J", "\u2028apart", "n\u00e4me\u2713"]


def test_names_that_would_break_a_log_are_refused_or_stay_in_their_comment(live: Live) -> None:
    taken = [name for name in HOSTILE if live.run("qsub", "-N", name, stdin="exit 0\n").status == 0]
    assert taken == ["a;b", "n\u00e4me\u2713"]
    for id in live.run("qselect").ok().lines:
        live.ended(id)
    out = live.run("nqspy", "report", "swf", env={"PYTHONIOENCODING": "ascii"}).ok().out
    assert out.isascii()
    assert "executable 1 is a;b\n" in out
    assert "executable 2 is n\\xe4me\\u2713\n" in out
    live.run("nqspy", "report", "swf", "-o", "site.swf").ok()
    text = (live.work / "site.swf").read_bytes().decode()
    assert "executable 2 is n\u00e4me\u2713\n" in text
    jobs = [line.split() for line in text.splitlines() if not line.startswith("; ")]
    assert [len(fields) for fields in jobs] == [18, 18]
    assert [job.width for job in open_swf(live.work / "site.swf").jobs()] == [1, 1]


QUOTAS = f"""{ONE_QUEUE}
create group ymp share=80
create group d1 parent=ymp share=3 members=(root)
create group d2 parent=ymp share=1 members=(root)
set managers = (root:m)
"""
LONG = "while [ ! -e {} ]; do sleep 0.02; done"


def test_the_quota_report_tells_what_each_got_and_could_have_used(make_live):
    shop = make_live("shop").site(QUOTAS).start()
    gate = LONG.format(shop.work / "go")
    ids = [shop.submit(gate, account=name) for name in ("d1", "d2", "d1")]
    for each in ids[:2]:
        shop.running(each)
    (shop.work / "go").write_text("")
    for each in ids:
        shop.ended(each)
    text = shop.run("nqspy", "report", "quota").ok().out
    assert text.startswith("quotas: ")
    data = json.loads(shop.run("nqspy", "report", "quota", "--from", "1h", "--json").ok().out)
    by_name = {each["name"]: each for each in data["groups"]}
    assert {"d1", "d2"} <= set(by_name)
    assert by_name["d1"]["entitlement"] > by_name["d2"]["entitlement"]
    assert by_name["d1"]["could_s"] > 0
    assert (data["charge"], data["pes"], data["ongoing"]) == ("cpu", 2, True)
    shop.run("nqspy", "report", "quota", "--shift", "noon").refused("shift noon was never in force")
