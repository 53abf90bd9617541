"""Every command of the wire by everybody: one table. A command without a row fails the test."""

import pytest
from daemon.inner import PEOPLE, item

from nqspy.answers.dispatcher import DIRECT, QUESTIONS
from nqspy.model.commands import COMMANDS

ALL = "root, home's owner, manager, operator, owner, other, unknown uid"
MANAGERS = "root, home's owner, manager"
OPERATORS = f"{MANAGERS}, operator"
OWNERS = f"{OPERATORS}, owner"
NOBODY = ""
DAY = 'define shift day when=("30 8 * * *")\nset grace 10\nend'


def _set(path, value, op="set"):
    return {"changes": [{"op": op, "path": path, "value": value}]}


TABLE = [
    ("submit", ALL, lambda id: {"items": [item()]}),
    ("submit", MANAGERS, lambda id: {"items": [item(user="daemon")]}),
    ("submit", "root", lambda id: {"items": [item(user="root")]}),
    ("configure", OPERATORS, lambda id: _set("queue/spare/run_limit", 3)),
    ("configure", OPERATORS, lambda id: _set("queue/spare/started", False)),
    ("configure", MANAGERS, lambda id: _set("queue/spare/user_limit", 3)),
    ("configure", MANAGERS, lambda id: _set("managers", ["olga:o"], "add")),
    ("configure", MANAGERS, lambda id: _set("server/privacy", "all")),
    ("configure", MANAGERS, lambda id: _set("mail/command", None)),
    ("configure", MANAGERS, lambda id: _set("shift/night/when", ["0 21 * * *"])),
    ("configure", MANAGERS, lambda id: _set("shift/night/when", ["1 21 * * *"], "add")),
    ("configure", MANAGERS, lambda id: _set("queue/spare/users", ["root"], "remove")),
    ("configure", MANAGERS, lambda id: _set("global/user_queued_limit", 100_000)),
    ("configure", MANAGERS, lambda id: _set("usage/period", 43_200_000)),
    ("configure", MANAGERS, lambda id: _set("calendar/extra", ["2026-12-24"])),
    ("configure", MANAGERS, lambda id: _set("swap_control/enabled", False)),
    ("configure", MANAGERS, lambda id: _set("backup/keep", 7)),
    ("correct_usage", MANAGERS, lambda id: {"group": "default", "ms": 1}),
    ("delete", OWNERS, lambda id: {"ids": [id]}),
    ("hold", OWNERS, lambda id: {"ids": [id]}),
    ("hold", OPERATORS, lambda id: {"ids": [id], "letter": "s"}),
    ("release", OWNERS, lambda id: {"ids": [id]}),
    ("move", OWNERS, lambda id: {"ids": [id], "queue": "spare"}),
    ("move", OPERATORS, lambda id: {"ids": [], "queue": "spare", "source": "spare"}),
    ("modify", OWNERS, lambda id: {"ids": [id], "values": {"priority": 1}}),
    ("modify", MANAGERS + ", owner", lambda id: {"ids": [id], "values": {"output/stdout": "/tmp/x"}}),
    ("modify", OPERATORS, lambda id: {"ids": [id], "values": {"holds": "o"}}),
    ("rerun", OWNERS, lambda id: {"ids": [id]}),
    ("signal", OWNERS, lambda id: {"ids": [id], "signal": 0}),
    ("message", OWNERS, lambda id: {"ids": [id], "message": "hello"}),
    ("exchange", OWNERS, lambda id: {"ids": [id, id]}),
    ("suspend", OPERATORS, lambda id: {"ids": [id]}),
    ("suspend", OPERATORS, lambda id: {"ids": [id], "resume": True}),
    ("schedule", OPERATORS, lambda id: {"ids": [id], "place": "now"}),
    ("abort_queue", OPERATORS, lambda id: {"queue": "spare"}),
    ("purge_queue", OPERATORS, lambda id: {"queue": "spare"}),
    ("switch_shift", OPERATORS, lambda id: {"shift": "night"}),
    ("automatic_shift", OPERATORS, lambda id: {}),
    ("reload_exits", MANAGERS, lambda id: {}),
    ("reload_queues", MANAGERS, lambda id: {}),
    ("shutdown", OPERATORS, lambda id: {"mode": "sideways"}),
    ("qmgr", ALL, lambda id: {"script": "show all"}),
    ("qmgr", ALL, lambda id: {"script": "show managers"}),
    ("qmgr", OPERATORS, lambda id: {"script": "stop queue spare"}),
    ("qmgr", MANAGERS, lambda id: {"script": "snap"}),
    ("qmgr", MANAGERS, lambda id: {"script": "snap /tmp/here"}),
    ("qmgr", MANAGERS, lambda id: {"script": "set managers = (max:m, olga:o)"}),
    ("qmgr", MANAGERS, lambda id: {"script": DAY}),
    ("qmgr", MANAGERS, lambda id: {"script": "set grace 10", "check": True}),
    ("qmgr", MANAGERS, lambda id: {"script": "set grace 10", "plan": True}),
    ("qstat", ALL, lambda id: {"text": "table"}),
    ("qstat", ALL, lambda id: {"text": "why", "operands": [id]}),
    ("qselect", ALL, lambda id: {"criteria": [["u", "anne"]]}),
    ("pbsnodes", ALL, lambda id: {}),
    ("list_requests", ALL, lambda id: {"ids": [id]}),
    ("wait", ALL, lambda id: {"ids": ["1"]}),
    ("choose", ALL, lambda id: {"operands": [id]}),
    ("graph", ALL, lambda id: {"ids": [id]}),
    ("events", ALL, lambda id: {"after": 0}),
    ("limits", ALL, lambda id: {"text": "qlimit"}),
    ("cat", OWNERS, lambda id: {"request": id}),
    ("status", ALL, lambda id: {}),
    ("ping", ALL, lambda id: {}),
    ("now", ALL, lambda id: {}),
    ("counters", ALL, lambda id: {}),
    ("report_night", ALL, lambda id: {}),
    ("report_quota", ALL, lambda id: {}),
    ("report_swf", ALL, lambda id: {}),
    ("report_usage", ALL, lambda id: {}),
    ("report_estimates", ALL, lambda id: {}),
    ("gangster", ALL, lambda id: {}),
    ("exits_list", ALL, lambda id: {}),
    ("exits_loaded", MANAGERS, lambda id: {}),
    ("exits_trace", ALL, lambda id: {"request": id}),
    *((cmd, NOBODY, lambda id: {}) for cmd in ("apply_files", "show", "why")),
]  # fmt: skip
"""Command, who may, and the message for a waiting request of anne's. The last three are the daemon's own."""


