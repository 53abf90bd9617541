"""The catalogue of reasons: what each kind says, of which values."""

import pytest

from nqspy.core import passes  # noqa: F401  declares the kinds
from nqspy.decider import backoff  # noqa: F401
from nqspy.engine import explain, recheck  # noqa: F401
from nqspy.model.reasons import KINDS, Reason, ReasonCode, Sentence, are_sound, quoted

SAID = {
    "above_block": ("domain fast", (5, 3), "5 PEs are more than the 3 of the largest block of domain fast"),
    "above_domain": ("domain fast", (5, 4), "5 PEs are more than the 4 of domain fast"),
    "above_units": ("consumable gpu", (5, "gpu", 4), "5 gpu are more than the 4 there are"),
    "above_machine": ("machine", (9, 8), "9 PEs are more than the machine's 8"),
    "cap_decays": (
        "group d3", (20.0, 3_600_000, "CPU time", 7_200_000),
        "limit 20% of group d3 is 1:00:00 of decayed CPU time, it has 2:00:00 with what runs: past use "
        "must decay",
    ),
    "bumped": (
        "bumper", ("2.ymp", "interactive", 4),
        "it gave its PEs to 2.ymp, class interactive; it goes on when 4 PEs are free for it",
    ),
    "being_cleared": ("bumper", ("0-3",), "PEs 0-3 are being cleared for it"),
    "by_class": ("queue apps", (), "queue apps gives PEs by class, then to the one that has waited longest"),
    "class_limit": (
        "class standby", (64, 60), "class standby: at most 64 PEs at a time, 60 of them are in use"
    ),
    "class_shut": ("class standby", (64, 65), "class standby: at most 64 PEs at a time, it asks for 65"),
    "cap_never": (
        "group d3", (12.5, 1, 8, 0, 2),
        "limit 12.5% of group d3 is 1 of 8 PEs, it holds 0, this asks for 2: it cannot start under this "
        "limit",
    ),
    "cap_runs": (
        "group d3", (20.0, 3_600_000, "PE time", 7_200_000),
        "limit 20% of group d3 is 1:00:00 of decayed PE time, it has 2:00:00 with what runs: some of what "
        "runs must end",
    ),
    "cap_short": (
        "group d3", (20.0, 2, 8, 1, 2, 1),
        "limit 20% of group d3 is 2 of 8 PEs, it holds 1, this asks for 2: 1 must become free",
    ),
    "exits_begin_again": (
        "exits", (), "the process of the user exits is begun again in a moment; nothing starts before"
    ),
    "nothing_freed": (
        "scheduler", (), "its start is reserved, and it starts earlier only if something becomes free before"
    ),
    "pes_kept_free": (
        "machine", (2, 0, 8, None, 4, "2.ymp", None),
        "it asks for 2 PEs, 0 of 8 PEs are free for it, and 4 are kept free for 2.ymp",
    ),
    "few_pes_free": ("machine", (None, 1, 8, None, None, 2), "1 of 8 PEs is free; 2 are offline"),
    "pes_offline": (
        "domain big", (7, 6, 7, "big", 1),
        "it asks for 7 PEs, 6 of 7 PEs of domain big are free; 1 is offline",
    ),
    "few_units_free": (
        "consumable gpu", (2, "gpu", 1, 4, "1.ymp, 2.ymp", "3"),
        "it asks for 2 gpu, 1 of 4 is free; held by 1.ymp, 2.ymp; offline: 3",
    ),
    "freed": (
        "scheduler", (),
        "what held it ended with the last decisions; the next pass comes at once and examines it",
    ),
    "gave_way": (
        "swap", ("93 Mw", "80 % in use", 70.0),
        "its memory (93 Mw) gave way: 80 % in use now; it comes back when that leaves room under 70 %",
    ),
    "gives_way": (
        "swap", ("93 Mw", "90 % in use"),
        "its memory (93 Mw resident) gives way: 90 % in use; it comes back when there is room",
    ),
    "goes_on_when_well": (
        "probe nfs", ("nfs", "", ""), "resource nfs is broken; it goes on when probe nfs is well again"
    ),
    "hopeless": ("dependency", ("1.ymp failed",), "1.ymp failed"),
    "in_line": (
        "scheduler", ("2.ymp", "night"),
        "2.ymp waits for room, and no request of queue night passes it (backfill=none)",
    ),
    "limit_reached": (
        "queue night", ("user", 2, "queue night", "anne"), "user limit 2 of queue night is reached for anne"
    ),
    "array_limit_reached": ("17[].ymp", (2,), "2 of its indices run, as many as 17[].ymp may have at a time"),
    "limit_shut": ("global", ("global run", 0, None), "global run limit 0 lets nothing run"),
    "line_closed": ("gun", ("17.ymp", "night", "wait"), "17.ymp closes the line of queue night: wait"),
    "memory_scarce": (
        "swap", ("90 % in use", 70.0), "memory is short: 90 % in use; it starts when less than 70 % is"
    ),
    "memory_short": (
        "global", ("global memory", 2 << 30, None, 1 << 20, 1 << 30),
        "global memory limit 2gb leaves 1mb, it counts 1gb",
    ),
    "moved": ("queue night", ("day",), "it is moved to queue day"),
    "no_destination": ("queue in", ("night: no",), "no destination takes it: night: no"),
    "no_destination_now": ("queue in", ("night: full",), "no destination takes it: night: full"),
    "no_pe_free": ("machine", (1, 8, None, None), "it asks for 1 PE, none of 8 PEs is free"),
    "not_as_planned": ("scheduler", (), "the last pass chose it, but it could not start as planned"),
    "not_yet": ("scheduler", (), "no pass has examined it yet"),
    "offers_bounded": (
        "global", (1000,),
        "jobselect was offered as many candidates as one pass allows (global offers_per_pass 1000)",
    ),
    "others_come_back": ("swap", (), "requests that gave way to memory pressure come back first"),
    "pes_short": ("queue q", ("PE", 4, "queue q", 1, 2), "PE limit 4 of queue q leaves 1, it asks for 2"),
    "pes_to_go_on": ("machine", (1, None), "it goes on when a PE is free"),
    "shift_stopped": (
        "shift day", ("night",), "shift day stopped queue night; it goes on when the queue is started again"
    ),
    "starts_when_well": (
        "probe nfs", ("nfs", "21:00:00", "timeout"),
        "resource nfs is broken (since 21:00:00): timeout; it starts when probe nfs is well again",
    ),
    "stopped": ("queue night", (), "queue night is stopped"),
    "too_large": (
        "queue q", ("memory", 1 << 30, "queue q", 2 << 30),
        "memory limit 1gb of queue q leaves 1gb even when nothing runs, it counts 2gb",
    ),
    "too_long": (
        "shift day", (36_000_000, "08:30", "night"),
        "its wall limit of 10:00:00 goes beyond 08:30, when shift day stops queue night; it may start "
        "after that, or with a shorter limit",
    ),
    "too_wide": (
        "queue q", ("PE", 2, "queue q", 4),
        "PE limit 2 of queue q leaves 2 even when nothing runs, it asks for 4",
    ),
    "too_wide_to_go_on": ("domain big", (4, 3), "4 PEs are more than the 3 that domain big has now"),
    "turn_comes": ("queue in", (), "its turn to be routed comes in one of the next passes"),
    "units_above_limit": (
        "queue q", ("gpu user", 1, "queue q", 2),
        "gpu user limit 1 of queue q leaves 1 even when nothing runs, it asks for 2",
    ),
    "units_limited": (
        "global", ("global gpu user", 2, None, 1, "anne", 2),
        "global gpu user limit 2 leaves 1 for anne, it asks for 2",
    ),
    "units_offline": (
        "consumable gpu", (3, "gpu", 4, 2, "1, 2"),
        "it asks for 3 gpu, of 4 only 2 are not offline; offline: 1, 2",
    ),
    "not_together": (
        "global", ("limit 2 leaves 2",), "limit 2 leaves 2; no shift that raises this limit lets it start"
    ),
    "retried": ("system", ("no entry",), "no entry; the next attempt comes later"),
    "waits_for_date": ("owner", (), "it waits for the date its owner gave"),
    "waits_for_others": ("dependency", ("1.ymp has ended",), "it waits until 1.ymp has ended"),
    "will_end": (
        "shift day", ("08:30", "night"),
        "if it still runs then, it will be ended and queued again at 08:30, when shift day stops queue night",
    ),
    "will_rest": (
        "shift day", ("08:30", "night"),
        "if it still runs then, it will be suspended at 08:30, when shift day stops queue night",
    ),
    "kept_ahead": ("scheduler", ("17.ymp",), "those ahead of it would hold what is kept for 17.ymp"),
    "ends_sooner": (
        "scheduler", (4, 16, 3_600_000, 7_200_000),
        "it could start on 4 PEs and waits for 16, on which it ends sooner: there it takes 1:00:00 instead "
        "of 2:00:00",
    ),
    "would_delay": (
        "scheduler", (3_600_000, "17.ymp"),
        "for its wall time of 1:00:00 it would hold what is kept for 17.ymp",
    ),
    "would_delay_for_ever": (
        "scheduler", ("17.ymp",), "it has no wall limit, and would hold what is kept for 17.ymp"
    ),
}  # fmt: skip
SAID |= {f"{name}_now": SAID[name] for name in ("cap_never", "too_large", "too_wide", "units_above_limit")}
"""Of each kind who says it, values, and what they make."""


