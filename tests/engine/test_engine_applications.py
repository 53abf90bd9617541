"""Applications at a terminal: the queue they enter, the account that is charged, and applications that can
never run."""

import pytest
from engine.harness import MAX, PLAIN, Centre, caller_of, item
from engine.story import Story
from msgspec.structs import replace

from nqspy.engine.handlers import submit
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import observations as ob
from nqspy.report.counters import counters
from nqspy.report.quotas import Period, quota_report

APPS = """\
create class production
create class interactive pe_limit=1
create batch_queue apps order=class
enable queue apps
start queue apps
set default mpprun queue apps
"""


def application(centre: Centre, line: str, **fields: object) -> cm.Submit:
    """Return a command that calls an application at a terminal, of class production unless the line has
    ``class=`` (``-``: none), inside the request ``within=``."""
    plain = item(line, centre.sim.now)
    words = dict(word.split("=") for word in line.split()[1:] if "=" in word)
    around, kind = words.get("within", ""), words.get("class", "production").strip("-")
    asked = {
        "caller": (77, 1234),
        "job_class": kind,
        "within": centre.id(int(around)) if around else "",
        **fields,
    }
    return cm.Submit((replace(plain, spec=replace(plain.spec, **asked)),))


class CallStory(Story):
    """A test in which people call applications."""

    def call(self, line: str, expected: str = "") -> None:
        """Call an application; ``expected``: kind of its refusal."""
        centre, command, caller = self.centre, application(self.centre, line), caller_of(line.split()[0])
        if expected:
            refusal = centre.refused(command, caller)
            assert (refusal.kind, "\n" in str(refusal)) == (expected, False), refusal.kind
        else:
            centre.ask(command, caller)

    def not_started(self, name: str) -> None:
        """Let the executor report that it cannot start a request."""
        self.centre.sim.feed([ob.ObservedNotStarted(self.seq(name), 1, "its folder is gone")])


