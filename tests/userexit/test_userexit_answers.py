"""How the answers of several exits become one, and which answers are invalid."""

import msgspec
import pytest

from nqspy.model.actions import Redate
from nqspy.model.machine import ExitSettings
from nqspy.userexit.answers import Nonsense, changes, check_jobselect, check_route, refuse
from nqspy.userexit.testing import Site


def says(answer):
    return f"@userexit\ndef jobselect(request, view, now):\n    return {answer}\n"


@pytest.mark.parametrize(
    ("first", "second", "verdict", "who"),
    [
        ("None", "None", None, None), ("None", "force()", "force", "b"), ("force()", "None", "force", "a"),
        ("force()", "force()", "force", "a"), ("force()", "refuse('no')", "refuse", "b"),
        ("refuse('no')", "force()", "refuse", "a"), ("refuse('no')", "hold_line('no')", "refuse", "a"),
        ("force()", "hold_line('no')", "hold_line", "b"),
    ],
)  # fmt: skip
def test_refuse_beats_force_else_the_first_counts(exits_of, house, req, first, second, verdict, who):
    answer = exits_of(says(first), b=says(second)).jobselect(req(1), house)
    assert (answer and answer.verdict, answer and answer.who) == (verdict, who)


HMAX = "hmax = setting('hmax', 'memory', 'unlimited', 'what all may have')\n"


@pytest.mark.parametrize(
    ("answer", "text", "within"),
    [
        ("refuse('not  at\\n night')", "not at night", ()),
        (r"refuse('no \udc80')", r"no \udc80", ()),
        ("refuse('no', within={'memory': (request.memory, None), 'pes': (1, 4)})", "no",
         (("memory", 7, None), ("pes", 1, 4))),
        ("refuse('no', within={'memory': (request.memory, hmax.value)})", "no", (("memory", 7, None),)),
    ],
)  # fmt: skip
def test_a_refusal_tells_why_in_one_line_and_within_which_bounds(exits_of, house, req, answer, text, within):
    found = exits_of(HMAX + says(answer)).jobselect(req(1, memory=7), house)
    assert (found.text, found.within, found.alike) == (text, within, () if within else found.alike)


def test_half_characters_in_what_an_exit_says_are_spelled_out(exits_of, house, req):
    exits = exits_of("@userexit\ndef jobselect(request):\n    raise OSError('no file \\udc80')\n")
    assert r"no file \udc80" in exits.jobselect(req(1), house).text
    [failure] = exits.failures()
    assert all(each.encode() for each in (failure.text, failure.traceback)), "it can be sent"


@pytest.mark.parametrize(
    ("within", "report"),
    [
        ("7", 'refuse(): within= must be like {"memory": (least, most)}, not 7'),
        ("[('memory', 1, 2)]", "not [('memory', 1, 2)]"),
        ("{'owner': (1, 2)}", "refuse(): within= must name some of cpu, memory, wall, pes, not 'owner'"),
        ("{'memory': 7}", "refuse(): within= of memory must be two whole numbers, not 7"),
        ("{'memory': (7.5, None)}", "refuse(): within= of memory must be two whole numbers, not (7.5, None)"),
        ("{'memory': (1, 2, 3)}", "refuse(): within= of memory must be two whole numbers, not (1, 2, 3)"),
    ],
)
def test_bounds_of_what_is_no_number_are_refused(exits_of, house, req, within, report):
    assert report in exits_of(says(f"refuse('no', within={within})")).jobselect(req(1), house).text


NONSENSE = {
    "jobselect": ("True", "False", "'no'", "refuse", "0", "refuse('')", "changes(queue='x')"),
    "elected": ("redate(request, now)", "[1]", "[redate(5, now)]", "[redate(request, 1.5)]", "[force()]",
                "[redate(request, now + 1)]"),
    "submit": ("force()", "{'queue': 'x'}", "changes(colour='red')", "changes(priority='high')"),
}  # fmt: skip


