"""What exits are asked once, and what they make of a view once: nobody sees a difference but the clock."""

from types import SimpleNamespace

from core.harness import House

from nqspy.userexit.guard import Unguarded
from nqspy.userexit.site_exits import SiteExits

COUNTED = """
    @userexit
    def jobselect(request, view):
        return refuse(f"{view.once(count)} run")

    def count(view):
        print("counted")
        return len(view.running())
"""


def counted(caplog):
    """How often it was counted."""
    return [record.getMessage() for record in caplog.records].count("exit a: counted")


def test_what_is_made_once_is_made_again_when_the_pass_has_changed_something(put, load, house, req, caplog):
    caplog.set_level("INFO")
    put("a", COUNTED)
    exits, house.version = load(), 1
    assert [exits.jobselect(req(n), house).text for n in (1, 2)] == ["0 run", "0 run"]
    assert counted(caplog) == 1
    house.started.append(req(3))
    house.version = 2
    assert exits.jobselect(req(1), house).text == "1 run"
    assert counted(caplog) == 2


def test_each_exit_makes_its_own_and_each_pass_begins_anew(put, load, house, req, a_pass, caplog):
    caplog.set_level("INFO")
    put("a", COUNTED.replace("refuse(f", "None if request.seq else refuse(f"))
    put("b", COUNTED)
    exits, house.version = load(), 1
    assert exits.jobselect(req(1), house).who == "b"
    a_pass(exits)
    exits.jobselect(req(1), house)
    assert [record.getMessage() for record in caplog.records].count("exit b: counted") == 2


def test_who_is_ahead_may_change_at_each_offer_and_is_never_kept(put, load, house, req):
    put(
        "a",
        """
        @userexit
        def jobselect(request, view):
            return refuse(f"{view.once(outer)} ahead")

        def outer(view):
            return view.once(inner)

        def inner(view):
            return len(view.ahead(next(iter(view.waiting()))))
        """,
    )
    exits, house.version, house.queued = load(), 1, [req(1)]
    assert exits.jobselect(req(1), house).text == "0 ahead"
    house.offered.append((req(2), None))
    assert exits.jobselect(req(1), house).text == "1 ahead"


def test_a_function_that_fails_is_a_failure_of_the_exit_and_leaves_nothing(put, load, house, req, a_pass):
    put(
        "a",
        """
        @userexit
        def jobselect(request, view):
            return refuse(f"{view.once(ratio)} of it")

        def ratio(view):
            return 1 / len(view.running())
        """,
    )
    exits, house.version = load(), 1
    assert "division by zero" in exits.jobselect(req(1), house).text
    house.started = [req(3), req(4)]
    a_pass(exits)
    assert exits.jobselect(req(2), house).text == "0.5 of it"


def test_an_answer_that_rests_on_what_was_made_once_goes_when_that_changes(tmp_path):
    folder = tmp_path / "exits"
    folder.mkdir(mode=0o755)
    (folder / "a.py").write_text(
        "from nqspy.userexit import refuse, userexit\n"
        "@userexit\ndef jobselect(request, view):\n"
        "    return refuse(f'{view.once(runs)} of d1 run') if request.group == 'd2' else None\n"
        "def runs(view):\n    return len(view.running(group='d1'))\n"
    )
    (folder / "a.py").chmod(0o644)
    house = House().machine(pes=3).group("d1", 1).group("d2", 1).queue("night")
    house.door = SiteExits(folder, guard=Unguarded)
    first = house.submit("anne group=d1")[0]
    house.go()
    waits, other = house.submit("ben group=d2", "cleo group=d2")
    assert house.go().reason(waits).text == house.why(other).text == "1 of d1 run"
    house.end(first)
    told = house.go()
    assert [told.reason(seq).text for seq in (waits, other)] == ["0 of d1 run"] * 2


def test_shrpri_is_asked_once_about_those_who_differ_in_nothing_it_takes(put, load, house):
    put("a", "@userexit\ndef shrpri(group): return len(group)\n")
    exits, pairs = load(), [(owner, group) for group in ("d1", "d10") for owner in ("anne", "ben", "cleo")]
    assert exits.shrpris(pairs, house) == [2, 2, 2, 3, 3, 3]
    assert exits.listing()[0]["calls"] == 2


def test_one_that_takes_the_owner_or_may_remember_things_is_asked_about_each(put, load, house):
    put("a", "said = []\n@userexit\ndef shrpri(group):\n    said.append(group)\n    return len(said)\n")
    exits = load()
    assert exits.shrpris([("anne", "d1"), ("ben", "d1")], house) == [1, 2]
    put("a", "@userexit\ndef shrpri(owner, group): return len(owner)\n")
    exits.reload()
    assert exits.shrpris([("anne", "d1"), ("ben", "d1")], house) == [4, 3]


def test_after_a_failure_the_stock_rule_counts_for_the_rest_of_the_pass_and_for_whom_it_failed_on_longer(
    put, load, house, a_pass
):
    put("a", "@userexit\ndef shrpri(group): return 1 / (len(group) - 2)\n")
    exits = load()
    assert exits.shrpris([("anne", "d10"), ("anne", "d1"), ("ben", "d10")], house) == [1, None, None]
    a_pass(exits)
    assert exits.shrpris([("anne", "d1"), ("ben", "d10"), ("cleo", "d10")], house) == [None, 1, 1]
    assert exits.failures() == ()


def test_a_view_without_that_kind_of_thing_says_so(put, load, req, plain_view):
    put("a", "@userexit\ndef jobselect(view): return refuse(str(view.wether))\n")
    exits = load()
    exits.jobselect(req(1), SimpleNamespace(**vars(plain_view)))
    assert "a view has no wether" in exits.failures()[0].text