STORIES = {
    "it lands in the queue for applications and others do not": """call anne; submit anne
        queue 1 apps 2 batch; qmgr set no_default mpprun queue; call anne -> no_mpprun_queue""",
    "one that names no class has that of its place if the site has it": """submit anne; call anne class=-
        call anne class=- within=1; has 2 spec.job_class=interactive; has 3 spec.job_class=production
        qmgr delete class interactive; call anne class=-; has 4 spec.job_class=
        qmgr delete class production; call anne class=- within=1; has 5 spec.job_class=
        call anne -> no_such_class""",
    "its account is that of the request around it if that is its owner's": """submit anne account=deep-sea
        call anne within=1; call ben within=1; has 2 spec.account=deep-sea; has 3 spec.account=null""",
    "one that could not be started ends": "call anne; not_started 1; end 1 not_started",
    "none is made one that could be run again": """call anne once
        modify 1 rerunnable=true -> 1:not_rerunnable
        has 1 spec.rerunnable=false""",
    "one that its class can never load is refused and a batch request waits": """
        call anne pes=2 class=interactive -> class_too_small; submit anne pes=2 queue=apps class=interactive
        state 1 queued""",
    "what can never run is refused behind a pipe queue too": """qmgr create pipe_queue door destination=apps
        qmgr enable queue door | start queue door | set default mpprun queue door | set gang job_limit=1
        call anne pes=2 -> class_too_small""",
    "one size of several that can run is enough": """qmgr set gang job_limit=2; call anne sizes=2,4,8
        has 1 spec.ask.pes=2""",
    "a queue whose requests hold no PEs takes no applications": """qmgr create domain nqs kind=command
        qmgr create batch_queue scripts domain=nqs; deny set default mpprun queue scripts -> bad_settings""",
    "no request gets a class that there is not": """submit anne
        modify 1 job_class=fast by anne -> 1:bad_value
        modify 1 job_class=fast by max -> 1:bad_value; has 1 spec.job_class=""",
    "a manager gives a class that is not open to the owner": """qmgr create class benchmark users=ben
        submit anne; modify 1 job_class=benchmark by anne -> 1:bad_value; modify 1 job_class=benchmark by max
        has 1 spec.job_class=benchmark""",
    "a class that is taken back is the site's default": """submit anne class=interactive
        qmgr modify request 1 job_class=none; has 1 spec.job_class=""",
    "a pipe queue passes on by who waits at a terminal": """qmgr set machine pes=4
        qmgr create domain talk pes=3 takes=interactive | create batch_queue now order=class domain=talk
        qmgr create pipe_queue in destination=(now, apps) | enable queue all | start queue all
        qmgr set default mpprun queue in; submit anne; call anne; call anne within=1; queue 2 now 3 apps""",
} | {
    f"what can never run is refused: {site}, {asks}": f"""
        qmgr set machine pes=8 | create consumable card count=4 | {site}
        call anne {asks} -> {kind}; known 0"""
    for site, asks, kind in (
        ("set machine pes=4", "pes=5", "above_limit"), ("set machine pes=4", "sizes=5,6", "above_limit"),
        ("set queue apps per_request pe_limit=1", "pes=2", "above_limit"),
        ("set queue apps pe_limit=1", "pes=2", "above_limit"),
        ("set global pe_limit=1", "sizes=2,3", "above_limit"),
        ("set queue apps run_limit=0", "pes=1", "above_limit"),
        ("set class production pe_limit=1", "pes=2", "class_too_small"),
        ("set gang job_limit=1", "sizes=2,3", "class_too_small"),
        ("set gang large_size=2 large_limit=1", "pes=2", "class_too_small"),
        ("set queue apps per_request wall_limit=1:00", "wall=2:00", "above_limit"),
        ("set queue apps consumable_limit=(card=1)", "card=2", "above_limit"),
        ("disable queue apps", "pes=1", "queue_disabled"),
    )
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_applications(title):
    story = CallStory(Centre(PLAIN + APPS))
    story.play(STORIES[title])
    story.centre.is_sound()


def test_commands_wait_for_so_many_requests_of_a_user_and_no_more(monkeypatch):
    monkeypatch.setattr(submit, "WAITED_FOR_MAX", 3)
    story = CallStory(Centre(PLAIN + APPS))
    story.play("""qmgr stop queue apps; submit anne queue=batch; call anne; call anne; call anne
        call anne -> many_waited_for; call ben; delete 2+1 by anne -> 2 1:wrong_state; call anne""")
    waited = application(story.centre, "anne", caller=None, session=(77, 1234)).items[0]
    assert story.centre.refused(cm.Submit((waited,) * 4), MAX).kind == "many_waited_for"


# ---------------------------------------------------------------- what is charged
MIN = 60_000
SITE = """
create group d1 share=1 limit=50% members=(anne)
create group d2 share=1 members=(ben)
create group guests share=1
set usage half_life=10000h
create domain nqs kind=command
create batch_queue front domain=nqs
create class production priority=2 wait=30:00 do_not_disturb=0
create class interactive priority=4 wait=0 do_not_disturb=0
create batch_queue apps order=class
enable queue all
start queue all
set default mpprun queue apps
set managers = (max:m)
"""


def centre_of(runs, charge="pe_wall", pes=4):
    """Return a site. ``runs``: minutes of wall and CPU time, by name of request."""
    return Centre(
        SITE + f"set usage charge={charge}\n",
        pes=pes,
        lengths=lambda r: Run(wall=runs[r.name][0] * MIN, cpu=round(runs[r.name][1] * MIN)),
    )


def use(centre, group):
    """Return the minutes charged to a group in all domains, after a pass with samples."""
    centre.submit("max name=tick queue=front")
    site, half_life = centre.site, centre.site.settings.usage.half_life
    found = (account for key, account in site.accounts.items() if key.rpartition("g:")[2] == group)
    return sum(each.at_time(centre.sim.now, half_life) for each in found) / MIN


def called(centre, line):
    """Call an application as its owner; return its number."""
    CallStory(centre).call(line)
    return centre.site.next_seq - 1


RUNS = {"script": (60, 2), "wide": (20, 70), "narrow": (50, 30), "tick": (0, 0)}


@pytest.mark.parametrize(
    ("charge", "early", "wide", "narrow"),
    [("pe_wall", 4 * 10, 4 * 20, 1 * 50), ("cpu", 35 + 2 / 6, 70 + 2, 30 + 2)],
)
def test_a_script_is_charged_what_it_uses_itself_and_its_applications_their_pes(charge, early, wide, narrow):
    centre = centre_of(RUNS, charge, pes=5).qmgr("set group d1 limit=unlimited")
    [one], [other] = (
        centre.submit(f"{who} name=script pes={pes} queue=front") for who, pes in (("anne", 4), ("ben", 1))
    )
    called(centre, f"anne name=wide pes=4 within={one}")
    called(centre, f"ben name=narrow pes=1 within={other}")
    centre.later(minutes=10)
    assert use(centre, "d1") == pytest.approx(early, rel=1e-2)
    centre.later(hours=2)
    assert (use(centre, "d1"), use(centre, "d2")) == pytest.approx((wide, narrow), rel=1e-2)
    shown = {
        row["name"]: row for row in counters(centre.journal.events(), centre.site, centre.sim.now)["groups"]
    }
    assert shown["d1"]["daily_finished_s"] == pytest.approx(60 * wide, rel=1e-2)
    assert shown["d2"]["used_s"] == pytest.approx(60 * narrow, rel=1e-2)
    centre.is_sound()


def test_the_report_of_quotas_has_what_was_charged():
    centre = centre_of(RUNS, pes=5).qmgr("set group d1 limit=unlimited")
    begin = centre.sim.now
    [script] = centre.submit("anne name=script pes=4 queue=front")
    called(centre, f"anne name=wide pes=4 within={script}")
    called(centre, "ben name=narrow")
    centre.later(minutes=30)
    use(centre, "d1")
    period = Period(begin, centre.sim.now, None, True)
    found = quota_report(centre.journal.events(), centre.site, period, centre.sim.now)
    got = {row["name"]: row for row in found["groups"]}
    assert (got["d1"]["got_s"], got["d2"]["got_s"]) == pytest.approx((80 * 60, 30 * 60), rel=1e-2)
    assert got["d1"]["could_s"] == pytest.approx(80 * 60, rel=1e-2), "its script has no PE time to come"


class ChargeStory(CallStory):
    """A test of applications and of the use charged to departments."""

    def use(self, words: str) -> None:
        """Check the minutes charged to groups: ``d1=40``."""
        wanted = {group: float(minutes) for group, minutes in (each.split("=") for each in words.split())}
        assert {group: use(self.centre, group) for group in wanted} == pytest.approx(wanted, rel=1e-2)


CHARGES = {
    "one that gave its PEs is not charged until it has some again": (2, """qmgr set group d1 limit=unlimited
        call anne name=long pes=2; later 20m; call ben name=short pes=2 class=interactive; later 20m
        state 1 suspended; use d1=40 d2=40; later 20m; use d1=60 d2=60; later 1h; use d1=120"""),
    "a script leaves its department's cap to its applications": (4, """
        submit anne name=script pes=2 queue=front; call anne name=wide pes=2 within=1; state 2 running
        submit anne name=script pes=4 queue=front; state 3 running"""),
    "a department whose use is spent starts no scripts either": (4, """qmgr set usage half_life=1h
        qmgr set usage of group d1 10h; submit anne name=script queue=front, ben name=script queue=front
        state 1 queued 2 running"""),
}  # fmt: skip


@pytest.mark.parametrize("title", CHARGES)
def test_charges(title):
    pes, text = CHARGES[title]
    story = ChargeStory(centre_of({**RUNS, "long": (60, 60), "short": (30, 30)}, pes=pes))
    story.play(text)
    story.centre.is_sound()


def test_an_application_is_charged_to_the_department_of_the_request_around_it():
    """Its owner is no member of the department: a manager submitted the request."""
    centre = centre_of(RUNS)
    handed_in = item("anne name=script account=guests queue=front", centre.sim.now, user="anne")
    handed_in = replace(handed_in, spec=replace(handed_in.spec, owner="anne"))
    [id] = centre.ask(cm.Submit((handed_in,)), MAX)["ids"]
    script = int(id.partition(".")[0])
    application = centre.request(called(centre, f"anne name=wide within={script}"))
    assert (application.group, application.spec.account) == ("guests", "guests")
    centre.later(minutes=20)
    assert use(centre, "guests") == pytest.approx(20, rel=1e-2)
    assert use(centre, "d1") == 0
