"""Settings: all changes of a command or none, files of queues.d as one transaction, and refusals."""

import pytest
from engine.harness import BEN, PLAIN, Centre, observable
from engine.story import play
from engine.test_engine_consumables import LAB
from engine.test_engine_domains import TWO
from engine.test_engine_health import NIGHT

from nqspy.core.no_exits import NoExits
from nqspy.core.resource_health import PROBES
from nqspy.engine import loop
from nqspy.engine.handlers.settings import commit_changes
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import registry
from nqspy.model.errors import BadValue, NqspyError
from nqspy.model.events import Change
from nqspy.model.queues import Queue, is_heeded, without_effect
from nqspy.model.tree import declared
from nqspy.qmgr import show
from nqspy.qmgr.parser import parse_text
from nqspy.qmgr.printer import print_settings


def file(name: str, text: str, digest: str = ""):
    commands = tuple(cm.encode(p.command) | {"at": f", line {p.line}"} for p in parse_text(text, name))
    return name, digest or str(hash(text)), commands


STORIES = {
    "the default queue goes once another is": """qmgr set default batch_request queue batch
        qmgr disable queue batch | stop queue batch; deny delete queue batch -> bad_settings
        qmgr set no_default batch_request queue | delete queue batch
        deny set queue batch nice=3 -> bad_setting""",
    "only known ways to choose a shell": """deny set server shell_strategy=fred -> bad_setting
        deny set server shell_strategy="fixed=sh" -> bad_setting; qmgr set server shell_strategy=free""",
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
    commands = ("delete group d1", "create group d1 share=3 members=(anne)")
    centre.ask(cm.Configure(tuple(c for text in commands for c in centre.command(text).changes)))
    assert centre.site.settings.groups["d1"].share == 3


def test_a_check_changes_nothing_and_what_can_lead_nowhere_is_warned_of():
    centre = Centre()
    n, change = centre.count(), Change("create", "queue/p", {"kind": "pipe"})
    answer = centre.ask(cm.Configure((change,), check_only=True))
    assert (answer["changed"], len(answer["warnings"]), centre.count()) == (1, 1, n)


class Doors(NoExits):
    """Exits with one exit that has one setting."""

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
    for wrong, part in (("set exit memory nmax=3", "nmax"), ("enable exit gun", "exits: memory")):
        assert part in str(centre.refused(centre.command(wrong)))


def _texts():
    """Yield each setting that is a text or a list of texts, with a value for it."""
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
        text = str(centre.refused(cm.Configure((change,))))
        assert text.isprintable()


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
    """An earlier daemon accepted these names: the change is in the journal."""
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
    """They are applied again and again, so removing a removed name is no error."""
    text = 'define shift all when=("0 0 * * *")\nremove users=(anne) a\nend\n'
    centre = Centre("")
    centre.ask(cm.ApplyFiles((file("10", "create batch_queue a\nremove users=(ben) a\n" + text),)))
    assert centre.site.shift.current == "all"


def test_refusals_name_gates_by_the_words_that_were_typed():
    centre = Centre()
    gates = (
        "enable queue all", "disable queue batch", "start queue batch", "stop queue all", "disable exit x",
    )  # fmt: skip
    for text in gates:
        assert f" {text} " in str(centre.refused(centre.command(text), BEN))


# ---------------------------------------------------------------- what makes no sense is refused
SHIFTS = 'define shift day when=("30 8 * * mon-fri")\nset run_limit=1 batch\nend\n' + (
    'define shift night when=("0 21 * * mon-fri")\nset run_limit=5 batch\nend\n'
)
SITES = {
    "plain": PLAIN + "create group g share=1\n" + SHIFTS, "domains": TWO, "consumables": LAB,
    "probes": NIGHT.format("hold"), "pipe": f"{PLAIN}create pipe_queue pp destination=(batch)\n",
}  # fmt: skip
TYPED = {
    "plain": """
        set default mpprun queue nowhere -> mpprun's queue nowhere does not exist
        set swap_control high=60 -> must be above low
        set swap_control on high=85 low=85 -> must be above low
        set calendar extra=(2026-12-24) workdays=(2026-12-24) -> is in extra and in workdays
        remove members=(ben) g -> present: none
        remove needs=(nope) batch -> present: none
        remove calendar extra=(2026-12-25) -> is not in extra days
        remove managers=(nobody) -> present: max, olga
    """,
    "domains": """
        create domain more pes=7-9 -> there is no PE 8; the machine has 8
        create domain more pes=3-4 -> PE 4 is in domain wide
        create domain more -> needs PEs
        create domain more pes=4-x -> '4-x' names no PEs
        create domain more pes=3-1 -> '3-1' names no PEs
        create domain wide pes=0 -> already exists
        create domain application pes=0 -> is always there
        create domain Application pes=0 -> is always there
        set domain application pes=0-3 -> is always there
        set domain * pes=0-3 -> is always there
        delete domain application -> is always there
        set machine pes=6 -> domain wide has PE 7
        delete domain wide -> queue day names domain wide
        set domain nowhere depth=2 -> there is no domain nowhere; domains: application, wide
        set domain wide smallest=5 largest=3 -> smallest=5 is above largest=3
        set domain application takes=jobs -> expected all, batch, interactive
        set domain wide depth=0 -> depth must be from 1 to 64
        set domain wide placement=random -> contiguous
        set domain wide features=(health, route) -> route is always on
        set domain wide features=select -> select is always on
        set domain wide features=(health, sw, x) -> expected health, shift_end, swap
        set domain wide features=(health -> expected
        create pipe_queue in destination=(day) domain=wide -> has no PEs and no domain
        set queue batch domain=nowhere -> there is no domain nowhere; domains: application, wide
        create domain 1st pes=0 -> is not a name for a domain
        set machine pes=8 shape=2x2x3 -> shape=2x2x2 would fit
        set machine shape=2x2x2 -> needs the number of PEs
        set machine shape=twisted -> is not a shape
        set machine pes_per_node=0 -> from 1 to 1024
        set machine offline=(8) -> there is no PE 8
        set machine pes=8 offline=(6-9) -> there is no PE 9
        set machine offline=(x) -> 'x' names no PEs
    """,
    "consumables": """
        create consumable x -> give its units
        create consumable x count=2 units=(a) -> not both
        set consumable gpu count=2 -> not both
        set consumable nope offline=(1) -> there is no consumable nope; consumables: gpu, matlab
        create consumable x units=(a/b) -> unit 'a/b'
        create consumable x units=(0, 0, 1) -> unit 0 is named twice
        set consumable gpu units=(0, 1, 0) -> unit 0 is named twice
        create consumable x count=1 env=LD_PRELOAD -> has another meaning
        create consumable x units=(noexec) env=SHELLOPTS -> has another meaning
        create consumable x count=1 env=NCPUS -> has another meaning
        create consumable x count=1 env=x-y -> is not a variable
        create consumable mem count=1 -> qsub reads -l mem=
        create consumable waltime count=1 -> as walltime= with a typing error
        create consumable x count=2 offline=(2) -> consumable x has no unit 2
        set consumable gpu offline=(7) -> consumable gpu has no unit 7
        set queue batch consumable_limit=(fpga=1) -> there is no consumable fpga
        set global consumable_user_limit=(fpga=1) -> there is no consumable fpga
        create probe p command=true units=fpga -> there is no consumable fpga
        create probe p file=/x units=gpu -> needs a command
    """,
    "probes": """
        create probe x -> it has none
        create probe x tcp=a:1 file=/x -> not tcp and file
        set probe nfs file=/x -> not command and file
        create probe x tcp=nowhere -> is not an address
        create probe x tcp=a:99999 -> is not an address
        create probe x http=ftp://a/ -> is not a URL
        create probe x http="http:///y" -> names no host
        create probe x http="https://" -> names no host
        create probe x http="http://:80/" -> names no host
        create probe x http="http://[::1" -> names no host
        create probe x http="http://a:99999/" -> names no host
        create probe x file=relative -> is not an absolute path
        create probe x command="  " -> must not be empty
        create probe x file=/x every=10ms -> at least 0.1s
        set queue night needs=(nfs, tape) -> needs probe tape
        create pipe_queue p needs=(nfs) -> a pipe queue runs nothing
    """,
    "pipe": """
        set queue pp user_limit=2
        set queue pp run_limit=2
        set queue pp memory_limit=1gb
        set queue pp consumable_user_limit=(gpu=1)
        set queue pp order=fcfs
        set queue pp backfill=none
        set per_request cpu_limit=100 pp
        set per_process memory_limit=1gb pp
        set loadonly pp
        set queue pp sched_factor time 5
        set queue pp workdir=submit
        set queue pp nice=3
        create pipe_queue p2 destination=(batch) run_limit=3
        set destination = (batch) batch
    """,
}
"""Commands, each with a part of its answer."""
LATE = {"when": ["5 5 * * *"]}
NO_QUEUE = cm.encode(cm.Configure((Change("set", "queue/nowhere/run_limit", 3),)))
FROM_THE_WIRE = [
    (Change("create", "queue/x", 5), ""), (Change("create", "queue/x", {"kind": "lorry"}), ""),
    (Change("create", "queue/*"), ""), (Change("create", "queue/1x"), ""),
    (Change("create", "queue/x/run_limit", {}), ""), (Change("set", "queue/batch", 3), ""),
    (Change("create", "queue/all", {}), "a word of qmgr"),
    (Change("create", "queue/All", {}), "a word of qmgr"),
    (Change("create", "domain/all", {"pes": ["0"]}), "a word of qmgr"),
    (Change("set", "queue/batch/users", "anne"), ""), (Change("set", "queue/batch/users", [1]), ""),
    (Change("add", "queue/batch/run_limit", "anne"), ""), (Change("add", "queue/batch/users", 7), ""),
    (Change("set", "queue/batch/run_limit", 2.5), ""), (Change("set", "queue/batch/run_limit", 2**70), ""),
    (Change("set", "queue/batch/run_limit", True), ""), (Change("set", "queue/batch/workdir", ["home"]), ""),
    (Change("delete", "queue/batch/users"), ""), (Change("delete", "global/run_limit"), ""),
    (Change("delete", "queue/batch"), "must be disabled and stopped"), (Change("set", "nonsense/x", 1), ""),
    (Change("set", "", 1), ""), (Change("set", "managers", 3), ""), (Change("set", "managers", ["a:x"]), ""),
    (Change("delete", "managers"), ""), (Change("set", "sched_factor/share", None), ""),
    (Change("set", "sched_factor/share", -1), ""), (Change("set", "usage/half_life", 0), ""),
    (Change("set", "usage/half_life", None), "needs a value"), (Change("set", "machine/pes", 0), ""),
    (Change("set", "swap_control/high", None), "needs a value"),
    (Change("set", "exit/gun/budget", 5), ""),
    (Change("set", "group/*/share", "many"), ""), (Change("set", "server/timezone", "Mars/Olympus"), "zone"),
    *((Change("set", "server/name", name), "write up to 64") for name in ("a b", "a/b", "x" * 65, "ü", ".a")),
    *((Change("create", "domain/z", {"pes": p}), "") for p in ([0], [None], [[1]], [{}], [0.5], {"a": 1}, 7)),
    (Change("set", "calendar/holidays", "France"), "(nearest: FR"),
    (Change("set", "calendar/holidays", "FX"), "'FX' is not a country"),
    (Change("set", "calendar/holidays", "DE-XY"), "'XY' is not a part of DE"),
    (Change("set", "calendar/holidays", "DE-BX"), "write it like DE-HB (nearest: HB, BY, BW)"),
    (Change("set", "calendar/extra", ["24.12.2026"]), "is not a date"),
    (Change("set", "calendar/extra", 5), "words"),
    (Change("add", "calendar/workdays", ["2026-02-30"]), "is not a date"),
    (Change("add", "calendar/extra", "20261224"), "is not a date"),
    (Change("create", "calendar/x", {}), "only be set"),
    (Change("add", "calendar/holidays", ["FR"]), "add needs a list"), (Change("delete", "shift/none"), ""),
    (Change("create", "shift/x", {"when": 5}), ""), (Change("create", "shift/x", {}), "has no time"),
    (Change("create", "shift/x", {"when": ["0 21 * * *"]}), "both fire"),
    (Change("create", "shift/x", {"when": ["0 25 * * *"]}), "is not a cron time"),
    (Change("create", "shift/x", {"when": ["0 1 * *"]}), "has 4 fields"),
    (Change("set", "shift/day/when", ["0 21 * * mon"]), "both fire"),
    (Change("add", "shift/day/when", "nonsense"), "has 1 fields"),
    (Change("create", "shift/x", LATE | {"commands": [{"cmd": "nonsense"}]}), "cannot be read"),
    (Change("create", "shift/x", LATE | {"commands": [{"cmd": "configure"}]}), "cannot be read"),
    (Change("create", "shift/x", LATE | {"commands": 7}), "list of commands"),
    (Change("create", "shift/x", LATE | {"commands": [{"cmd": "shutdown"}]}), "cannot run shutdown"),
    (Change("create", "shift/x", LATE | {"commands": [NO_QUEUE]}), "shift x: there is no queue nowhere"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("site", "row"), [(site, row.strip()) for site, rows in TYPED.items() for row in rows.strip().split("\n")]
)
def test_what_makes_no_sense_is_refused_when_it_is_typed(site: str, row: str) -> None:
    centre = Centre(SITES[site], pes=8)
    command, _, text = row.partition(" -> ")
    before = observable(centre.site)
    with pytest.raises(NqspyError) as refusal:
        centre.qmgr(command)
    assert text in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert observable(centre.site) == before


@pytest.mark.parametrize(("change", "text"), FROM_THE_WIRE)
def test_what_nobody_would_type_is_refused(change: Change, text: str) -> None:
    refusal = Centre(SITES["plain"]).refused(cm.Configure((change,)))
    assert refusal.code in ("bad_value", "bad_settings", "not_permitted"), refusal.code
    assert text in str(refusal)
    assert "\n" not in str(refusal)
    assert "internal" not in str(refusal)


def test_of_several_changes_all_are_made_or_none() -> None:
    changes = (Change("set", "queue/batch/run_limit", 3), Change("set", "queue/nowhere/run_limit", 3))
    assert Centre().refused(cm.Configure(changes)).code == "bad_value"


# ---------------------------------------------------------------- what has no effect in a queue of its kind
PIPE = f"{PLAIN}create pipe_queue pp destination=(batch)\n"


@pytest.mark.parametrize(
    "line",
    ["set queue pp queued_limit=5", "set queue pp queued_limit user=5", "set queue pp priority=9",
     "set users = (anne) pp", "set queue pp age_from=submitted", "set queue * user_limit=2",
     "set queue pp user_limit=unlimited", "start queue pp", "enable queue pp"],
)  # fmt: skip
def test_what_has_one_is_taken(line: str) -> None:
    Centre(PIPE).qmgr(line)


def test_of_all_queues_it_is_set_where_it_has_an_effect() -> None:
    centre = Centre(PIPE)
    queues = centre.site.settings.queues
    centre.ask(cm.Configure((Change("set", "queue/pp/run_limit", 3),), upsert=True))
    assert [line.split()[0] for line in without_effect(queues.values())] == ["run_limit"]
    assert "run_limit" not in show.show_queue(centre.site.settings, ("pp",), long=True)
    centre.qmgr("set queue * user_limit=2")
    assert (queues["batch"].user_limit, queues["pp"].user_limit) == (2, None)
    centre.qmgr("set queue * run_limit=unlimited")
    assert list(without_effect(queues.values())) == []
    centre.qmgr('define shift s when="0 6 * * *"\nset queue * user_limit=2\nend')
    centre.is_sound()


def test_each_setting_of_a_queue_is_heeded_by_one_kind_at_least() -> None:
    assert all(is_heeded("batch", path) or is_heeded("pipe", path) for path in declared(Queue))
    assert not is_heeded("batch", "destinations")
    assert not is_heeded("pipe", "per_request/cpu_limit")


def test_old_settings_load_and_are_not_printed() -> None:
    centre = Centre(PIPE)
    centre.ask(cm.Configure((Change("set", "queue/pp/user_limit", 2),), upsert=True))
    assert centre.site.settings.queues["pp"].user_limit == 2
    centre.is_sound()
    assert "user_limit" not in print_settings(centre.site.settings)
    Centre(print_settings(centre.site.settings))
    centre.qmgr("set queue pp user_limit=unlimited")
