"""Settings printed and read again are the same settings; the shipped site's files are good."""

from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.resource_health import PROBES
from nqspy.model import registry
from nqspy.model.commands import Configure, decode
from nqspy.model.configure import apply_changes, problems
from nqspy.model.domains import Domain
from nqspy.model.health import Probe
from nqspy.model.ids import DAY
from nqspy.model.machine import ExitSettings
from nqspy.model.people import Group
from nqspy.model.queues import Complex, Queue, is_heeded
from nqspy.model.shifts import Shift
from nqspy.model.site import Settings
from nqspy.model.tree import Declared, declared, put
from nqspy.qmgr.parser import parse_text
from nqspy.qmgr.printer import print_settings
from nqspy.qmgr.show import show_all, show_settings

FILES = sorted((Path(__file__).parents[2] / "queues.d").glob("*.qmgr"))


def build(text: str, into: Settings | None = None, upsert: bool = False) -> Settings:
    site = into or Settings()
    for parsed in parse_text(text):
        assert isinstance(parsed.command, Configure)
        apply_changes(site, parsed.command.changes, upsert)
    return site


@pytest.fixture
def shipped() -> Settings:
    site = Settings()
    for file in FILES:
        build(file.read_text(), site, upsert=True)
    return site


def enter(site: Settings, shift: str) -> None:
    for data in site.shifts[shift].commands:
        command = decode(data)
        assert isinstance(command, Configure)
        apply_changes(site, command.changes)


# ---------------------------------------------------------------- the shipped site
def test_the_shipped_files_are_a_site_without_problems_and_may_be_applied_twice(shipped):
    assert problems(shipped) == []
    before = print_settings(shipped)
    for file in FILES:
        build(file.read_text(), shipped, upsert=True)
    assert print_settings(shipped) == before
    assert build(before) == shipped
    assert show_all(build(before)) == show_all(shipped)


def test_a_plain_request_of_the_day_finds_normal_open(shipped):
    enter(shipped, "day")
    pipe = shipped.queues[shipped.default.queue]
    assert (pipe.kind, pipe.enabled, pipe.started) == ("pipe", True, True)
    takes = [
        name for name in pipe.destinations
        if (limit := shipped.queues[name].per_request.cpu_limit) is None or limit >= shipped.default.cpu_limit
    ]  # fmt: skip
    assert takes[0] == "normal"
    assert shipped.queues["normal"].started


def test_the_night_queue_takes_lists_at_any_hour_and_starts_them_from_the_night_on(shipped):
    night = shipped.queues["night"]
    starting = {"day": False, "evening": False, "night": True, "report": True}
    for shift, starts in [*starting.items(), ("day", False)]:
        enter(shipped, shift)
        assert (night.enabled, night.started) == (True, starts)


def test_every_shift_can_follow_every_other(shipped):
    def after(*shifts: str) -> str:
        site = build(print_settings(shipped))
        for shift in shifts:
            enter(site, shift)
        return print_settings(site)

    for last in shipped.shifts:
        assert len({after(first, last) for first in shipped.shifts}) == 1


def test_day_has_a_bound_and_night_has_none(shipped):
    enter(shipped, "day")
    assert "tau_max = 3.33" in show_settings("sched_factor", shipped)
    assert not shipped.exits["large_memory"].enabled
    assert shipped.exits["machine_gun"].enabled
    enter(shipped, "night")
    assert "there is no bound" in show_settings("sched_factor", shipped)
    assert shipped.exits["large_memory"].enabled
    assert not shipped.exits["machine_gun"].enabled


def test_the_departments_have_the_papers_quotas_and_backups_are_made_every_day(shipped):
    departments = {g.name: g.share for g in shipped.groups.values() if g.parent == "ymp"}
    assert list(departments.values()) == [29, 24, 16, 15, 4, 10, 1, 1]
    assert shipped.groups["administrators"].share == 20
    assert (shipped.backup.every, shipped.backup.keep, shipped.history.keep) == (DAY, 7, 90 * DAY)


# ---------------------------------------------------------------- files
def test_a_file_gives_its_commands_with_line_and_text():
    text = """
# a site
create batch_queue night \\
    priority=20 \\
    # the processors
    run_limit=4     ! and a remark

start queue night
"""
    first, second = parse_text(text, "site.qmgr")
    assert (first.line, first.text) == (3, "create batch_queue night priority=20 run_limit=4")
    assert (second.line, second.text) == (8, "start queue night")
    assert first.command.changes[0].value == {"kind": "batch", "priority": 20, "run_limit": 4}
    assert second.command.source == "site.qmgr"


def test_a_shift_keeps_its_lines_as_written_and_as_commands():
    head = 'define shift night when=("0 21 * * mon-fri", "0 9 * * sat")'
    text = f"{head}\n  START q night  # go\n  reload exits\nend\n"
    [parsed] = parse_text(text)
    [change] = parsed.command.changes
    assert (change.op, change.path) == ("create", "shift/night")
    assert change.value["when"] == ["0 21 * * mon-fri", "0 9 * * sat"]
    assert change.value["lines"] == ["START q night", "reload exits"]
    assert [decode(data) for data in change.value["commands"]] == [
        parsed.command for parsed in parse_text("start queue night\nreload exits")
    ]


