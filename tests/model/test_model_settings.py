"""Object tree and changes of settings: declared in one place, refused with a line, dumped and reloaded."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.engine import lifecycle
from nqspy.model import configure, registry, tree
from nqspy.model.configure import apply_changes, copy_of, dump, load, problems
from nqspy.model.errors import BadValue
from nqspy.model.events import Change, Recorded, SettingsChanged
from nqspy.model.people import is_address
from nqspy.model.queues import Complex, Factors, Global, Queue, RunningLimits, Weights
from nqspy.model.site import Settings, Site
from nqspy.model.tree import Declared, declared
from nqspy.model.units import GREATEST

NAMED = {each.head: each.kind for each in registry.named()}
SINGLE = {each.head: each.kind for each in registry.singles()}
DECLARED = [
    (head, path, info)
    for head, kind in (NAMED | SINGLE).items()
    for path, info in tree.declared(kind).items()
]


def ids(value):
    return value if isinstance(value, str) else ""


def settings_with(*changes: Change) -> Settings:
    settings = Settings()
    apply_changes(settings, changes)
    return settings


# ---------------------------------------------------------------- declarations
@pytest.mark.parametrize(("head", "path", "info"), DECLARED, ids=ids)
def test_every_setting_says_what_it_is_and_its_default_fits(head, path, info):
    assert info.doc
    assert not info.doc.endswith(".")
    assert info.name == path.rpartition("/")[2]
    tree.check_value(info, info.default)


@pytest.mark.parametrize(
    ("head", "path", "info"),
    [each for each in DECLARED if each[2].unit in ("count", "number", "time", "size")],
    ids=ids,
)
def test_numbers_are_whole_and_within_their_bounds(head, path, info):
    low, high = info.low or 0, GREATEST if info.high is None else info.high
    for value in (low, high):
        tree.check_value(info, value)
    for value in (low - 1, high + 1, low + 0.5, float("nan"), True, "3", [3]):
        with pytest.raises(BadValue, match=info.name):
            tree.check_value(info, value)


@pytest.mark.parametrize(("head", "path", "info"), [each for each in DECLARED if each[2].words], ids=ids)
def test_words_are_those_that_are_named(head, path, info):
    in_a_list = info.unit == "names"
    for word in info.words:
        tree.check_value(info, (word,) if in_a_list else word)
    with pytest.raises(BadValue, match=f" of {info.words[0]}"):
        tree.check_value(info, ("nonsense",) if in_a_list else "nonsense")


def test_an_unknown_setting_is_refused():
    with pytest.raises(BadValue, match="run_limits is not a setting of a queue"):
        settings_with(Change("create", "queue/q", {"run_limits": 3}))
    with pytest.raises(BadValue, match="there is no setting nonsense/x"):
        settings_with(Change("set", "nonsense/x", 3))


# ---------------------------------------------------------------- changes
def test_create_set_add_remove_delete():
    settings = settings_with(
        Change("create", "queue/q", {"priority": 20, "per_request/cpu_limit": 600_000}),
        Change("set", "queue/q/run_limit", 4),
        Change("set", "queue/q/users", ["anne", "ben"]),
        Change("add", "queue/q/users", ["cleo", "anne"]),
        Change("remove", "queue/q/users", "ben"),
        Change("create", "queue/p", {"kind": "pipe", "destinations": ["q"]}),
        Change("create", "queue/old"),
        Change("delete", "queue/old"),
        Change("set", "queue/*/enabled", True),
    )
    queue = settings.queues["q"]
    assert (queue.priority, queue.per_request.cpu_limit, queue.run_limit) == (20, 600_000, 4)
    assert queue.users == ("cleo", "anne")
    assert settings.queues["p"].kind == "pipe"
    assert list(settings.queues) == ["q", "p"]
    assert all(each.enabled for each in settings.queues.values())


def test_creating_again_alters_where_that_is_wanted_and_leaves_the_rest():
    settings = settings_with(Change("create", "queue/q", {"priority": 20, "run_limit": 4}))
    again = Change("create", "queue/q", {"priority": 30})
    with pytest.raises(BadValue, match="queue q already exists"):
        apply_changes(settings, (again,))
    apply_changes(settings, (again,), upsert=True)
    assert (settings.queues["q"].priority, settings.queues["q"].run_limit) == (30, 4)
    with pytest.raises(BadValue, match="already exists as a batch queue"):
        apply_changes(settings, (Change("create", "queue/q", {"kind": "pipe"}),), upsert=True)


def test_a_shift_that_is_altered_in_its_times_keeps_its_commands():
    create = Change("create", "shift/s", {"when": ["0 1 * * *"], "commands": [{"cmd": "reload_exits"}]})
    settings = settings_with(create)
    apply_changes(settings, (Change("create", "shift/s", {"when": ["0 2 * * *"]}),), upsert=True)
    assert settings.shifts["s"].commands == [{"cmd": "reload_exits"}]


def test_managers_are_a_list_with_roles():
    settings = settings_with(
        Change("set", "managers", ["anne:m", "bob:o"]),
        Change("add", "managers", ["cleo", "bob:m"]),
        Change("remove", "managers", ["anne"]),
    )
    assert settings.managers == {"bob": "m", "cleo": "m"}
    with pytest.raises(BadValue, match="anne:x"):
        settings_with(Change("set", "managers", ["anne:x"]))


def test_names_of_the_paper_are_names_and_others_are_none():
    for name in ("prime-time", "pe128m10", "a.b_c"):
        assert name in settings_with(Change("create", f"queue/{name}", {})).queues
    for name in ("", "1st", "a b", "q/x", "x" * 32, "größe", "*", "-".join("a" * 40)):
        with pytest.raises(BadValue):
            settings_with(Change("create", f"queue/{name}", {}))


def test_settings_of_exits_keep_their_text():
    values = {"exit/large_memory/hmax": "115mw", "exit/large_memory/enabled": False}
    found = settings_with(*(Change("set", *each) for each in values.items())).exits["large_memory"]
    assert (found.values, found.enabled) == ({"hmax": "115mw"}, False)


def test_a_copy_can_be_changed_without_changing_it():
    settings = settings_with(
        Change("create", "queue/q", {}), Change("set", "exit/x/a", "1"), Change("set", "managers", ["anne"])
    )
    before = dump(settings)
    copy = copy_of(settings)
    assert copy == settings
    values = {"queue/q/per_request/cpu_limit": 5, "queue/q/run_limit": 5, "exit/x/a": "2",
              "global/run_limit": 3, "sched_factor/share": 9, "queue/q/sched_factor/cpu": 9}  # fmt: skip
    apply_changes(copy, (Change("set", path, value) for path, value in values.items()))
    apply_changes(copy, (Change("add", "managers", ["ben"]), Change("create", "group/g", {})))
    assert dump(settings) == before


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([Change("create", "queue/p", {"kind": "pipe", "destinations": ["x"]})], "x does not exist"),
        ([Change("create", "queue/p", {"kind": "pipe", "destinations": ["p"]})], "lead back to it"),
        ([Change("create", "complex/c", {"queues": ["x"]})], "x is not a batch queue"),
        ([Change("create", "group/g", {"parent": "g"})], "form a circle"),
        ([Change("create", "group/g", {"parent": "h"})], "parent h does not exist"),
        ([Change("create", "shift/s", {})], "shift s has no time"),
        ([Change("create", f"shift/{name}", {"when": ["0 1 * * *"]}) for name in "st"],
         "shift t fires at the same minutes as shift s: 0 1 * * *"),
        ([Change("set", "default/queue", "x")], "default queue x does not exist"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_whole_set(changes, text):
    assert text in "; ".join(problems(settings_with(*changes)))


def test_nothing_is_wrong_with_an_empty_set_nor_with_a_batch_queue_whatever_it_names():
    assert problems(Settings()) == []
    passing = Change("create", "queue/p", {"kind": "pipe", "destinations": ["b"]})
    settings = settings_with(Change("create", "queue/b", {"destinations": ["p"]}), passing)
    assert problems(settings) == problems(settings, {"queue/b"}) == []


# ---------------------------------------------------------------- weights
@pytest.mark.parametrize(
    ("weights", "tau"),
    [((0, 6, 1, 10), 10 / 3), ((20, 0, 0, 1), None), ((0, 0, 0, 1), 1.0), ((0, 0, 0, 0), None),
     ((0, 6, 4, 10), None)],
)  # fmt: skip
def test_tau_max_is_the_papers(weights, tau):
    assert Weights(*weights).tau_max() == (pytest.approx(tau) if tau else None)


def test_a_queues_own_factors_come_before_the_sites():
    assert Factors(share=20).over(Factors(0, 6, 1, 10)) == Weights(20, 6, 1, 10)


# ---------------------------------------------------------------- rows
_VALUES = {
    "count": st.none() | st.integers(1, 1000),
    "number": st.integers(1, 19),
    "time": st.none() | st.integers(1, 10**9),
    "size": st.none() | st.integers(0, 10**15),
    "percent": st.floats(0, 100),
    "name": st.sampled_from(("aa", "bb")),
    "names": st.lists(st.sampled_from(("aa", "bb", "cc")), unique=True),
    "flag": st.booleans(),
    "text": st.text(min_size=1, max_size=9),
    "crons": st.lists(st.just("0 1 * * *"), max_size=1),
    "amounts": st.lists(st.sampled_from(("aa=2", "bb=0")), unique=True),
    "roles": st.just({}),
}


def value_of(info: tree.Declared) -> st.SearchStrategy:
    values = st.sampled_from(info.words) if info.words else _VALUES[info.unit]
    return values.filter(lambda value: _fits(info, value))


def _fits(info: tree.Declared, value) -> bool:
    try:
        tree.check_value(info, tuple(value) if isinstance(value, list) else value)
    except BadValue:
        return False
    return True


@st.composite
def some_change(draw) -> Change:
    head = draw(st.sampled_from((*NAMED, *SINGLE)))
    path, info = draw(st.sampled_from(sorted(tree.declared((NAMED | SINGLE)[head]).items())))
    place = f"{head}/x/{path}" if head in NAMED else f"{head}/{path}"
    value = draw(value_of(info))
    return Change("set", place, 1 if head == "sched_factor" and value is None else value)


@given(st.lists(some_change(), max_size=12))
def test_settings_are_the_same_after_rows_and_back(changes):
    made = (Change("create", f"{head}/x", {}) for head in NAMED if head != "exit")
    settings = settings_with(*made, *changes)
    rows = json.loads(json.dumps(dump(settings)))
    assert load(rows) == settings
    paths = configure.object_paths(settings)
    assert {path: configure.dump_object(settings, path) for path in paths} == dump(settings)


def test_queues_complexes_and_the_whole_site_share_their_limits_in_the_order_that_people_know():
    names = list(declared(RunningLimits))
    assert names[:5] == ["run_limit", "user_limit", "group_limit", "memory_limit", "pe_limit"]
    order = ["priority", "enabled", "started", *names, "patience", "queued_limit"]
    assert list(declared(Queue))[: len(order)] == order
    assert list(declared(Complex)) == ["queues", *names]
    assert list(declared(Global))[: len(names) + 1] == [*names, "queued_limit"]
    for name in names:
        of_complex, of_site = declared(Complex)[name], declared(Global)[name]
        assert of_complex == of_site
        assert (declared(Queue)[name].doc, declared(Queue)[name].unit) == (of_site.doc, of_site.unit)
    assert declared(Queue)["run_limit"].operator
    assert not declared(Global)["run_limit"].operator


@dataclass(slots=True, kw_only=True)
class Base:
    own: int | None = tree.setting("count", None, "a setting of its own")
    added: dict[str, Any] = tree.added_settings()


@dataclass(slots=True)
class Derived(Base):
    name: str
    way: str = tree.setting("name", "left", "which way it goes")


def test_a_setting_that_another_file_declares_is_one_of_the_class_and_of_those_derived_from_it():
    info = Declared("count", 3, "what another file counts", name="others")
    assert tree.add_setting(Base, info) == "others"
    assert list(declared(Derived)) == ["way", "own", "others"]
    node = tree.load(Derived, {"others": 5, "own": 1, "gone": 2}, name="one")
    assert (node.others, Base().others) == (5, 3)
    assert tree.dump(node) == {"own": 1, "others": 5}
    copy = tree.copy_node(node)
    tree.put(copy, "others", 3)
    assert (node.others, tree.dump(copy)) == (5, {"own": 1})
    with pytest.raises(BadValue, match="others"):
        tree.put(node, "others", "many")
    for taken in ("others", "own", "added", "no name"):
        with pytest.raises(ValueError, match="cannot be a setting"):
            tree.add_setting(Derived, Declared("count", None, "x", name=taken))


def test_the_words_of_a_setting_are_those_of_the_list_that_declares_them():
    tree.set_words(Derived, "way", {"left": "here", "right": "there"})
    info = declared(Derived)["way"]
    assert info.words == ("left", "right")
    assert info.doc.endswith("left (here); right (there)")
    with pytest.raises(BadValue, match="one of left, right"):
        tree.put(Derived("one"), "way", "back")
    assert tree.load(Derived, {"way": "right"}, name="one").way == "right"
    assert tree.load(Derived, {"way": "back"}, name="one").way == "left"


ADDRESSES = ("anne", "a.b-c_d", "chief@example.org", "x+y=z@sub.example.org", "anne@ymp")
OTHERS = (
    "", "@", "a@", "@b", "a b", "a\nb", "a,b", "-oQ/tmp", "a@b@c", "<a@b>", '"a"@b', "a;b", "|/bin/sh",
    "|sh@b", "a|b@c", "/etc/passwd", "/tmp/x@b", ".forward", "`id`", "a!b", "a%b@c", "root$", "ä@b",
    "a" * 255,
)  # fmt: skip


@pytest.mark.parametrize("text", [*ADDRESSES, *OTHERS])
def test_addresses_are_local_users_or_have_a_domain_and_mean_nothing_else(text):
    assert is_address(text) == (text in ADDRESSES)


@pytest.mark.parametrize(
    ("path", "value", "good"),
    [
        ("mail/smtp", "post.example.org", True), ("mail/smtp", "post.example.org:25", True),
        ("mail/smtp", "[::1]:2525", True), ("mail/smtp", "[::1]", True), ("mail/smtp", "post:0", False),
        ("mail/smtp", "post:99999", False), ("mail/smtp", ":25", False), ("mail/smtp", "a b", False),
        ("mail/user", "nqs", False), ("mail/password_file", "/etc/nqs", False),
        ("mail/sender", "nqs@example.org", True), ("mail/sender", "nqs@example.org\nBcc: eve", False),
        ("group/d1/mail", ["anne", "chief@example.org"], True), ("group/d1/mail", ["anne", "eve\n"], False),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(path, value, good):
    settings = Settings()
    apply_changes(settings, (Change("create", "group/d1"), Change("set", path, value)))
    assert problems(settings) == [] if good else len(problems(settings)) == 1


def test_the_command_that_older_homes_keep_with_the_server_still_counts_in_rows_and_events():
    old = {"server": {"name": "ymp", "mail": "/bin/post"}, "managers": {}}
    settings = load(old)
    assert (settings.mail.command, settings.mail.on, settings.server.name) == ("/bin/post", True, "ymp")
    assert load(dump(settings)).mail.command == "/bin/post"
    assert load({**old, "mail": {"command": "/bin/new"}}).mail.command == "/bin/new"

    site = Site()
    lifecycle.apply(site, Recorded(1, 1, SettingsChanged((Change("set", "server/mail", "/bin/post"),))))
    assert site.settings.mail.command == "/bin/post"
    assert "mail" in site.touched.settings


def test_one_way_is_enough_and_none_is_no_mail():
    assert not Settings().mail.on
    for way in ("command", "sendmail", "smtp"):
        settings = Settings()
        setattr(settings.mail, way, "x")
        assert settings.mail.on