def test_every_command_of_the_wire_has_its_row():
    rows = {cmd for cmd, _, _ in TABLE}
    assert {*COMMANDS, *DIRECT, *QUESTIONS} - rows == set()
    assert rows - {*COMMANDS, *DIRECT, *QUESTIONS} == set()


@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row[0]}" for n, row in enumerate(TABLE)])
def test_who_may_is_as_the_table_says(inner, row):
    cmd, allowed, message = row
    if inner.daemon.engine.site.next_seq == 1:
        [first] = inner.submit("root")
        inner.result("root", "delete", ids=[first])
    before = inner.qmgr("snap")
    for role in sorted(PEOPLE, key=allowed.split(", ").__contains__):  # who may not comes first
        [id] = inner.submit("owner")
        answer = inner.ask(role, cmd, **message(id))
        if allowed == NOBODY:
            assert answer["error"]["code"] == "unknown_command", role
        else:
            assert _may(answer) == (role in allowed.split(", ")), (role, answer)
        if not _may(answer):
            assert inner.qmgr("snap") == before, f"{role} changed something"
            assert inner.result("root", "list_requests", ids=[id])[0]["state"] == "queued"


def _may(answer):
    text = str(answer.get("error", "")) + str(answer.get("err", "")) + str(answer.get("result", ""))
    return "Unauthorized Request" not in text and "only root may" not in text


# ---------------------------------------------------------------- no one grants more than they have
def test_an_operator_gets_no_further_by_way_of_shifts_or_files(inner):
    command = {"cmd": "configure", "changes": [{"op": "set", "path": "managers", "value": {"olga": "m"}}]}
    changes = [
        {"op": "create", "path": "shift/mine", "value": {"when": ["5 5 * * *"], "commands": [command]}}
    ]
    assert inner.refusal("operator", "configure", changes=changes)[0] == "not_permitted"
    assert inner.refusal("operator", "configure", changes=[*changes], source="calendar")[0] == "not_permitted"


def test_whose_a_submission_is_it_does_not_say(inner):
    forged = {"user": "root", "uid": 0, "caller": {"user": "root", "trusted": True}, "trusted": True}
    items = [item(owner="root", uid=0, gid=0, group="staff")]
    [own] = inner.result("other", "submit", items=items, **forged)["ids"]
    spec = inner.daemon.engine.site.requests[int(own.partition(".")[0])].spec
    assert (spec.owner, spec.uid, spec.gid) == ("ben", 1004, 100)


def test_a_manager_who_is_not_root_runs_nothing_as_root(inner):
    for role, more in (("manager", {}), ("home's owner", {"uid": 1001})):
        assert inner.refusal(role, "submit", items=[item(user="root", **more)])[0] == "not_permitted"