def test_crlf_files_read_like_others():
    assert build("create batch_queue a\r\nstart queue a\r\n").queues["a"].started


# ---------------------------------------------------------------- any settings
LINES = ("start queue all", "set sched_factor share 20", "disable exit x", 'set mail "a # b"', "reload exits")
CRONS = ("0 21 * * mon-fri", "30 8 * * 1-5", "*/5 0 1 1 *")
words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8)
names = st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True).filter(
    lambda n: n not in ("all", "automatic")
)


def value_of(info: Declared) -> st.SearchStrategy[object]:
    if info.words and info.unit == "names":
        return st.none() | st.lists(st.sampled_from(info.words), unique=True).map(tuple)
    if info.words:
        return st.sampled_from(info.words)
    low, high = info.low or 0, info.high if info.high is not None else 10**12
    plain: dict[str, st.SearchStrategy[object]] = {
        "flag": st.booleans(),
        "names": st.lists(words, unique=True, max_size=3).map(tuple),
        "amounts": st.lists(
            st.tuples(names, st.integers(0, 999)), unique_by=lambda pair: pair[0], max_size=3
        ).map(lambda pairs: tuple(f"{name}={count}" for name, count in pairs)),
        "percent": st.integers(1_000 * low, 1_000 * min(high, 100)).map(
            lambda thousandths: thousandths / 1000
        ),
        "crons": st.lists(st.sampled_from(CRONS), unique=True, min_size=1, max_size=2).map(tuple),
        "name": words,
        "text": words,
    }
    found = plain.get(info.unit, st.integers(low, high))
    return st.none() | found if info.can_be_none else found


SPECIAL = ("timezone", "shell_strategy", "lines")


@st.composite
def filled(draw, kind: type, *args: object):
    node = kind(*args)
    known = declared(kind)
    for path in draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=6)):
        if path not in SPECIAL:
            put(node, path, draw(value_of(known[path])))
    return node


@st.composite
def shifts(draw, name: str):
    shift = draw(filled(Shift, name))
    shift.lines = tuple(draw(st.lists(st.sampled_from(LINES), max_size=3)))
    text = "\n".join(['define shift a when=("0 0 * * *")', *shift.lines, "end"])
    shift.commands = parse_text(text)[0].command.changes[0].value["commands"]
    shift.when = shift.when or CRONS[:1]
    return shift


@st.composite
def sites(draw) -> Settings:
    site = Settings(
        machine=draw(filled(type(Settings().machine))),
        global_=draw(filled(type(Settings().global_))),
        default=draw(filled(type(Settings().default))),
        usage=draw(filled(type(Settings().usage))),
        backup=draw(filled(type(Settings().backup))),
        history=draw(filled(type(Settings().history))),
        server=draw(filled(type(Settings().server))),
    )
    for kind, _ in registry.switched():
        kind.put(site, draw(filled(kind.kind)))
    site.server.timezone = draw(st.sampled_from((None, "Europe/Paris")))
    site.server.shell_strategy = draw(st.sampled_from(("login", "free")) | words.map("fixed=/{}".format))
    for factor in declared(type(site.sched_factor)):
        put(site.sched_factor, factor, draw(st.integers(0, 100)))
    site.managers = draw(st.dictionaries(words, st.sampled_from("mo"), max_size=2))
    few = st.lists(names, unique=True, max_size=3)
    site.queues = {
        name: draw(filled(Queue, name, draw(st.sampled_from(("batch", "pipe"))))) for name in draw(few)
    }
    for queue in site.queues.values():  # what has no effect is not printed
        for path, info in declared(Queue).items():
            if not is_heeded(queue.kind, path):
                put(queue, path, info.default)
    site.complexes = {name: draw(filled(Complex, name)) for name in draw(few)}
    site.groups = {name: draw(filled(Group, name)) for name in draw(few)}
    site.shifts = {name: draw(shifts(name)) for name in draw(few)}
    PROBES.put(site, {name: draw(filled(Probe, name)) for name in draw(few)})
    site.domains = {name: draw(filled(Domain, name)) for name in draw(few)}
    site.exits = {name: draw(filled(ExitSettings, name)) for name in draw(few)}
    for one in site.exits.values():
        one.values = draw(
            st.dictionaries(names.filter(lambda n: n not in ("enabled", "budget")), words, max_size=2)
        )
    return site


@settings(max_examples=examples(150))
@given(sites())
def test_settings_printed_and_read_again_are_the_same(site):
    text = print_settings(site)
    again = build(text)
    assert again == site
    assert print_settings(again) == text


def test_the_snap_of_a_group_below_a_later_one_creates_the_parent_first():
    site = Settings(groups={"d1": Group("d1", "ymp", 29, ("anne",)), "ymp": Group("ymp", None, 80)})
    text = print_settings(site)
    assert text.index("create group ymp") < text.index("create group d1")
    assert build(text) == site


def test_the_snap_leaves_out_the_domain_that_is_always_there_at_its_defaults():
    text = print_settings(Settings(domains={"application": Domain("application")}))
    assert print_settings(build(text)) == text
