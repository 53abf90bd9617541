"""Every documented form of a command and what it becomes."""

import pytest

from nqspy.core.gate.units import LIMITS
from nqspy.model import commands as c
from nqspy.model.commands import Configure
from nqspy.model.ids import HOUR
from nqspy.model.units import UNLIMITED
from nqspy.qmgr.parser import ClientWord, Order, parse_text


def commands(text: str) -> list[Order]:
    return [parsed.command for parsed in parse_text(text)]


def changes(text: str) -> list[tuple[str, str, object]]:
    [command] = commands(text)
    assert isinstance(command, Configure)
    return [(change.op, change.path, change.value) for change in command.changes]


MB = 1024**2
NIGHT = {"kind": "batch", "priority": 20, "run_limit": 4}
BATCH = {"kind": "pipe", "priority": 10, "destinations": ["express", "normal", "night"]}

ONE_CHANGE = [
    ("create batch_queue night priority=20 run_limit=4", "create", "queue/night", NIGHT),
    ("create batch_queue q pipeonly user_limit=2", "create", "queue/q",
     {"kind": "batch", "pipeonly": True, "user_limit": 2}),
    ("create pipe_queue batch priority=10 destination=(express, normal, night)",
     "create", "queue/batch", BATCH),
    ("create pipe_queue batch priority=10 server=(/usr/lib/nqs/pipeclient -x) dest=(express normal night)",
     "create", "queue/batch", BATCH),
    ("create complex prime-time queues=(express, normal)", "create", "complex/prime-time",
     {"queues": ["express", "normal"]}),
    ("create complex = (express, normal) prime-time", "create", "complex/prime-time",
     {"queues": ["express", "normal"]}),
    ("create complex (express) prime-time user_limit=2", "create", "complex/prime-time",
     {"queues": ["express"], "user_limit": 2}),
    ("create group ymp share=80", "create", "group/ymp", {"share": 80}),
    ("create group d1 parent=ymp share=29", "create", "group/d1", {"parent": "ymp", "share": 29}),
    ("delete queue night", "delete", "queue/night", None),
    ("set run_limit=4 night", "set", "queue/night/run_limit", 4),
    ("set run_limit = unlimited night", "set", "queue/night/run_limit", None),
    ("set memory_limit = 115mw night", "set", "queue/night/memory_limit", 115 * 8 * MB),
    ("set nice_value_limit = 5 night", "set", "queue/night/nice", 5),
    ("set queue night run_limit=4", "set", "queue/night/run_limit", 4),
    ("set queue run_limit=4 night", "set", "queue/night/run_limit", 4),
    ("set queue run run_limit=4", "set", "queue/run/run_limit", 4),
    ("set run_limit=4 'all'", "set", "queue/all/run_limit", 4),
    ('start queue "all"', "set", "queue/all/started", True),
    ("set swap off", "set", "swap_control/enabled", False),
    ("set per_request mpp_time_limit=600 normal", "set", "queue/normal/per_request/wall_limit", 600_000),
    ("set per_r p = (unlimited) normal", "set", "queue/normal/per_request/permfile_limit", None),
    ("set global run_limit=6", "set", "global/run_limit", 6),
    ("set sched_factor share 20", "set", "sched_factor/share", 20),
    ("set queue night sched_factor share 20", "set", "queue/night/sched_factor/share", 20),
    ("set queue night sched_factor share default", "set", "queue/night/sched_factor/share", None),
    ("set default batch_request queue batch", "set", "default/queue", "batch"),
    ("set no_default batch_request queue", "set", "default/queue", None),
    ("set default mpprun queue apps", "set", "default/mpprun_queue", "apps"),
    ("set no_default mpprun queue", "set", "default/mpprun_queue", None),
    ("set timezone auto", "set", "server/timezone", None),
    ("set grace 10", "set", "server/grace", 10_000),
    ("set shell_strategy fixed=(/bin/sh)", "set", "server/shell_strategy", "fixed=/bin/sh"),
    ("set mail from=nqs@example.org", "set", "mail/sender", "nqs@example.org"),
    ("add members=(anne, bob) d1", "add", "group/d1/members", ["anne", "bob"]),
    ("remove members = anne d1", "remove", "group/d1/members", ["anne"]),
    ("set members=() d1", "set", "group/d1/members", []),
    ("rem q = (night) prime-time", "remove", "complex/prime-time/queues", ["night"]),
    ("delete dest (x) batch", "remove", "queue/batch/destinations", ["x"]),
    ("add g = (staff) night", "add", "queue/night/groups", ["staff"]),
    ("add managers = (anne:m, bob:o)", "add", "managers", ["anne:m", "bob:o"]),
    ("add managers anne:m bob:o", "add", "managers", ["anne:m", "bob:o"]),
    ("add m anne", "add", "managers", ["anne:m"]),
    ("set managers = (anne:m, bob:O)", "set", "managers", {"anne": "m", "bob": "o"}),
    ("delete managers = (anne:m, bob)", "remove", "managers", ["anne:m", "bob"]),
    ("enable queue night", "set", "queue/night/enabled", True),
    ("sto q night", "set", "queue/night/started", False),
    ("start queue all", "set", "queue/*/started", True),
    ("SET BACKUP EVERY = unlimited", "set", "backup/every", None),
    *((f"set group d3 limit={text}", "set", "group/d3/limit", value) for text, value in (
        ("20%", 20.0), ("20", 20.0), ("12.5%", 12.5), ("0", 0.0), ("unlimited", None))),
    ('set shift night when=("0 21 * * mon-fri", "0 20 * * 0")', "set", "shift/night/when",
     ["0 21 * * mon-fri", "0 20 * * 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "op", "path", "value"), ONE_CHANGE, ids=[row[0] for row in ONE_CHANGE])
def test_a_settings_command_becomes_one_change(text, op, path, value):
    assert changes(text) == [(op, path, value)]


SEVERAL = [
    ("set queue night run_limit=4 user_limit=2 group_limit=3 memory_limit=115mw pe_limit=64",
     {"queue/night/run_limit": 4, "queue/night/user_limit": 2, "queue/night/group_limit": 3,
      "queue/night/memory_limit": 115 * 8 * MB, "queue/night/pe_limit": 64}),
    ("set per_process cpu_limit=(600,590) normal",
     {"queue/normal/per_process/cpu_limit": 600_000, "queue/normal/per_process/cpu_warning": 590_000}),
    ("set per_p c (10:00 9:50) normal",
     {"queue/normal/per_process/cpu_limit": 600_000, "queue/normal/per_process/cpu_warning": 590_000}),
    ("set sched_factor share 0 cpu 6 memory 1 time 10",
     {"sched_factor/share": 0, "sched_factor/cpu": 6, "sched_factor/memory": 1, "sched_factor/time": 10}),
    ("set queue night sched_factor share 20 time 1 run_limit=4 per_request memory_limit=1mw memory_limit=2mw",
     {"queue/night/sched_factor/share": 20, "queue/night/sched_factor/time": 1, "queue/night/run_limit": 4,
      "queue/night/per_request/memory_limit": 8 * MB, "queue/night/memory_limit": 16 * MB}),
    ("set machine pes=8 memory=128mw", {"machine/pes": 8, "machine/memory": 1024 * MB}),
    ("set group d1 share=3 parent=x", {"group/d1/share": 3, "group/d1/parent": "x"}),
    ("set exit large_memory hmax=115mw nproc=4 budget=50ms",
     {"exit/large_memory/hmax": "115mw", "exit/large_memory/nproc": "4", "exit/large_memory/budget": 50}),
    ("set exit dependency queues=(night, normal)", {"exit/dependency/queues": "night,normal"}),
    ("set no_access night",
     {"queue/night/restricted": True, "queue/night/users": [], "queue/night/groups": []}),
    ("set unr night", {"queue/night/restricted": False, "queue/night/users": [], "queue/night/groups": []}),
    ("set swap_control on high=85 low=70.5 min_resident=120",
     {"swap_control/enabled": True, "swap_control/high": 85.0, "swap_control/low": 70.5,
      "swap_control/min_resident": 120_000}),
    ("set swap_control high=90%, small=8mb", {"swap_control/high": 90.0, "swap_control/small": 8 * MB}),
    ("start queue express, normal", {"queue/express/started": True, "queue/normal/started": True}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SEVERAL, ids=[row[0] for row in SEVERAL])
def test_several_attributes_are_one_command_with_several_changes(text, expected):
    found = changes(text)
    assert {path: value for _, path, value in found} == expected
    assert {op for op, _, _ in found} == {"set"}


OTHERS = [
    ("hold request 17", c.HoldRequests(("17",))),
    ("hold request 17[1-9:2,20] 18", c.HoldRequests(("17[1-9:2,20]", "18"))),
    ("rerun request 17[1,4].ymp,18", c.RerunRequests(("17[1,4].ymp", "18"))),
    ("move request=(17[1,3],18) night", c.MoveRequests(("17[1,3]", "18"), "night")),
    ("rel r 17[3].ymp 17[].ymp", c.ReleaseRequests(("17[3].ymp", "17[].ymp"))),
    ("delete request 17 18", c.Delete(("17", "18"))),
    ("suspend request 17", c.SuspendRequests(("17",))),
    ("resume request 17", c.SuspendRequests(("17",), resume=True)),
    ("move request = (17, 18) night", c.MoveRequests(("17", "18"), "night")),
    ("move queue normal night", c.MoveRequests((), "night", "normal")),
    ("modify request 17 cpu_limit=10:00 wall_limit=1h memory_limit=32mw pe_limit=4 nice=3 priority=5",
     c.ModifyRequest(("17",), {"ask/cpu": 600_000, "ask/wall": 3_600_000, "ask/memory": 256 * MB,
                               "ask/pes": 4, "ask/nice": 3, "priority": 5})),
    ("modify request 17 array_limit=5 pri=1", c.ModifyRequest(("17",), {"array/limit": 5, "priority": 1})),
    ("modify request 17[] array_limit=none", c.ModifyRequest(("17[]",), {"array/limit": None})),
    ("mod r 17 18 c=unlimited", c.ModifyRequest(("17", "18"), {"ask/cpu": UNLIMITED})),
    ("modify request 17 priority=-1024 process_limit=unlimited",
     c.ModifyRequest(("17",), {"priority": -1024, "ask/per_request/process_limit": -1})),
    ("modify request 17 memory_limit=none per_process memory_limit=2mb name=chain",
     c.ModifyRequest(("17",), {"ask/memory": None, "ask/memory_process": 2 * MB, "name": "chain"})),
    ("modify request 17 eligible=1970-01-01T01:00:10+01:00", c.ModifyRequest(("17",), {"eligible": 10_000})),
    ('modify request 17 eligible="noon tomorrow" queue=night',
     c.ModifyRequest(("17",), {"eligible": "noon tomorrow", "queue": "night"})),
    ("schedule request 17 18 now", c.ScheduleRequest(("17", "18"), "now")),
    ("sc r 17 nex", c.ScheduleRequest(("17",), "next")),
    ("schedule request 17 system", c.ScheduleRequest(("17",), "system")),
    ("ab q night 5", c.AbortQueue("night", 5)),
    ("purge queue night", c.PurgeQueue("night")),
    ("reload exits", c.ReloadExits()),
    ("switch shift night until=6:00", c.SwitchShift("night", "06:00")),
    ("set shift automatic", c.AutomaticShift()),
    ("shutdown", c.Shutdown()),
    ("shu drain", c.Shutdown("drain")),
    ("shutdown 30", c.Shutdown("requeue")),
    ("snap", c.ShowObject("snap")),
    ("sn /tmp/x.qmgr", c.ShowObject("snap", (), {"file": "/tmp/x.qmgr"})),
    ("show all", c.ShowObject("all")),
    ("sho q night normal", c.ShowObject("queue", ("night", "normal"))),
    ("show long queue night", c.ShowObject("queue", ("night",), {"long": True})),
    ("show shifts --next 14d", c.ShowObject("shifts", (), {"next": 14 * 86_400_000})),
    ("show shifts next=1h", c.ShowObject("shifts", (), {"next": 3_600_000})),
    *((f"show {what}", c.ShowObject(what)) for what in (
        "complex", "parameters", "managers", "limits_supported", "sched_factor", "shares", "shifts", "exits",
        "counters", "groups", "machine", "global")),
    ("set usage of group d3 12h", c.CorrectUsage("d3", 12 * HOUR)),
    ("set usage of group d3 +2h", c.CorrectUsage("d3", 2 * HOUR, True)),
    ("SE USAGE OF GROUP d3 -30min", c.CorrectUsage("d3", -HOUR // 2, True)),
    ("help", ClientWord("help")),
    ("he set queue", ClientWord("help", ("set", "queue"))),
    ("exit", ClientWord("exit")),
    ("q", ClientWord("quit")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "command"), OTHERS, ids=[row[0] for row in OTHERS])
def test_commands_about_requests_shifts_and_the_daemon(text, command):
    assert commands(text) == [command]


MANUAL = """\
ab q q; ad des = (a) q; rem des = (a) q; de des = (a) q; se des = (a) q; ad g = (a) q; ad u = (a) q
ad m a:m; se m = (a:m); de m a; ad q = (a) c; rem q = (a) c; cr b q pr = 1
cr p q pr = 1 s = (x) des = (a) pi r = 1; cr c = (q) c; de c c; de q q; de r 1; ho r 1; rel r 1
mov r = (1) q; mov q a b; mod r 1 nice = 2; di q q; en q q; sta q q; sto q all; pu q q
se com r = 1 c; se pr = 1 q; se r = 1 q; se u = 1 q; se g = 1 q; se per_p c = (1) q
se per_p m = (1) q; se per_p p = (1) q; se per_p t = (1) q; se per_r c = (1) q; se core = 1 q
se da = 1 q; se st = 1 q; se w = 1 q; se ni = 1 q; se def b pr 1; se def b q q; se no_d b q
se sh fi = (/bin/sh); se sh fr; se sh l; se no_a q; se un q; sho al; sho co; sho li; sho lo q
sho ma; sho pa; sho q; shu; sn; he; ex; q"""


@pytest.mark.parametrize("text", [part.strip() for part in MANUAL.replace("\n", ";").split(";")])
def test_the_manuals_shortest_spellings_suffice(text):
    assert len(commands(text)) == 1


def test_blank_lines_and_comments_are_no_commands():
    assert commands("") == commands("   # nothing") == commands("! nothing") == []
    assert changes("start queue q # now") == [("set", "queue/q/started", True)]


@pytest.mark.parametrize(
    ("text", "way", "value"),
    [
        ('set mail "/usr/sbin/sendmail -t"', "command", "/usr/sbin/sendmail -t"),
        ("SET MAI = /bin/post", "command", "/bin/post"),
        ('set mail command="/bin/post -v"', "command", "/bin/post -v"),
        ("set mail sendmail=/usr/sbin/sendmail", "sendmail", "/usr/sbin/sendmail"),
        ("set mail smtp=post.example.org:25", "smtp", "post.example.org:25"),
        ("set mail none", None, None),
        ('set mail "a \\"b\\" \\\\ c # d"', "command", 'a "b" \\ c # d'),
    ],
)
def test_mail_leaves_by_the_way_set_last(text, way, value):
    wanted = {f"mail/{each}": None for each in ("command", "sendmail", "smtp")}
    if way is not None:
        wanted[f"mail/{way}"] = value
    assert {path: given for _, path, given in changes(text)} == wanted


def test_a_mail_server_is_set_together_with_the_address_it_sends_from():
    mail = changes("set mail smtp=[::1]:2525 from=nqs@example.org limit=7")
    found = {path: value for _, path, value in mail}
    wanted = {"mail/smtp": "[::1]:2525", "mail/sender": "nqs@example.org", "mail/limit": 7}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("where", ["queue night", "complex prime", "global"])
@pytest.mark.parametrize("limit", [limit.setting for limit in LIMITS])
@pytest.mark.parametrize("word", ["none", "UNLIMITED", "()"])
def test_a_limit_of_units_is_taken_back_by_the_words_of_other_limits(where, limit, word):
    path = where.replace(" ", "/")
    assert changes(f"set {where} {limit}={word} run_limit=2") == [
        ("set", f"{path}/{limit}", []),
        ("set", f"{path}/run_limit", 2),
    ]
