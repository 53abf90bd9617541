"""Settings: all of a command's changes or none, files of queues.d as one transaction."""

import pytest
from engine.harness import BEN, PLAIN, Centre
from engine.story import play

from nqspy.core.no_exits import NoExits
from nqspy.core.resource_health import PROBES
from nqspy.engine import loop
from nqspy.engine.handlers.settings import commit_changes
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import registry
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.qmgr.parser import parse_text


def file(name: str, text: str, digest: str = ""):
    commands = tuple(cm.encode(p.command) | {"at": f", line {p.line}"} for p in parse_text(text, name))
    return name, digest or str(hash(text)), commands


STORIES = {
    "the default queue goes once another is": """qmgr set default batch_request queue batch
        qmgr disable queue batch | stop queue batch; deny delete queue batch -> bad_settings
        qmgr set no_default batch_request queue | delete queue batch
        deny set queue batch nice=3 -> bad_setting""",
    "neither pipe queues nor groups go in a circle": """qmgr create pipe_queue p destination=(batch)
        qmgr create pipe_queue q destination=(p); deny set destination=(q) p -> bad_settings
        qmgr create group a share=1 | create group b parent=a; deny set group a parent=b -> bad_settings""",
    "a queue is deleted when it is closed and empty only": """qmgr create batch_queue old | enable queue old
        submit anne queue=old; deny delete queue old -> bad_setting; qmgr disable queue old
        deny delete queue old -> bad_setting; delete 1; qmgr delete queue old""",
    "a group is deleted where nothing is left of it": """qmgr create group ymp
        qmgr create group d1 parent=ymp members=(anne); deny delete group ymp -> group_is_parent
        submit anne, anne, anne held; deny delete group d1 -> group_has_requests; delete 1+2+3 kill; later 5m
        qmgr delete group d1 | delete group ymp""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title])


def test_a_group_that_comes_back_in_the_same_step_may_go():
    centre = Centre(PLAIN + "create group d1 members=(anne)\n")
    centre.submit("anne held")
    gone = ("delete group d1", "create group d1 share=3 members=(anne)")
    centre.ask(cm.Configure(tuple(c for text in gone for c in centre.command(text).changes)))
    assert centre.site.settings.groups["d1"].share == 3


def test_a_check_changes_nothing_and_what_can_lead_nowhere_is_warned_of():
    centre = Centre()
    n, change = centre.count(), Change("create", "queue/p", {"kind": "pipe"})
    answer = centre.ask(cm.Configure((change,), check_only=True))
    assert (answer["changed"], len(answer["warnings"]), centre.count()) == (1, 1, n)


class Doors(NoExits):
    """One exit with one setting."""

    def declared(self):
        return {"memory": {"hmax": "memory"}}

    def check_setting(self, exit, setting, text):
        if (exit, setting) != ("memory", "hmax"):
            raise BadValue(f"exit {exit} has no setting {setting}")


def test_settings_of_exits_are_checked_by_the_exits():
    centre = Centre(exits=Doors())
    centre.qmgr("set exit memory hmax=115mw\ndisable exit memory\nset exit memory budget=80ms")
    found = centre.site.settings.exits["memory"]
    assert (found.values, found.enabled, found.budget) == ({"hmax": "115mw"}, False, 80)
    for wrong, told in (("set exit memory nmax=3", "nmax"), ("enable exit gun", "loaded: memory")):
        assert told in str(centre.refused(centre.command(wrong)))


def _texts():
    """Each setting that is a text or a list of texts, and the value that it gets."""
    for kind in registry.objects():
        place = f"{kind.head}/batch" if kind.named else kind.head
        for path, info in kind.known.items():
            if info.unit in ("name", "names", "text", "crons", "amounts"):
                for char in "\x1b\x85\u2028" + ("\n\r" if info.unit != "text" else ""):
                    yield f"{place}/{path}", info.unit in ("names", "crons", "amounts"), char
    for char in "\n\r\x1b\x85\u2028":
        yield "managers", True, char
    for char in "\x1b\x85\u2028":
        yield "exit/memory/limit", False, char


@pytest.mark.parametrize(("path", "listed", "char"), list(_texts()))
def test_no_setting_has_control_characters(path, listed, char):
    centre = Centre()
    hostile = f"anne{char}set managers=(eve:m)"
    values = [[hostile], [hostile, "ben"]] if listed else [hostile]
    changes = [Change("set", path, value) for value in values]
    changes += [Change("add", path, value) for value in values if listed]
    kind, name, below = registry.split(path)
    if name:
        changes.append(Change("create", f"{kind.head}/new", {below: values[-1]}))
    for change in changes:
        refused = centre.refused(cm.Configure((change,)))
        assert (refused.code, str(refused).isprintable()) == ("bad_value", True)


def test_a_command_may_have_the_line_ends_that_the_command_language_can_write():
    centre = Centre().qmgr(r'create probe nfs command="tr -d \'\n\' < a"')
    assert PROBES.all(centre.site.settings)["nfs"].command == "tr -d '\n' < a"


def test_no_name_in_a_path_and_no_command_of_a_shift_has_them_either():
    centre = Centre()
    inner = {"cmd": "configure", "changes": [{"op": "set", "path": "global/users", "value": ["a\nb"]}]}
    for change in (
        Change("set", "exit/memory/li\nmit", "3"),
        Change("create", "queue/a\nb", {}),
        Change("set", "managers", {"an\nne": "m"}),
        Change("create", "shift/night", {"when": ["0 22 * * *"], "commands": [inner]}),
    ):
        said = str(centre.refused(cm.Configure((change,))))
        assert said.isprintable()


# ---------------------------------------------------------------- queues.d


def test_a_new_measure_of_use_takes_nothing_back_from_what_runs():
    centre = Centre(length=600)
    centre.submit("anne pes=2")
    centre.later(seconds=100)
    centre.qmgr("create batch_queue x")
    centre.submit("anne at=0")
    before = centre.site.accounts["g:default"].value
    centre.qmgr("set usage charge=pe_wall")
    centre.later(seconds=500)
    assert centre.state(1) == "ended"
    assert before < centre.site.accounts["g:default"].value < before + 1_001_000


def test_files_are_applied_in_order_as_one_change():
    centre = Centre("")
    answer = centre.ask(
        cm.ApplyFiles((file("10", "create batch_queue a"), file("20", "set run_limit=3 a\nstart queue a")))
    )
    assert answer == {"changed": 3}
    assert centre.site.settings.queues["a"].run_limit == 3
    assert len(centre.events(ev.SettingsChanged)) == 1
    assert set(centre.site.files) == {"10", "20"}
    centre.is_sound()


def test_an_error_in_any_line_of_any_file_leaves_everything_as_it_was():
    centre = Centre("")
    for place, *files in (
        ("20, line 2: ", file("10", "create batch_queue a"), file("20", "\nset run_limit=3 b")),
        ("30, line 1: ", file("30", "delete request 17")),
    ):
        refusal = centre.refused(cm.ApplyFiles(tuple(files)))
        assert (refusal.kind, str(refusal).startswith(place)) == ("in_file", True)


def test_only_files_that_changed_are_applied_again():
    one, two = file("10", "create batch_queue a run_limit=1"), file("20", "create batch_queue b run_limit=1")
    centre = Centre("")
    centre.ask(cm.ApplyFiles((one, two)))
    centre.qmgr("set run_limit=5 a\nset run_limit=5 b")
    n = centre.count()
    assert centre.ask(cm.ApplyFiles((one, two))) == {"changed": 0}
    assert centre.count() == n
    centre.ask(cm.ApplyFiles((one, file("20", "create batch_queue b run_limit=2"))))
    queues = centre.site.settings.queues
    assert (queues["a"].run_limit, queues["b"].run_limit) == (5, 2)


def test_after_the_files_the_shift_in_force_is_set_once_more_but_its_orders_are_not():
    text = (
        'create batch_queue a\ndefine shift all when=("0 0 * * *")\nset run_limit=8 a\npurge queue a\nend\n'
    )
    centre = Centre("", pes=1)
    centre.ask(cm.ApplyFiles((file("10", text + "enable queue a\n"),)))
    assert centre.site.settings.queues["a"].run_limit == 8
    centre.submit("anne queue=a")
    centre.ask(cm.ApplyFiles((file("10", text + "set run_limit=2 a\n"),)))
    assert centre.site.settings.queues["a"].run_limit == 8
    assert centre.state(1) == "queued"
    assert len(centre.events(ev.ShiftChanged)) == 1


def test_a_site_with_odd_names_from_earlier_times_goes_on(monkeypatch):
    """An earlier daemon took them: its change is in the journal."""
    odd = (Change("set", "server/name", "a b"), Change("create", "probe/none", {"file": "/x"}))
    centre = Centre()
    with monkeypatch.context() as earlier:
        earlier.setitem(
            loop.HANDLERS, cm.PurgeQueue, lambda tx, _, caller: commit_changes(tx, odd, caller.user, "qmgr")
        )
        centre.ask(cm.PurgeQueue("batch"))
    centre.sim.restart()
    assert centre.site.name == "a b"
    centre.qmgr("set global run_limit=3\ndelete probe none\nset server name=ymp")
    assert centre.site.name == "ymp"


def test_files_and_shifts_may_take_out_what_is_out_already():
    """They are applied again and again."""
    text = 'define shift all when=("0 0 * * *")\nremove users=(anne) a\nend\n'
    centre = Centre("")
    centre.ask(cm.ApplyFiles((file("10", "create batch_queue a\nremove users=(ben) a\n" + text),)))
    assert centre.site.shift.current == "all"


def test_refusals_name_gates_by_the_words_that_were_typed():
    centre = Centre()
    gates = (
        "enable queue all",
        "disable queue batch",
        "start queue batch",
        "stop queue all",
        "disable exit x",
    )
    for text in gates:
        assert f" {text} " in str(centre.refused(centre.command(text), BEN))