WAYS = (
    "create probe p command=/tmp/program",
    "create probe p file=/dev/watchdog",
    "create probe p tcp=a:1\nset probe p tcp=none command=/tmp/program",
    "set mail command=/tmp/program",
    "set mail /tmp/program",
    "set mail sendmail=/tmp/program",
    "set mail smtp=collector:25",
    "set shell_strategy fixed=(/tmp/shell)",
    'define shift mine when=("5 5 * * *")\nset mail command=/tmp/program\nend',
    'define shift mine when=("5 5 * * *")\nset shell_strategy fixed=(/tmp/shell)\nend',
)
"""What would run or be opened as the daemon, or as everybody."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [{}, {"atomic": True}, {"check": True}, {"plan": True}])
def test_a_manager_names_no_program_and_no_path_that_the_daemon_uses(inner, way, how):
    assert not _may(inner.ask("manager", "qmgr", script=way, **how))
    assert "/tmp" not in inner.qmgr("snap")
    inner.ask("root", "qmgr", script="delete probe p")


@pytest.mark.parametrize("role", ["root", "home's owner"])
@pytest.mark.parametrize("way", WAYS)
def test_the_homes_owner_does(inner, way, role):
    inner.result(role, "qmgr", script=f"{way}\ndelete shift mine" if "shift" in way[:12] else way, check=True)


def test_neither_by_other_names_of_the_same_settings(inner):
    for path, value in (
        ("server/mail", "/tmp/program"),
        ("probe/*/command", "/tmp/program"),
        ("probe/p/command", "/tmp/program"),
        ("server/shell_strategy", "fixed=/tmp/shell"),
    ):
        for op in ("set", "add", "remove", "create"):
            changes = [{"op": op, "path": path, "value": value}]
            code, text = inner.refusal("manager", "configure", changes=changes)
            assert code == "not_permitted", (path, op, text)
    commands: list[object] = []
    for _ in range(3):
        program = {"op": "set", "path": "mail/command", "value": "/tmp/program"}
        value = {"when": ["5 5 * * *"], "commands": commands}
        inner_changes = [{"op": "create", "path": "shift/deep", "value": value} if commands else program]
        commands = [{"cmd": "configure", "changes": inner_changes}]
    deep = [{"op": "create", "path": "shift/mine", "value": {"when": ["6 6 * * *"], "commands": commands}}]
    assert inner.refusal("manager", "configure", changes=deep)[0] == "not_permitted"


@pytest.mark.parametrize("by", ["manager", "root"])
@pytest.mark.parametrize("op", ["set", "create", "add"])
def test_nor_by_the_text_of_a_shift_which_a_snap_would_write_out(inner, by, op):
    """`snap` gives lines as they stand, and a new home runs what stands there as its owner."""
    lines = ['set grace 10\nend\nset mail command="/tmp/program"']
    whole = {"op": op, "path": "shift/mine", "value": {"when": ["6 6 * * *"], "lines": lines, "commands": []}}
    for change in (whole, {"op": op, "path": "shift/night/lines", "value": lines}):
        assert inner.refusal(by, "configure", changes=[change])[0] == "bad_value"
    assert "/tmp/program" not in inner.qmgr("snap")


def test_what_else_of_these_settings_stays_a_managers(inner):
    for way in ("create probe p tcp=licence:27000", "set mail limit=3", "set mail from=nqs@example.org",
                "set mail none", "set shell_strategy login"):  # fmt: skip
        inner.result("manager", "qmgr", script=way)


def test_the_shell_of_a_request_is_for_whom_might_have_handed_it_in(inner):
    [roots] = inner.submit("root")
    [annes] = inner.submit("owner")
    shell = {"shell": "/tmp/shell"}
    [failed] = inner.result("manager", "modify", ids=[roots], values={"umask": 0})["failed"]
    assert failed["code"] == "not_permitted", "others could write what root's job writes"
    for role in ("home's owner", "manager", "operator"):
        [failed] = inner.result(role, "modify", ids=[roots], values=shell)["failed"]
        assert failed["code"] == "not_permitted", (role, failed)
    [failed] = inner.result("operator", "modify", ids=[annes], values=shell)["failed"]
    assert failed["code"] == "not_permitted"
    assert inner.result("operator", "modify", ids=[roots, annes], values={"priority": 3})["done"]
    for role in ("manager", "owner"):
        assert inner.result(role, "modify", ids=[annes], values=shell)["done"], role
    assert inner.result("root", "modify", ids=[roots], values=shell)["done"]


def test_output_of_an_ended_request_is_its_owners_business(inner):
    [id] = inner.submit("owner")
    inner.result("owner", "delete", ids=[id])
    assert inner.refusal("other", "cat", request=id)[0] == "not_permitted"
    assert inner.refusal("owner", "cat", request=id)[0] == "has_ended"


def test_an_identifier_printed_before_the_home_was_renamed_still_resolves(fresh):
    [old] = fresh.submit("owner")
    seq, _, host = old.partition(".")
    fresh.qmgr("set server name=first", "set server name=cluster")
    for name in (host, "first", "cluster", "cluster.example.org"):
        answer = fresh.result("owner", "hold", ids=[f"{seq}.{name}"])
        assert answer["failed"] == [], name
        assert fresh.result("owner", "release", ids=[f"{seq}.{name}"])["failed"] == []
    unknown = ("unknown_request", f"Unknown Job Id {seq}.elsewhere")
    assert fresh.refusal("owner", "delete", ids=[f"{seq}.elsewhere"]) == unknown
    assert fresh.refusal("owner", "cat", request=f"{seq}.elsewhere") == unknown
    assert fresh.submit("owner", after=[{"seq": int(seq), "word": "ok"}])[0].endswith(".cluster")
    assert fresh.result("owner", "delete", ids=[old])["failed"] == []
