"""Answers to qmgr's `show` and `plan`, and what settings of job classes that do not go together are told."""

CLASSES = ("create class production priority=2", "create class standby")
PLANS = [
    ("set domain big pes=4-6", ["domain big pes: (4-7) -> (4-6)"]),
    ("set domain application depth=2", ["domain application depth: 1 -> 2"]),
    ("set domain application placement=most_packed", ["domain application placement: lowest -> most_packed"]),
    ("set run_limit=unlimited batch", ["queue batch run_limit: 4 -> unlimited"]),
    ("set queue batch sched_factor share 5", ["queue batch sched_factor share: default -> 5"]),
    ("set machine pes=auto", ["machine pes: 8 -> auto"]),
    ("set grace 20", ["server grace: 10 -> 20"]),
    ("create domain odd pes=3", ["new: domain odd"]),
    ("set domain application depth=1", ["it changes no setting"]),
    ('set shift night when=("0 20 * * *")', ['shift night when: ("0 21 * * *") -> ("0 20 * * *")']),
]


def test_a_name_that_there_is_not_is_called_by_its_kind(inner):
    for shown, told in (
        ("class fast", "there is no class fast"),
        ("classes fast", "there is no class fast"),
        ("probes disk", "there is no probe disk"),
        ("complex disk", "there is no complex disk"),
    ):
        message = inner.refusal("root", "qmgr", script=f"show {shown}")[1]
        assert message.removeprefix("line 1: ") == told


def test_a_plan_writes_values_as_they_are_read(fresh):
    fresh.qmgr("set machine pes=8", "create domain big pes=4-7")
    for script, lines in PLANS:
        message = fresh.result("root", "qmgr", script=script, plan=True)["out"].splitlines()
        assert message[-len(lines) :] == lines, script


def test_the_class_of_jobs_that_name_none_is_not_deleted(fresh):
    fresh.qmgr(*CLASSES)
    code, told = fresh.refusal("root", "qmgr", script="delete class production")
    assert (code, "default_class" in told, "production" in told) == ("bad_command", True, True)
    fresh.qmgr("set gang default_class=standby", "delete class production")
