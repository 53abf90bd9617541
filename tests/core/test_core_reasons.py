"""Catalogue of reasons: the text of each kind, made from its values."""

import pytest

from nqspy.core import passes  # noqa: F401  declares the kinds
from nqspy.decider import backoff  # noqa: F401
from nqspy.engine import explain, recheck  # noqa: F401
from nqspy.model.reasons import KINDS, Reason, ReasonCode, Sentence, are_sound, quoted

SAID = {
    "above_block": (
        "domain fast", (5, 3), "needs 5 PEs in one block, the largest block of domain fast has 3"
    ),
    "above_domain": ("domain fast", (5, 4), "needs 5 PEs, domain fast has 4"),
    "above_units": ("consumable gpu", (5, "gpu", 4), "needs 5 gpu, the site has 4"),
    "above_machine": ("machine", (9, 8), "needs 9 PEs, the machine has 8"),
    "cap_decays": (
        "group d3", (20.0, 3_600_000, "CPU time", 7_200_000),
        "limit 20% of group d3 is 1 h of decayed CPU time, 2 h are used or running: past use must decay",
    ),
    "bumped": (
        "bumper", ("2.ymp", "interactive", 4),
        "gave its PEs to 2.ymp (class interactive); it resumes when 4 PEs are free for it",
    ),
    "shut_out": (
        "operator", ("2.ymp", "domain wide"),
        "waits behind the prime request 2.ymp, which has domain wide to itself",
    ),
    "comes_back": ("bumper", ("anne", 1), "anne resumed it; it goes on when 1 PE is free for it"),
    "being_cleared": ("bumper", ("0-3",), "waits until running jobs have left PEs 0-3 for it"),
    "by_class": (
        "queue apps", (), "others go first: queue apps starts jobs by class, then by waiting time"
    ),
    "class_limit": ("class standby", (64, 60), "class standby may hold 64 PEs at a time, 60 are in use"),
    "class_shut": ("class standby", (64, 65), "class standby may hold 64 PEs at a time, it alone needs 65"),
    "cap_never": (
        "group d3", (12.5, 1, 8, 0, 2),
        "limit 12.5% of group d3 is 1 of 8 PEs, 0 are in use, it needs 2: the limit is too low",
    ),
    "cap_runs": (
        "group d3", (20.0, 3_600_000, "PE time", 7_200_000),
        "limit 20% of group d3 is 1 h of decayed PE time, 2 h are used or running: a running job must end",
    ),
    "cap_short": (
        "group d3", (20.0, 2, 8, 1, 2, 1),
        "limit 20% of group d3 is 2 of 8 PEs, 1 is in use, it needs 2: 1 more must become free",
    ),
    "exits_begin_again": (
        "exits", (), "the process that runs user exits restarts in a moment; no request starts before"
    ),
    "nothing_freed": (
        "scheduler", (), "its start is reserved; it starts earlier if something that it needs becomes free"
    ),
    "pes_kept_free": (
        "machine", (2, 0, 8, None, 4, "2.ymp", None), "needs 2 PEs, 0 of 8 are free, 4 are reserved for 2.ymp"
    ),
    "few_pes_free": ("machine", (None, 1, 8, None, None, 2), "1 of 8 is free; 2 are offline"),
    "pes_foreign": (
        "machine", (2, 0, 2, None, None, None, "PE 1 (zoe: spin, process 100)"),
        "needs 2 PEs, 0 of 2 are free; foreign jobs have PE 1 (zoe: spin, process 100)",
    ),
    "few_pes_beside_foreign": (
        "domain fast", (3, 2, 8, "fast", 1, 1, "PEs 0-1 (zoe: spin, process 100)"),
        "needs 3 PEs, 2 of 8 in domain fast are free, at most 1 in one block; 1 is offline; foreign jobs have"
        " PEs 0-1 (zoe: spin, process 100)",
    ),
    "pes_offline": (
        "domain big", (7, 6, 7, "big", 1), "needs 7 PEs, 6 of 7 in domain big are free; 1 is offline"
    ),
    "few_units_free": (
        "consumable gpu", (2, "gpu", 0, 4, "1.ymp, 2.ymp", "7.ymp", "3"),
        "needs 2 gpu, 0 of 4 are free; held by 1.ymp, 2.ymp; reserved for 7.ymp; offline: 3",
    ),
    "freed": ("scheduler", (), "nothing blocks it any more; the next pass examines it at once"),
    "gave_way": (
        "swap", ("93 Mw", 70.0, "80 % in use"),
        "suspended for lack of memory: its 93 Mw do not fit below 70 % yet, 80 % in use now",
    ),
    "gives_way": (
        "swap", ("93 Mw", "90 % in use"),
        "suspended with 93 Mw in memory, as memory is short: 90 % in use; it resumes when there is room",
    ),
    "goes_on_when_well": (
        "probe nfs", ("nfs", "", ""), "resource nfs is broken; it resumes when probe nfs succeeds again"
    ),
    "hopeless": ("dependency", ("1.ymp failed",), "1.ymp failed"),
    "in_line": (
        "scheduler", ("2.ymp", "night"),
        "waits behind 2.ymp, which no request of queue night may pass (backfill=none)",
    ),
    "limit_reached": (
        "queue night", ("user", 2, "queue night", "anne"), "user limit 2 of queue night is reached for anne"
    ),
    "array_limit_reached": ("17[].ymp", (2,), "2 indices run, the most of 17[].ymp at a time"),
    "limit_shut": ("global", ("global run", 0, None), "global run limit 0 lets nothing run"),
    "line_closed": (
        "gun", ("17.ymp", "night", "wait"), "waits behind 17.ymp; an exit closed queue night there: wait"
    ),
    "memory_scarce": (
        "swap", ("90 % in use", 70.0), "memory is short: 90 % in use; it starts when less than 70 % is in use"
    ),
    "memory_short": (
        "global", ("global memory", 2 << 30, None, 1 << 20, 1 << 30),
        "global memory limit 2gb has 1mb left, it needs 1gb",
    ),
    "moved": ("queue night", ("day",), "is moving to queue day"),
    "no_destination": ("queue in", ("night: no",), "no destination queue takes it: night: no"),
    "no_destination_now": ("queue in", ("night: full",), "no destination queue takes it now: night: full"),
    "no_pe_free": ("machine", (1, 8, None, None), "needs 1 PE, 0 of 8 are free"),
    "not_as_planned": (
        "scheduler", (), "the last pass chose it, but something changed before it could start"
    ),
    "not_yet": ("scheduler", (), "no scheduling pass has examined it yet"),
    "offers_bounded": (
        "global", (1000,),
        "one pass offers 1000 requests to user exits (global offers_per_pass); it comes later",
    ),
    "others_come_back": ("swap", (), "requests that were suspended for lack of memory resume first"),
    "pes_short": ("queue q", ("PE", 4, "queue q", 1, 2), "PE limit 4 of queue q has 1 left, it needs 2"),
    "pes_to_go_on": ("machine", (1, None), "resumes when 1 PE is free"),
    "shift_stopped": (
        "shift day", ("night",), "shift day stopped queue night; it resumes when the queue starts again"
    ),
    "starts_when_well": (
        "probe nfs", ("nfs", "21:00:00", "timeout"),
        "resource nfs is broken since 21:00:00: timeout; it starts when probe nfs succeeds again",
    ),
    "stopped": ("queue night", (), "queue night is stopped"),
    "too_large": (
        "queue q", ("memory", 1 << 30, "queue q", 2 << 30),
        "memory limit 1gb of queue q is too low, it needs 2gb",
    ),
    "too_long": (
        "shift day", (36_000_000, "08:30", "night"),
        "its wall limit of 10 h goes beyond 08:30, when shift day stops queue night",
    ),
    "too_wide": ("queue q", ("PE", 2, "queue q", 4), "PE limit 2 of queue q is too low, it needs 4"),
    "too_wide_to_go_on": ("domain big", (4, 3), "needs 4 PEs to resume, domain big has 3 now"),
    "turn_comes": ("queue in", (), "waits to be routed in one of the next passes"),
    "units_above_limit": (
        "queue q", ("gpu user", 1, "queue q", 2), "gpu user limit 1 of queue q is too low, it needs 2"
    ),
    "units_limited": (
        "global", ("global gpu user", 2, None, 1, "anne", 2),
        "global gpu user limit 2 has 1 left for anne, it needs 2",
    ),
    "units_offline": (
        "consumable gpu", (3, "gpu", 2, 4, "1, 2"), "needs 3 gpu, 2 of 4 are online; offline: 1, 2"
    ),
    "not_together": (
        "global", ("limit 2 leaves 2",), "limit 2 leaves 2; no shift with a higher limit lets it start"
    ),
    "retried": ("system", ("no entry",), "no entry; it is tried again later"),
    "waits_for_date": ("owner", (), "waits for its start date"),
    "waits_for_others": ("dependency", ("1.ymp has ended",), "waits until 1.ymp has ended"),
    "will_end": (
        "shift day", ("08:30", "night"),
        "will be ended and queued again at 08:30 if it still runs: shift day stops queue night then",
    ),
    "will_rest": (
        "shift day", ("08:30", "night"),
        "will be suspended at 08:30 if it still runs: shift day stops queue night then",
    ),
    "kept_ahead": (
        "scheduler", ("17.ymp",), "requests ahead of it would delay the reserved start of 17.ymp"
    ),
    "ends_sooner": (
        "scheduler", (4, 16, 3_600_000, 7_200_000),
        "could start on 4 PEs, but ends sooner on 16: 1 h instead of 2 h",
    ),
    "would_delay": (
        "scheduler", (3_600_000, "17.ymp"),
        "its run time of up to 1 h would delay the reserved start of 17.ymp",
    ),
    "would_delay_for_ever": (
        "scheduler", ("17.ymp",), "it has no wall limit and would delay the reserved start of 17.ymp"
    ),
}  # fmt: skip
SAID |= {f"{name}_now": SAID[name] for name in ("cap_never", "too_large", "too_wide", "units_above_limit")}
"""Each kind with its source, values and text."""


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
def test_quoted_text_is_shown_unchanged(code):
    reason = quoted(code, "gun", "{no} gap * here|", 5)
    assert reason.matches(code=code, who="gun", text="{no} gap * here|", until=5)
    assert reason.needed


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        ("few_pes_free", (3, 2, 8, "fast", 1, None),
         "needs 3 PEs, 2 of 8 in domain fast are free, at most 1 in one block"),
        ("pes_to_go_on", (2, 1), "resumes when 2 PEs are free; 1 is reserved for it"),
        ("pes_to_go_on", (4, 2), "resumes when 4 PEs are free; 2 are reserved for it"),
        ("limit_reached", ("run", 2, "queue night", ""), "run limit 2 of queue night is reached"),
    ],
)  # fmt: skip
def test_one_and_many_and_what_is_not_there(kind, values, text):
    assert KINDS[kind]("machine", *values).text == text


