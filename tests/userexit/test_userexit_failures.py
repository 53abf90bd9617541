"""A failed exit loses its answer on one request; the queue and the site's other decisions go on."""

import signal

import pytest

from nqspy.model.machine import ExitSettings
from nqspy.userexit.call_stats import RETRY

POISON = """
@userexit
def jobselect(request):
    if request.name == "poison":
        {act}
    return refuse("the site's rule")
"""


@pytest.mark.parametrize(
    "act", ["while True: pass", "1 / 0", "return 5", "raise SystemExit", "import time; time.sleep(99)",
            "f = lambda: f(); f()"],
)  # fmt: skip
def test_only_the_poisonous_request_is_refused_for_it_in_that_pass(exits_of, house, req, a_pass, act):
    exits = exits_of(POISON.format(act=act))
    a_pass(exits, a=ExitSettings("a", budget=20))
    refused = exits.jobselect(req(1, name="poison"), house)
    assert (refused.verdict, refused.who) == ("refuse", "a")
    waits = exits.jobselect(req(2), house)
    assert (waits.verdict, waits.who) == ("refuse", "a"), "not asked about, and not let past"
    assert waits.text not in (refused.text, "the site's rule")
    (failure,) = exits.failures()
    assert (failure.exit, failure.seq, failure.off) == ("a", 1, False)
    assert failure.text.split(" (line")[0] in failure.traceback
    assert "site_exits.py" not in failure.traceback, "from the exit's own file on"
    assert exits.failures() == (), "taking them forgets them"


def test_a_request_that_fails_an_exit_is_asked_about_again_in_five_minutes(exits_of, house, req, a_pass):
    exits = exits_of(POISON.format(act="while True: pass"))
    poison, fine = req(1, name="poison"), req(2)
    a_pass(exits)
    exits.jobselect(poison, house)
    assert "next pass" in exits.jobselect(fine, house).text
    exits.failures()
    for later, calls in ((1000, 1), (RETRY - 1001, 2), (1, 4)):
        house.now += later
        a_pass(exits)
        assert "failed on this request" in exits.jobselect(poison, house).text
        if calls < 4:
            assert exits.jobselect(fine, house).text == "the site's rule"
            assert exits.failures() == ()
            assert exits.listing()[0]["calls"] == calls + 1, "about the other one alone"
    assert exits.listing()[0]["calls"] == 4


def test_a_changed_setting_or_a_reload_has_it_asked_again(exits_of, put, house, req, a_pass):
    exits = exits_of("""
        h = setting("h", "count", "0", "divisor")

        @userexit
        def jobselect():
            return refuse(str(1 // h.value))
        """)
    assert "ZeroDivisionError" in exits.jobselect(req(1), house).text
    a_pass(exits, a=ExitSettings("a", values={"h": "1"}))
    assert exits.jobselect(req(1), house).text == "1"
    put("a", "@userexit\ndef jobselect():\n    return force()\n")
    exits.reload()
    assert exits.jobselect(req(1), house).verdict == "force"


@pytest.mark.parametrize(
    ("asked", "off"),
    [
        ([("anne", 1), ("bob", 2), ("anne", 3), ("anne", 4), ("anne", 5)], [False] * 4 + [True]),
        ([("anne", 1)] * 12, [False] * 12),
        (
            [("anne" if seq % 3 else "bob", -seq if seq % 4 == 0 else seq) for seq in range(1, 20)],
            [False] * 15,
        ),
    ],
    ids=["five in a row", "one alone", "answers in between"],
)
def test_failures_on_five_different_requests_in_a_row_switch_it_off(exits_of, house, req, a_pass, asked, off):
    exits, found = exits_of(POISON.format(act="1 / 0")), []
    for owner, seq in asked:
        house.now += RETRY
        a_pass(exits)
        exits.jobselect(req(abs(seq), owner, "poison" if seq > 0 else "job"), house)
        found += [failure.off for failure in exits.failures()]
    assert found == off


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_nobody_gets_past_one_exit_by_having_another_fail(put, load, house, req, a_pass, names):
    failing, strict = names
    put(failing, "@userexit\ndef jobselect(request): return 1 / 0 if request.name == 'poison' else None\n")
    put(strict, "@userexit\ndef jobselect(request): return refuse('strict') if request.seq > 1 else None\n")
    exits = load()
    for _ in range(3):
        a_pass(exits)
        assert exits.jobselect(req(1, name="poison"), house).who == failing
        assert exits.jobselect(req(2), house).text == "strict"
        house.now += RETRY


def test_what_one_forces_does_not_start_while_another_has_not_been_asked(exits_of, house, req, a_pass):
    forces = "@userexit(forces=True)\ndef jobselect(request): return force('now')\n"
    exits = exits_of(POISON.format(act="1 / 0"), b=forces)
    a_pass(exits)
    exits.jobselect(req(1, name="poison"), house)
    assert exits.jobselect(req(2), house).verdict == "refuse"


def test_a_failure_in_one_hook_puts_the_whole_file_out_for_the_pass(exits_of, house, req, a_pass):
    exits = exits_of("@userexit\ndef shrpri(): return 'x'\n@userexit\ndef jobselect(): return refuse('no')\n")
    assert exits.shrpri("anne", "d1", house) is None
    assert "next pass" in exits.jobselect(req(1), house).text
    a_pass(exits)
    assert exits.shrpri("anne", "d1", house) is None, "remembered for anne in d1"
    assert exits.jobselect(req(1), house).verdict == "refuse"


def test_the_text_names_error_and_line_of_the_exits_own_file(exits_of, house, req):
    exits = exits_of(
        "@userexit\ndef jobselect(request):\n    return helper({})\n\ndef helper(d):\n    return d['hmax']\n"
    )
    exits.jobselect(req(1), house)
    (failure,) = exits.failures()
    assert failure.text == "KeyError: 'hmax' (line 8)"
    assert "d['hmax']" in failure.traceback


def test_an_error_whose_own_text_runs_for_ever_is_a_failure_like_any_other(exits_of, house, req):
    exits = exits_of("""
    class Evil(Exception):
        def __str__(self):
            while True: pass

    @userexit
    def jobselect():
        raise Evil
    """)
    assert "Evil" in exits.jobselect(req(1), house).text


def test_ctrl_c_is_not_an_exits_failure(exits_of, house, req):
    exits = exits_of("@userexit\ndef jobselect(): raise KeyboardInterrupt\n")
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts without it
    try:
        with pytest.raises(KeyboardInterrupt):
            exits.jobselect(req(1), house)
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_rehearsal_leaves_no_mark(exits_of, house, req):
    exits = exits_of("@userexit\ndef jobselect(request): return 1 / 0 if request.seq == 1 else None\n")
    with exits.rehearsal(house.now):
        assert "failed on this request" in exits.jobselect(req(1), house).text
    [listed] = exits.listing()
    assert (listed["calls"], listed["failures"]) == (0, 0)
    assert exits.trace(1) == []
