"""Caches of exit answers and of `view.once`: they save time and change nothing else."""

COUNTED = """
    @userexit
    def jobselect(request, view):
        return refuse(f"{view.once(count)} run")

    def count(view):
        print("counted")
        return len(view.running())
"""


def counted(caplog):
    """Return how often it was counted."""
    return [record.getMessage() for record in caplog.records].count("exit a: counted")


def test_what_is_made_once_is_made_again_when_the_pass_has_changed_something(exits_of, house, req, caplog):
    caplog.set_level("INFO")
    exits, house.version = exits_of(COUNTED), 1
    assert [exits.jobselect(req(n), house).text for n in (1, 2)] == ["0 run", "0 run"]
    assert counted(caplog) == 1
    house.started.append(req(3))
    house.version = 2
    assert exits.jobselect(req(1), house).text == "1 run"
    assert counted(caplog) == 2


def test_each_exit_makes_its_own_and_each_pass_begins_anew(exits_of, house, req, a_pass, caplog):
    caplog.set_level("INFO")
    exits = exits_of(COUNTED.replace("refuse(f", "None if request.seq else refuse(f"), b=COUNTED)
    house.version = 1
    assert exits.jobselect(req(1), house).who == "b"
    a_pass(exits)
    exits.jobselect(req(1), house)
    assert [record.getMessage() for record in caplog.records].count("exit b: counted") == 2


def test_who_is_ahead_may_change_at_each_offer_and_is_never_cached(put, load, house, req):
    put("a", COUNTED.replace("count)} run", "outer)} ahead") + """
    def outer(view):
        return view.once(inner)

    def inner(view):
        return len(view.ahead(next(iter(view.waiting()))))
    """)  # fmt: skip
    exits, house.version, house.queued = load(), 1, [req(1)]
    assert exits.jobselect(req(1), house).text == "0 ahead"
    house.offered.append((req(2), None))
    assert exits.jobselect(req(1), house).text == "1 ahead"


def test_a_function_that_fails_is_a_failure_of_the_exit_and_leaves_nothing(exits_of, house, req, a_pass):
    exits, house.version = exits_of(COUNTED.replace("return len", "return 1 / len")), 1
    assert "division by zero" in exits.jobselect(req(1), house).text
    house.started = [req(3), req(4)]
    a_pass(exits)
    assert exits.jobselect(req(2), house).text == "0.5 run"


def test_shrpri_is_asked_once_about_those_who_differ_in_nothing_it_takes(exits_of, put, house):
    pairs = [(owner, group) for group in ("d1", "d10") for owner in ("anne", "ben", "cleo")]
    exits = exits_of("@userexit\ndef shrpri(group): return len(group)\n")
    assert exits.shrpris(pairs, house) == [2, 2, 2, 3, 3, 3]
    assert exits.listing()[0]["calls"] == 2
    put("a", "@userexit\ndef shrpri(owner, group): return len(owner)\n")
    exits.reload()
    assert exits.shrpris(pairs[:2], house) == [4, 3]


def test_after_a_failure_the_stock_rule_counts_for_the_pass(exits_of, house, a_pass):
    exits = exits_of("@userexit\ndef shrpri(group): return 1 / (len(group) - 2)\n")
    assert exits.shrpris([("anne", "d10"), ("anne", "d1"), ("ben", "d10")], house) == [1, None, None]
    a_pass(exits)
    assert exits.shrpris([("anne", "d1"), ("ben", "d10"), ("cleo", "d10")], house) == [None, 1, 1]
    assert exits.failures() == ()


def test_a_view_without_that_kind_of_thing_says_so(exits_of, house, req):
    exits = exits_of("@userexit\ndef jobselect(view): return refuse(str(view.wether))\n")
    exits.jobselect(req(1), house)
    assert "a view has no wether" in exits.failures()[0].text
