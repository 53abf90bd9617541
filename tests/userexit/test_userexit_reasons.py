"""Reasons of a pass with exits agree with the state after it, and `view.once` changes no decision."""

import re
import shutil
from pathlib import Path

import pytest
from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.gate import Gate
from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import State
from nqspy.userexit.site_exits import SiteExits

SHIPPED = Path(__file__).parents[2] / "exits"
MW = 8 * 1024**2

OF_THE_SITE = {
    "a_owner": """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    mine = [other for other in view.running(owner=request.owner) if other.pes > 1]
    return refuse(f"{len(mine)} wide ones of yours run") if request.pes > 1 and mine else None
""",
    "b_crowd": """
from nqspy.userexit import hold_line, refuse, setting, userexit

most = setting("most", "count", "9", "waiting in a queue beside which nothing of d2 starts")

@userexit
def jobselect(request, view):
    if request.group == "d2" and len(view.waiting(queue=request.queue)) > most.value:
        return refuse("too many wait", alike=("group",))
    if request.cpu == 20_000 and view.queue(request.queue).priority > 1:
        return hold_line("room is kept")
""",
    "c_clock": """
from nqspy.userexit import never, refuse, userexit

@userexit
def jobselect(request, view, now):
    if request.pes == 3 and now // 1000 % 3 == 0:
        return refuse("not in this second", alike=())
    if request.owner == "cleo" and view.usage(owner="cleo") > 0.9:
        return refuse("cleo has had enough")
    if request.pes == 9:
        return never("nine is too many")
""",
    "d_once": """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    wide, crowd = view.once(load)
    if request.queue == "b" and wide > 1 and (request.memory or 0) > crowd:
        return refuse(f"{wide} PEs of a are taken, beside {crowd:.0f} bytes that wait", alike=("memory",))

def load(view):
    wide = sum(other.pes for other in view.running(queue="a"))
    return wide, view.once(waiting)

def waiting(view):
    return sum(other.memory or 0 for other in view.waiting(queue="b", group="d1"))
""",
    "e_shares": """
from nqspy.userexit import userexit

@userexit
def shrpri(group, view):
    return view.stock_shrpri(None, group) * (1 + len(view.waiting(group=group)))
""",
}


class Restless:
    """A view whose version changes at each call, so that `once` stores nothing."""

    def __init__(self, view):
        self._view = view

    def __getattr__(self, name):
        return getattr(self._view, name)

    @property
    def version(self):
        return object()


