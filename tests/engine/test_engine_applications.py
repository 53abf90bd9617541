"""Applications at the counter: the queue that takes them, whose account is charged, what can never run."""

from dataclasses import replace

import pytest
from engine.harness import ANNE, Centre, item

from nqspy.model import commands as cm
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


def test_its_account_is_that_of_the_request_around_it_if_that_is_its_owners():
    centre = Centre().qmgr(APPS)
    [around] = centre.submit("anne account=deep-sea")
    inside = application(centre, within=centre.id(around))
    assert handed_in(centre, inside).spec.account == "deep-sea"
    assert handed_in(centre, inside, BEN).spec.account is None
    assert handed_in(centre, application(centre, within="99.nowhere")).spec.account is None


def test_one_that_its_class_can_never_load_is_refused_and_a_batch_request_waits():
    centre = Centre().qmgr(APPS)
    large = application(centre, "anne pes=2", job_class="interactive")
    said = "2 PEs can never be given to one of job class interactive; at most 1 can"
    assert str(centre.refused(large, ANNE)) == said
    batch = application(centre, "anne pes=2 queue=apps", job_class="interactive", caller=None)
    assert handed_in(centre, batch).state.name == "QUEUED"


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
