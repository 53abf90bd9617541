"""Applications at the counter: the queue that takes them, whose account is charged, what can never run."""

import pytest
from engine.harness import ANNE, MAX, Centre, item
from msgspec.structs import replace

from nqspy.engine.handlers import submit
from nqspy.model import commands as cm
from nqspy.model import observations as ob
from nqspy.model.configure import apply_changes
from nqspy.model.people import Caller
from nqspy.model.settings import Settings
from nqspy.qmgr.parser import parse_text
from nqspy.qmgr.printer import print_settings

BEN = Caller("ben", 1002, 100, ("users",))
APPS = """\
create class production
create class interactive pe_limit=1
create batch_queue apps order=class
enable queue apps
start queue apps
set default mpprun queue apps
"""


def application(centre: Centre, line: str = "anne", **said: object) -> cm.Submit:
    plain = item(line, centre.sim.now)
    asked = {"caller": (77, 1234), "job_class": "production", **said}
    return cm.Submit((replace(plain, spec=replace(plain.spec, **asked)),))


def handed_in(centre: Centre, command: cm.Submit, by: Caller = ANNE):
    [id] = centre.ask(command, by)["ids"]
    return centre.request(int(id.partition(".")[0]))


def test_it_lands_in_the_queue_for_applications_and_others_do_not():
    centre = Centre().qmgr(APPS)
    assert handed_in(centre, application(centre)).queue == "apps"
    [plain] = centre.submit("anne")
    assert centre.request(plain).queue == "batch"
    centre.qmgr("set no_default mpprun queue")
    refusal = centre.refused(application(centre), ANNE)
    assert "set default mpprun queue QUEUE" in str(refusal)


def test_one_that_names_no_class_has_that_of_its_place_if_the_site_has_it():
    centre = Centre().qmgr(APPS)
    [around] = centre.submit("anne")
    inside = {"within": centre.id(around), "job_class": ""}
    assert handed_in(centre, application(centre, job_class="")).spec.job_class == "interactive"
    assert handed_in(centre, application(centre, **inside)).spec.job_class == "production"
    centre.qmgr("delete class interactive")
    assert handed_in(centre, application(centre, job_class="")).spec.job_class == ""
    centre.qmgr("delete class production")
    assert handed_in(centre, application(centre, **inside)).spec.job_class == ""
    refusal = centre.refused(application(centre, job_class="production"), ANNE)
    assert "no job class production" in str(refusal)


def test_its_account_is_that_of_the_request_around_it_if_that_is_its_owners():
    centre = Centre().qmgr(APPS)
    [around] = centre.submit("anne account=deep-sea")
    inside = application(centre, within=centre.id(around))
    assert handed_in(centre, inside).spec.account == "deep-sea"
    assert handed_in(centre, inside, BEN).spec.account is None
    assert handed_in(centre, application(centre, within="99.nowhere")).spec.account is None


def test_one_that_could_not_be_started_ends_for_somebody_waits_for_it():
    centre = Centre().qmgr(APPS)
    seq = handed_in(centre, application(centre)).seq
    centre.sim.feed([ob.ObservedNotStarted(seq, 1, "its folder /home/anne/run is gone")])
    centre.is_sound()
    assert centre.state(seq) == "ended"
    ended = centre.end_of(seq)
    assert (ended.end_reason, ended.text) == ("not_started", "its folder /home/anne/run is gone")


def test_nobody_makes_one_that_could_be_run_again_without_its_caller():
    centre = Centre().qmgr(APPS)
    made = handed_in(centre, application(centre, rerunnable=False))
    again = cm.ModifyRequest((str(made.seq),), {"rerunnable": True})
    [failed] = centre.ask(again)["failed"]
    assert failed["code"] == "not_rerunnable"
    assert not centre.request(made.seq).spec.rerunnable


def test_one_that_its_class_can_never_load_is_refused_and_a_batch_request_waits():
    centre = Centre().qmgr(APPS)
    large = application(centre, "anne pes=2", job_class="interactive")
    said = "2 PEs can never be given to one of job class interactive; at most 1 can"
    assert str(centre.refused(large, ANNE)) == said
    batch = application(centre, "anne pes=2 queue=apps", job_class="interactive", caller=None)
    assert handed_in(centre, batch).state.name == "QUEUED"


@pytest.mark.parametrize(
    ("site", "asks", "said"),
    [
        ("set machine pes=4", "pes=5", "5 PEs are more than the machine's 4"),
        ("set machine pes=4", "sizes=5,6", "5 PEs are more than the machine's 4"),
        ("set queue apps per_request pe_limit=1", "pes=2", "apps: 2 PEs are above the limit of 1"),
        ("set queue apps pe_limit=1", "pes=2", "PE limit 1 of queue apps leaves 1 even when nothing runs"),
        ("set global pe_limit=1", "sizes=2,3", "global PE limit 1 leaves 1 even when nothing runs, it asks"),
        ("set queue apps run_limit=0", "pes=1", "run limit 0 of queue apps lets nothing run"),
        ("set class production pe_limit=1", "pes=2", "2 PEs can never be given to one of job class"),
        ("set gang job_limit=1", "sizes=2,3", "2 PEs can never be given to one of job class production"),
        ("set gang large_size=2 large_limit=1", "pes=2", "2 PEs can never be given to one of job class"),
        ("set queue apps per_request wall_limit=1:00", "wall=2:00", "apps: wall time 120 s is above the"),
        ("set queue apps consumable_limit=(card=1)", "card=2", "card limit 1 of queue apps leaves 1"),
        ("disable queue apps", "pes=1", "Queue is not enabled: apps"),
    ],
)
def test_what_can_never_run_is_refused_in_one_line_and_nothing_is_left(site, asks, said):
    centre = Centre().qmgr(f"set machine pes=8\n{APPS}create consumable card count=4\n{site}\n")
    command = application(centre, f"anne {asks}")
    refusal = str(centre.refused(command, ANNE))
    assert refusal.startswith(said)
    assert "\n" not in refusal
    assert not centre.site.requests