def test_each_kind_stands_in_the_table_above_or_tells_what_others_have_put():
    assert SAID.keys() == KINDS.keys() - {code.value for code in ReasonCode}


@pytest.mark.parametrize("name", SAID)
def test_what_each_kind_says(name):
    who, values, text = SAID[name]
    reason = KINDS[name](who, *values)
    assert reason.text == text
    assert are_sound([reason])
    assert reason.needed


@pytest.mark.parametrize("code", ReasonCode)
def test_what_others_have_put_is_told_as_it_is(code):
    reason = quoted(code, "gun", "{no} gap * here|", 5)
    assert reason.matches(code=code, who="gun", text="{no} gap * here|", until=5)
    assert reason.needed


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        ("few_pes_free", (3, 2, 8, "fast", 1, None),
         "it asks for 3 PEs, 2 of 8 PEs of domain fast are free, 1 of them in one block"),
        ("pes_to_go_on", (2, 1), "it goes on when 2 PEs are free; 1 of them is kept for it"),
        ("pes_to_go_on", (4, 2), "it goes on when 4 PEs are free; 2 of them are kept for it"),
        ("limit_reached", ("run", 2, "queue night", ""), "run limit 2 of queue night is reached"),
    ],
)  # fmt: skip
def test_one_and_many_and_what_is_not_there(kind, values, text):
    assert KINDS[kind]("machine", *values).text == text


def test_how_many_are_ahead_is_said_of_the_rest_of_a_queue():
    assert Reason("not_yet", "scheduler", (), None, 7).text == "no pass has examined it yet; 7 ahead of it"


def test_a_gap_that_stands_twice_is_given_once():
    sentence = Sentence("{n:a|*}, {n} of {who}")
    assert (sentence.values, sentence.say("all", (3,))) == (1, "3, 3 of all")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("no such kind", ()),
        ("not_yet", (1,)),
        ("moved", ()),
        ("cap_never", ("much", 1, 2, 3, 4)),
        ("memory_short", ("run", "x", None, 1, 2)),
        ("too_long", (float("nan"), "08:30", "night")),
        ("too_long", ("x", "08:30", "night")),
    ],
)
def test_what_makes_no_sentence_is_not_sound(kind, values):
    assert not are_sound([Reason(kind, "anybody", values)])