@pytest.mark.parametrize(("ahead", "expected"), [(1, "1 request is ahead"), (7, "7 requests are ahead")])
def test_the_reason_of_the_rest_of_a_queue_counts_those_ahead(ahead, expected):
    assert Reason("stopped", "queue night", (), None, ahead).text == f"queue night is stopped; {expected}"


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 s"), (1, "1 s"), (45_000, "45 s"), (5_400_000, "1 h 30 min"), (129_605_000, "36 h 5 s")],
)
def test_a_time_is_written_as_people_say_it(ms, text):
    assert Sentence("{long:time}").say("all", (ms,)) == text


def test_a_gap_that_stands_twice_is_given_once():
    sentence = Sentence("{n:a|*}, {n} of {who}")
    assert (sentence.values, sentence.say("all", (3,))) == (1, "3, 3 of all")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("no such kind", ()), ("not_yet", (1,)), ("moved", ()), ("cap_never", ("much", 1, 2, 3, 4)),
        ("memory_short", ("run", "x", None, 1, 2)), ("too_long", (float("nan"), "08:30", "night")),
        ("too_long", ("x", "08:30", "night")),
    ],
)  # fmt: skip
def test_what_makes_no_sentence_is_not_sound(kind, values):
    assert not are_sound([Reason(kind, "anybody", values)])