def test_what_can_never_run_is_refused_behind_a_pipe_queue_too():
    pipe = "create pipe_queue door destination=apps\nenable queue door\nstart queue door\n"
    centre = Centre().qmgr(f"{APPS}{pipe}set default mpprun queue door\nset gang job_limit=1\n")
    assert "at most 1 can" in str(centre.refused(application(centre, "anne pes=2"), ANNE))


def test_one_size_of_several_that_can_run_is_enough():
    centre = Centre().qmgr(f"{APPS}set gang job_limit=2\n")
    assert handed_in(centre, application(centre, "anne sizes=2,4,8")).spec.ask.pes == 2


def test_a_queue_whose_requests_hold_no_pes_takes_no_applications():
    centre = Centre().qmgr(f"{APPS}create domain nqs kind=command\ncreate batch_queue scripts domain=nqs\n")
    with pytest.raises(Exception, match="scripts: domain nqs has kind=command, and its requests hold no PEs"):
        centre.qmgr("set default mpprun queue scripts")


@pytest.mark.parametrize("by", [ANNE, MAX])
def test_nobody_gives_a_request_a_job_class_that_there_is_not(by):
    centre = Centre().qmgr(APPS)
    [seq] = centre.submit("anne")
    [failed] = centre.ask(cm.ModifyRequest((centre.id(seq),), {"job_class": "fast"}), by)["failed"]
    assert failed["text"] == "there is no job class fast; job classes: production, interactive"
    assert centre.request(seq).spec.job_class == ""


def test_a_manager_gives_a_request_a_class_that_is_not_open_to_its_owner():
    centre = Centre().qmgr(f"{APPS}create class benchmark users=ben\n")
    [seq] = centre.submit("anne")
    command = cm.ModifyRequest((centre.id(seq),), {"job_class": "benchmark"})
    [failed] = centre.ask(command, ANNE)["failed"]
    assert "not open to anne" in failed["text"]
    centre.ask(command, MAX)
    assert centre.request(seq).spec.job_class == "benchmark"


def test_a_class_that_is_taken_back_is_the_sites_default_again():
    centre = Centre().qmgr(APPS)
    [seq] = centre.submit("anne class=interactive")
    centre.qmgr(f"modify request {centre.id(seq)} job_class=none")
    assert centre.request(seq).spec.job_class == ""


@pytest.mark.parametrize("text", [APPS, APPS + "set default batch_request queue apps\n"])
def test_the_queue_is_named_once_there_are_queues(text):
    def built(text: str) -> Settings:
        settings = Settings()
        for parsed in parse_text(text):
            assert isinstance(parsed.command, cm.Configure)
            apply_changes(settings, parsed.command.changes)
        return settings

    printed = print_settings(built(text))
    assert built(printed) == built(text)
    assert printed.index("create batch_queue apps") < printed.index("set default mpprun queue apps")


def test_a_pipe_queue_passes_on_by_whether_somebody_waits_at_a_terminal():
    centre = Centre(pes=4).qmgr(APPS)
    centre.qmgr(
        "create domain talk pes=3 takes=interactive\ncreate batch_queue now order=class domain=talk\n"
        "create pipe_queue in destination=(now, apps)\nenable queue all\nstart queue all\n"
        "set default mpprun queue in"
    )
    [around] = centre.submit("anne")
    at_terminal, inside = application(centre), application(centre, within=centre.id(around))
    assert handed_in(centre, at_terminal).queue == "now"
    assert handed_in(centre, inside).queue == "apps"


def test_commands_wait_for_so_many_requests_of_a_user_and_no_more(monkeypatch):
    monkeypatch.setattr(submit, "WAITED_FOR_MAX", 3)
    centre = Centre().qmgr(APPS).qmgr("stop queue apps")
    [other] = centre.submit("anne queue=batch")
    first, *_ = [handed_in(centre, application(centre)) for _ in range(3)]
    assert centre.refused(application(centre), ANNE).kind == "many_waited_for"
    assert handed_in(centre, application(centre), BEN)
    centre.ask(cm.Delete((centre.id(first.seq), centre.id(other))), ANNE)
    assert handed_in(centre, application(centre))
    item_ = application(centre, caller=None, session=(77, 1234)).items[0]
    assert centre.refused(cm.Submit((item_,) * 4), MAX).kind == "many_waited_for"
