"""The catalogue of reasons: what each kind says, of which values."""

import pytest

from nqspy.core import passes  # noqa: F401  declares the kinds
from nqspy.decider import backoff  # noqa: F401
from nqspy.engine import explain, recheck  # noqa: F401
from nqspy.model.reasons import KINDS, Reason, ReasonCode, Sentence, are_sound, told
from nqspy.model.units import format_size, format_time

GIVEN = {
    "above_block": ("domain fast", 5, 3), "above_domain": ("domain fast", 5, 4),
    "above_units": ("consumable gpu", 5, "gpu", 4), "above_machine": ("machine", 9, 8),
    "cap_decays": ("group d3", 20.0, 3_600_000, "CPU time", 7_200_000),
    "bumped": ("bumper", "2.ymp", "interactive", 4), "being_cleared": ("bumper", "0-3"),
    "by_class": ("queue apps",), "class_limit": ("class standby", 64, 60),
    "class_shut": ("class standby", 64, 65), "cap_never": ("group d3", 12.5, 1, 8, 0, 2),
    "cap_runs": ("group d3", 20.0, 3_600_000, "PE time", 7_200_000),
    "cap_short": ("group d3", 20.0, 2, 8, 1, 2, 1), "exits_begin_again": ("exits",),
    "nothing_freed": ("scheduler",), "pes_kept_free": ("machine", 2, 0, 8, None, 4, "2.ymp", None),
    "few_pes_free": ("machine", None, 1, 8, None, None, 2), "pes_offline": ("domain big", 7, 6, 7, "big", 1),
    "few_units_free": ("consumable gpu", 2, "gpu", 1, 4, "1.ymp, 2.ymp", "3"), "freed": ("scheduler",),
    "gave_way": ("swap", "93 Mw", "80 % in use", 70.0), "gives_way": ("swap", "93 Mw", "90 % in use"),
    "goes_on_when_well": ("probe nfs", "nfs", "", ""), "hopeless": ("dependency", "1.ymp failed"),
    "in_line": ("scheduler", "2.ymp", "night"),
    "limit_reached": ("queue night", "user", 2, "queue night", "anne"),
    "array_limit_reached": ("17[].ymp", 2), "limit_shut": ("global", "global run", 0, None),
    "line_closed": ("gun", "17.ymp", "night", "wait"), "memory_scarce": ("swap", "90 % in use", 70.0),
    "memory_short": ("global", "global memory", 2 << 30, None, 1 << 20, 1 << 30),
    "moved": ("queue night", "day"), "no_destination": ("queue in", "night: no"),
    "no_destination_now": ("queue in", "night: full"), "no_pe_free": ("machine", 1, 8, None, None),
    "not_as_planned": ("scheduler",), "not_yet": ("scheduler",), "offers_bounded": ("global", 1000),
    "others_come_back": ("swap",), "pes_short": ("queue q", "PE", 4, "queue q", 1, 2),
    "pes_to_go_on": ("machine", 2, 1), "shift_stopped": ("shift day", "night"),
    "starts_when_well": ("probe nfs", "nfs", "21:00:00", "timeout"), "stopped": ("queue night",),
    "too_large": ("queue q", "memory", 1 << 30, "queue q", 2 << 30),
    "too_long": ("shift day", 36_000_000, "08:30", "night"), "too_wide": ("queue q", "PE", 2, "queue q", 4),
    "too_wide_to_go_on": ("domain big", 4, 3), "turn_comes": ("queue in",),
    "units_above_limit": ("queue q", "gpu user", 1, "queue q", 2),
    "units_limited": ("global", "global gpu user", 2, None, 1, "anne", 2),
    "units_offline": ("consumable gpu", 3, "gpu", 4, 2, "1, 2"),
    "not_together": ("global", "limit 2 leaves 2"), "retried": ("system", "no entry"),
    "waits_for_date": ("owner",), "waits_for_others": ("dependency", "1.ymp has ended"),
    "will_end": ("shift day", "08:30", "night"), "will_rest": ("shift day", "08:30", "night"),
    "kept_ahead": ("scheduler", "17.ymp"), "ends_sooner": ("scheduler", 4, 16, 3_600_000, 7_200_000),
    "would_delay": ("scheduler", 3_600_000, "17.ymp"), "would_delay_for_ever": ("scheduler", "17.ymp"),
}  # fmt: skip
GIVEN |= {f"{name}_now": GIVEN[name] for name in ("cap_never", "too_large", "too_wide", "units_above_limit")}
"""Of each kind who says it, and values."""


def test_each_kind_stands_in_the_table_above_or_tells_what_others_have_put():
    assert GIVEN.keys() == KINDS.keys() - {code.value for code in ReasonCode}


@pytest.mark.parametrize("name", GIVEN)
def test_each_kind_tells_its_values(name):
    who, *values = GIVEN[name]
    reason = KINDS[name](who, *values)
    for value in filter(None, values):
        whole = isinstance(value, int)
        plain = str(value).removesuffix(".0")
        written = (format_time(value), format_size(value), plain) if whole else (plain,)
        assert any(each in reason.text for each in written), (value, reason.text)
    assert are_sound([reason])
    assert reason.needed


@pytest.mark.parametrize("code", ReasonCode)
def test_what_others_have_put_is_told_as_it_is(code):
    reason = told(code, "gun", "{no} gap * here|", 5)
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
        ("limit_reached", ("user", 2, "", "anne"), "user limit 2 is reached for anne"),
        ("few_pes_free", (None, 1, 8, None, None, 2), "1 of 8 PEs is free; 2 are offline"),
        ("memory_short", ("global memory", 2 << 30, None, 1 << 20, 1 << 30),
         "global memory limit 2gb leaves 1mb, it counts 1gb"),
        ("pes_to_go_on", (1, None), "it goes on when a PE is free"),
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