class Repeating(SiteExits):
    """Exits that compute everything anew for each request and owner."""

    def jobselect(self, request, view):
        return super().jobselect(request, Restless(view))

    def shrpris(self, pairs, view):
        return [self.shrpri(owner, group, Restless(view)) for owner, group in pairs]

    def shrpri(self, owner, group, view):
        return super().shrpris([(owner, group)], view)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the shipped exits, another shrpri, and exits that depend on other things."""
    made = tmp_path_factory.mktemp("home") / "exits"
    made.mkdir(mode=0o755)
    for name in ("dependency", "large_memory", "machine_gun"):
        shutil.copy(SHIPPED / f"{name}.py", made)
    for name, text in OF_THE_SITE.items():
        (made / f"{name}.py").write_text(text)
        (made / f"{name}.py").chmod(0o644)
    return made


lines = st.builds(
    lambda owner, group, queue, name, mem, pes, cpu: (
        f"{owner} group={group} queue={queue} pes={pes} {name} {mem} {cpu}"
    ),
    st.sampled_from(("anne", "ben", "cleo")),
    st.sampled_from(("d1", "d2")),
    st.sampled_from("ab"),
    st.sampled_from(("name=x", "name=y", "name=z", "")),
    st.sampled_from(("", "mem=1mw", "mem=30mw", "mem=60mw", "mem=130mw")),
    st.sampled_from((1, 1, 1, 2, 3, 9)),
    st.sampled_from(("", "cpu=20", "cpu=600")),
)
steps = st.one_of(
    st.tuples(st.just("submit"), st.lists(lines, min_size=1, max_size=5)),
    st.tuples(
        st.sampled_from(("end", "end", "hold", "release", "later", "void", "delete")), st.integers(0, 9)
    ),
    st.tuples(st.just("set"), st.sampled_from(("50mw", "115mw"))),
)


def build(pes):
    house = House().machine(pes=pes).group("d1", 3).group("d2", 1)
    house.queue("a", priority=2, max_memory="100mw", cpu=3, time=5, user_limit=3)
    house.queue("b", share=4, time=1).limit(memory_limit="300mw")
    for name, value in (("dependency/queues", "(a, b)"), ("large_memory/queues", "(a, b)")):
        house.set(f"exit/{name}", value)
    for name in ("dependency", "large_memory", "machine_gun", *OF_THE_SITE):
        house.set(f"exit/{name}/budget", 60_000)
    return house


def step(house, what, value):
    """Let one thing happen; return whether the previous plan was carried out."""
    waiting = [r.seq for r in house.site.requests.values() if r.state is State.QUEUED]
    held = [r.seq for r in house.site.requests.values() if r.state is State.HELD]
    running = sorted(house.site.started)
    if what == "submit":
        house.submit(*value)
    elif what == "end" and running:
        house.end(running[value % len(running)], cpu="5")
    elif what in ("hold", "delete") and waiting:
        seq = waiting[value % len(waiting)]
        house.hold(seq) if what == "hold" else house._event(ev.Deleted(seq, "anne"))
    elif what == "release" and held:
        house.release(held[value % len(held)])
    elif what == "set":
        house.set("exit/large_memory/hmax", value)
    house.later(seconds=1 + (value if what == "later" else 0))


@settings(max_examples=examples(40))
@given(st.integers(1, 5), st.lists(steps, min_size=3, max_size=14))
def test_what_is_made_once_changes_no_decision_and_reasons_agree_with_the_state(folder, pes, story):
    house, exits, repeating = build(pes), SiteExits(folder), Repeating(folder)
    for what, value in story:
        step(house, what, value)
        house.door = repeating
        expected = house.run_pass().plan
        house.door = exits
        result = house.run_pass()
        assert result.plan == expected
        if what != "void":
            house.apply(result)
            check_reasons(house)


def check_reasons(house):
    """Check that each reason agrees with the state after the pass."""
    site, gate = house.site, Gate(house.site, house.now)
    free = site.pes() - sum(len(r.pes) for r in site.started.values())
    for request in [r for r in site.requests.values() if r.slot >= 0]:
        why = house.why(request.seq)
        if why.code is ReasonCode.NO_PES:
            counts = (0, why.values[1]) if why.kind == "no_pe_free" else why.values[1:3]
            assert counts == (free, site.pes()), why.text
        elif why.code is ReasonCode.LIMIT:
            reason = gate.closed(request.queue) or gate.limit(request)
            assert reason is not None, why.text
            assert why.text.split(";")[0] == reason.text
        elif why.code is ReasonCode.EXIT:
            check_exit(house, request, why)


def check_exit(house, request, why):
    other = re.search(r"(?:end of|behind) (\d+)\.ymp", why.text)
    if other is not None:
        ahead = house.site.requests[int(other[1])]
        place = (ahead.date_in_queue, ahead.seq) < (request.date_in_queue, request.seq)
        assert ahead.state is State.RUNNING or (ahead.state is State.QUEUED and place) or "large" in why.text
    if "requests are running" in why.text:
        assert why.text.startswith(f"{len(house.site.started)} ")


def test_a_text_made_before_a_redating_is_not_shown_after_it(folder):
    """19 was ahead of 20 when 20 was refused; then a start of another request of its owner exchanged them."""
    house, exits = build(2), SiteExits(folder)
    house.door = exits
    house.set("exit/large_memory/enabled", False)
    first = house.submit("anne queue=a group=d1 name=w")[0]
    earlier = house.later(seconds=5).submit("anne queue=a group=d1 name=x pes=2")[0]
    later = house.later(seconds=5).submit("anne queue=b group=d1 name=x pes=2")[0]
    house.schedule(later, "next")
    house.later(seconds=5)
    result = house.go()
    assert result.starts == [first]
    assert house.request(earlier).date_in_queue == house.now
    check_reasons(house)
    assert house.why(later).code in (ReasonCode.EXIT, ReasonCode.NO_PES, ReasonCode.LATER)