@pytest.mark.parametrize(("hook", "answer"), [(hook, each) for hook in NONSENSE for each in NONSENSE[hook]])
def test_nonsense_counts_as_the_fallback_of_its_hook(exits_of, house, req, hook, answer):
    exits = exits_of(f"@userexit\ndef {hook}(request, view, now):\n    return {answer}\n")
    found = getattr(exits, hook)(req(1), house)
    if hook == "jobselect":
        assert (found.verdict, found.who) == ("refuse", "a")
        assert "failed on this request" in found.text
    else:
        assert not found
    assert len(exits.failures()) == 1


@pytest.mark.parametrize(
    ("answer", "value"),
    [("0", 0.0), ("1.5", 1.5), ("None", None), ("-1", None), ("float('nan')", None), ("float('inf')", None),
     ("True", None), ("'2'", None)],
)  # fmt: skip
def test_shrpri_is_a_finite_number_from_zero_else_the_stock_rule(exits_of, house, answer, value):
    exits = exits_of(f"@userexit\ndef shrpri(owner, group, view, now):\n    return {answer}\n")
    assert exits.shrpri("anne", "d1", house) == value
    assert len(exits.failures()) == (0 if value is not None or answer == "None" else 1)


def test_elected_redates_others_in_one_action_and_fills_in_cause_and_exit(exits_of, house, req):
    elected = "@userexit\ndef elected(request, view, now):\n    return"
    exits = exits_of(
        f"{elected} [redate(view.waiting(owner='anne'), now)]\n",
        b=f"{elected} [redate(list(view.waiting())[-1], 5)]\n",
        c="@userexit\ndef elected(): pass\n",
    )
    chosen = req(2)
    house.queued = [req(1), chosen, req(3), req(4, "ben")]
    redated = [Redate((1, 3), house.now, 2, "a"), Redate((4,), 5, 2, "b")]
    assert list(exits.elected(chosen, house)) == redated
    house.queued = [chosen, req(4, "ben")]
    assert list(exits.elected(chosen, house)) == redated[1:], "no others of hers wait"
    assert exits.failures() == ()


def test_submit_refuses_or_changes_and_the_first_exit_has_the_say_on_a_field(exits_of, house, req):
    exits = exits_of(
        "@userexit\ndef submit(request): return changes(queue='day') if request.owner == 'anne' else None\n",
        b="@userexit\ndef submit(): return changes(queue='night', priority=3)\n",
        c="@userexit\ndef submit(request): return refuse('no') if request.owner == 'cleo' else None\n",
    )
    answer = exits.submit(req(0), house)
    assert (answer.refusal, dict(answer.changes)) == (None, {"queue": "day", "priority": 3})
    refused = exits.submit(req(0, "cleo"), house)
    assert (refused.refusal, refused.who) == ("no", "c")


@pytest.mark.parametrize(
    "given",
    [{"memory": 1 << 64}, {"pes": 10**30}, {"date": 10**30}, {"cpu": -1}, {"wall": -1}, {"account": "\udcff"},
     {"attributes": ["\ud800"]}, {"attributes": ["x" * (1 << 20), "y"]}],
)  # fmt: skip
def test_changes_that_nothing_can_carry_are_failures_of_the_exit(given):
    with pytest.raises(ValueError, match=next(iter(given))) as error:
        changes(**given)
    assert ("negative" in str(error.value)) == (-1 in given.values())
    assert changes(priority=-1, cpu="unlimited").fields == {"priority": -1, "cpu": -1}


def test_route_reorders_the_destinations_and_invents_none(exits_of, house, req):
    first = "@userexit\ndef route(request): return ['b', 'a'] if request.seq == 1 else None\n"
    exits = exits_of(first, b="@userexit\ndef route(): return ['z']\n")
    assert list(exits.route(req(1), ("a", "b", "c"), house)) == ["b", "a"]
    assert list(exits.route(req(2), ("a", "b", "c"), house)) == ["a", "b", "c"]
    assert "route must answer some of a, b, c" in exits.failures()[0].text


def test_the_view_is_read_only_and_tells_who_looks(exits_of, house, req):
    first, now = "@userexit\ndef jobselect(view): return refuse(f'{view.exit} {view.shift}')\n", house.now
    exits = exits_of(first, b="@userexit\ndef shrpri(view):\n    view.now = 5\n")
    assert exits.jobselect(req(1), house).text == "a night"
    assert exits.shrpri("anne", "d1", house) is None
    assert "AttributeError" in exits.failures()[0].text
    assert house.now == now


def test_an_exit_that_is_switched_off_is_not_asked(exits_of, house, req, a_pass):
    exits = exits_of(says("refuse('no')"))
    a_pass(exits, a=ExitSettings("a", enabled=False))
    assert not exits.has("jobselect")
    assert exits.jobselect(req(1), house) is None
    a_pass(exits, a=ExitSettings("a", enabled=True))
    assert exits.has("jobselect")
    assert exits.jobselect(req(1), house).verdict == "refuse"


def test_notices_are_called_and_their_failures_logged(exits_of, tmp_path, caplog):
    seen = tmp_path / "seen"
    write = f"pathlib.Path({str(seen)!r}).write_text(f'{{old}} {{new}}')"
    writes = f"import pathlib\n@userexit\ndef shift_changed(new, old): {write}\n"
    exits = exits_of(writes, b="@userexit\ndef shift_changed(): 1 / 0\n")
    [failure] = exits.notify("shift_changed", old="day", new="night")
    assert seen.read_text() == "day night"
    assert failure.exit == "b"
    assert failure.text.startswith("shift_changed: ZeroDivisionError")
    assert "ZeroDivisionError" in caplog.text


def test_listing_and_trace_tell_what_was_called_and_answered(put, load, house, req):
    put(
        "a",
        '"""Says no to anne."""\n'
        + "from nqspy.userexit import *\n"
        + says("refuse('no') if request.owner == 'anne' else None"),
        head="",
    )
    put("b", says("1 / 0 if request.owner == 'ben' else None"))
    exits = load()
    exits.jobselect(req(1), house)
    house.now += 1
    exits.jobselect(req(2, "ben"), house)
    a, b = exits.listing()
    assert (a["name"], a["doc"], a["enabled"], a["hooks"]) == ("a", "Says no to anne.", True, ["jobselect"])
    assert (a["calls"], a["failures"], b["calls"], b["failures"]) == (2, 0, 1, 1)
    assert 0 < a["longest_ms"] <= a["total_ms"]
    assert exits.trace(1) == [
        {"at": 1_000_000, "exit": "a", "hook": "jobselect", "answer": "refuse('no')", "error": None}
    ]
    asked, failed = exits.trace(2)
    assert (asked["exit"], asked["answer"], asked["error"]) == ("a", None, None)
    assert failed["error"].startswith("ZeroDivisionError")
    assert exits.trace(3) == []


def test_errors_are_reported_in_words_for_authors_of_exits():
    with pytest.raises(Nonsense, match=r'not \[refuse\("no"\)\]'):
        check_jobselect([refuse("no")], ())
    with pytest.raises(Nonsense, match="some of the queue's destinations in a list"):
        check_route("x", (None, ()))
    with pytest.raises(TypeError, match="output must be a path as a text, not 3"):
        changes(output=3)
    with pytest.raises(TypeError, match="attributes must be a list of texts, not 3"):
        changes(attributes=3)


def test_bounds_beyond_all_numbers_come_to_the_greatest_there_is():
    answer = refuse("too much", within={"memory": (-(10**400), 10**400)})
    assert answer.within == (("memory", -(2**63) + 1, 2**63 - 1),)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=type(answer)) == answer


EARLY = """
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request, view):
    if request.owner == "ben" and (view.local.hour, view.local.minute) >= (20, 5):
        return refuse("not ben", alike=("owner",))
"""


@pytest.mark.parametrize("first", ["priority", "schedule"])
def test_a_refusal_that_reaches_one_with_a_due_reservation_takes_that_back(first):
    site = Site(exits={"early": EARLY}, pes=2)
    site.qmgr("set queue batch order=fcfs reserve=1")
    site.submit("runs", owner="anne", pes=2, wall="10:00", runs="10min")
    site.submit("reserved", owner="ben", pes=2, wall="5:00")
    site.submit("in front", owner="ben", wall="20:00", named="x", priority=5 if first == "priority" else 0)
    site.submit("behind", owner="dora", pes=2, wall="2:00", runs="2min")
    if first == "schedule":
        site.qmgr(f"schedule request {site.job('in front').id} first")
    site.let_pass("11min")
    site.must_run("behind")
    assert site.job("reserved").request.reservation is None
