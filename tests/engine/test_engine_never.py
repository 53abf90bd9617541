"""What can never start is refused at submission; after a later change of limits it is told so."""

from typing import Any

import pytest
from engine.harness import ANNE, PLAIN, Centre, item

from nqspy.engine.explain import reason_of
from nqspy.model import commands as cm
from nqspy.model.errors import Refusal
from nqspy.model.reasons import ReasonCode
from nqspy.report.night import night_bounds, night_report
from nqspy.report.pages import figures
from nqspy.report.time_text import zone_of

SITE = f"""{PLAIN}
create batch_queue q2
create pipe_queue pp destination=(batch)
enable queue q2, pp
start queue q2, pp
create complex both queues=(batch, q2)
create consumable gpu units=(0, 1, 2, 3)
create group d1 members=(anne)
"""
ONE_GPU = "set queue batch consumable_user_limit=(gpu=1)"
LIMITS = [
    (ONE_GPU, "gpu=2", "1", "2"),
    ("set queue batch consumable_limit=(gpu=1)", "gpu=2", "1", "2"),
    ("set queue batch consumable_group_limit=(gpu=1)", "gpu=2", "1", "2"),
    ("set complex both consumable_user_limit=(gpu=1)", "gpu=2", "1", "2"),
    ("set global consumable_user_limit=(gpu=0)", "gpu=2", "0", "2"),
    ("set queue batch memory_limit=10mb", "mem=20mb", "10mb", "20mb"),
    ("set complex both memory_limit=10mb", "mem=20mb", "10mb", "20mb"),
    ("set global memory_limit=10mb", "mem=20mb", "10mb", "20mb"),
    ("set queue batch pe_limit=2", "pes=3", "2", "3"),
    ("set complex both pe_limit=2", "pes=3", "2", "3"),
    ("set global pe_limit=2", "pes=3", "2", "3"),
    ("set group d1 limit=25%", "pes=3", "2 of 8", "3"),
    ("set queue batch pe_limit=2", "sizes=3,8 walls=20:00,10:00", "2", "3"),
]
HELD_OUT = [
    ("set queue batch queued_limit=10", "array=1-20", "10", "20"),
    ("set queue batch queued_limit user=10", "array=1-20", "10", "20"),
    ("set queue batch loadonly=on run_limit=10", "array=1-20", "10", "20"),
]


def _loadonly(setting: str) -> str:
    return setting.replace(" loadonly=on", "") + ("\nset loadonly batch" if "loadonly" in setting else "")


@pytest.mark.parametrize("queue", ["batch", "pp"])
@pytest.mark.parametrize(("setting", "words", "most", "asked"), LIMITS + HELD_OUT)
def test_what_no_limit_will_ever_allow_is_refused_with_both_numbers(
    setting: str, words: str, most: str, asked: str, queue: str
) -> None:
    centre = Centre(SITE + _loadonly(setting), pes=8)
    command = cm.Submit((item(f"anne {words} queue={queue}", centre.sim.now),))
    said = str(centre.refused(command, ANNE))
    assert f" {asked}" in said
    assert f" {most}" in said or f"={most}" in said


@pytest.mark.parametrize(("setting", "words", "most", "asked"), LIMITS)
def test_after_a_change_of_limits_it_is_told_never(setting: str, words: str, most: str, asked: str) -> None:
    centre = Centre(f"{SITE}stop queue batch", pes=8)
    hopeless, other = centre.submit(f"anne {words} queue=batch", "anne queue=batch")
    centre.qmgr(f"{setting}\nstart queue batch")
    reason = reason_of(centre.engine, centre.request(hopeless))
    assert reason is not None
    assert reason.code is ReasonCode.NEVER
    assert f" {most}" in reason.text
    assert f" {asked}" in reason.text
    assert centre.state(other) == "running"
    data = _report(centre)
    assert data["never"] == 1
    assert [row["reason"]["code"] for row in data["waiting"]] == ["NEVER"]
    assert any("can never start: 1" in line for line in figures(data))


def _report(centre: Centre) -> dict[str, Any]:
    zone, now = zone_of("Europe/Paris"), centre.sim.now
    events = list(centre.journal.events())
    return night_report(events, centre.site, night_bounds(events, zone, now), now)


def test_what_can_never_start_is_not_among_what_will_have_run_by_then() -> None:
    centre = Centre(f"{SITE}stop queue batch", pes=8)
    wide = "anne pes=3 cpu=1:00:00 queue=batch"
    centre.submit("anne cpu=10:00 queue=q2", "anne cpu=20:00 queue=batch", wide, f"{wide} array=1-3")
    centre.qmgr("set queue batch pe_limit=2\nset queue batch run_limit=0\nstart queue batch")
    data = _report(centre)
    (row,) = data["outlook"]["departments"]
    assert (row["queued"], row["held"], row["never"], data["never"]) == (1, 0, 4, 4)
    assert row["cpu_s"] == 1200
    assert row["expected_cpu_s"] == 1800


def test_a_limit_of_nothing_is_a_switch_and_refuses_nobody() -> None:
    centre = Centre(f"{SITE}set queue batch run_limit=0\nset global user_limit=0", pes=8)
    (seq,) = centre.submit("anne queue=batch")
    centre.qmgr("set queue batch run_limit=1\nset global user_limit=unlimited")
    assert centre.state(seq) == "running"


def test_changes_and_moves_to_what_can_never_be_are_refused() -> None:
    centre = Centre(f"{SITE}set queue batch pe_limit=2\nstop queue q2", pes=8)
    (seq,) = centre.submit("anne pes=3 queue=q2")
    for answer in (
        centre.ask(cm.MoveRequests((centre.id(seq),), "batch"), ANNE),
        centre.ask(cm.ModifyRequest((centre.id(seq),), {"queue": "batch"}), ANNE),
    ):
        assert [each["code"] for each in answer["failed"]] == ["above_limit"]


def test_a_full_queue_is_later_through_a_pipe_and_never_for_more_than_it_may_hold() -> None:
    centre = Centre(f"{SITE}set queue batch queued_limit=2\nstop queue batch", pes=8)
    centre.submit("anne queue=batch", "anne queue=batch")
    (seq,) = centre.submit("anne array=1-2 queue=pp")
    assert reason_of(centre.engine, centre.request(seq)).code is ReasonCode.LATER  # type: ignore[union-attr]
    centre.qmgr("set queue batch queued_limit=1")
    assert reason_of(centre.engine, centre.request(seq)).code is ReasonCode.NEVER  # type: ignore[union-attr]
    with pytest.raises(Refusal):
        centre.submit("anne array=1-2 queue=pp")


FREE = 'define shift free when="0 6 * * *"\n{}\nend\n'


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (FREE.format("set group d1 limit=100%") + f"set group d1 limit=25%\n{ONE_GPU}", "pes=3 gpu=2"),
        (
            FREE.format("set queue batch pe_limit=8") + "set queue batch pe_limit=2\nset global pe_limit=2",
            "pes=3",
        ),
        (f"set queue batch user_limit=1\n{ONE_GPU}", "gpu=2"),
        ("set group top limit=25%\nset group d1 limit=50%", "pes=3"),
        (FREE.format("set group d1 limit=100%") + "set group top limit=25%\nset group d1 limit=25%", "pes=3"),
        ("set queue batch consumable_limit=(gpu=1, matlab=1)", "gpu=1 matlab=2"),
    ],
)
def test_never_comes_before_what_passes(setting: str, words: str) -> None:
    more = "create consumable matlab count=2\ncreate group top\nset group d1 parent=top\n"
    centre = Centre(f"{SITE}{more}stop queue batch", pes=8)
    first, seq = centre.submit("anne gpu=1 queue=batch", f"anne {words} queue=batch")
    centre.qmgr(f"{setting}\nstart queue batch")
    reason = reason_of(centre.engine, centre.request(seq))
    assert reason is not None
    assert (centre.state(first), reason.code) == ("running", ReasonCode.NEVER)


SHIFTS = 'define shift {} when="0 {} * * *"\n{}\nend\n'
QUEUE_8, QUEUE_2 = "set queue batch pe_limit=8", "set queue batch pe_limit=2"
GLOBAL_8, GLOBAL_2 = "set global pe_limit=8", "set global pe_limit=2"


@pytest.mark.parametrize(
    ("code", "words", "day", "night", "now"),
    [
        ("NEVER", "pes=3", f"{QUEUE_8}\n{GLOBAL_2}", f"{QUEUE_2}\n{GLOBAL_8}", f"{QUEUE_2}\n{GLOBAL_2}"),
        ("NEVER", "pes=3", f"{QUEUE_8}\n{GLOBAL_2}", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", "set queue * pe_limit=8\nset complex both pe_limit=2", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8}\nset group d1 limit=25%", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8}\nstop queue batch", f"{QUEUE_2}\nstart queue batch", QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8}\nset global user_limit=0", f"{QUEUE_2}\nset global user_limit=9", ""),
        (
            "NEVER",
            "gpu=2 mem=20mb",
            "set queue batch consumable_user_limit=()\nset global memory_limit=10mb",
            f"{ONE_GPU}\nset global memory_limit=unlimited",
            f"{ONE_GPU}\nset global memory_limit=10mb",
        ),
        ("NEVER", "gpu=2", "set global consumable_limit=(gpu=2)\n" + ONE_GPU, ONE_GPU, ONE_GPU),
        ("NEVER", "pes=3", f"{QUEUE_8}\n{QUEUE_2}", QUEUE_2, QUEUE_2),
        ("LIMIT", "pes=3", f"{QUEUE_8}\n{GLOBAL_8}", f"{QUEUE_2}\n{GLOBAL_2}", f"{QUEUE_2}\n{GLOBAL_2}"),
        ("LIMIT", "pes=3", QUEUE_8, GLOBAL_8, f"{QUEUE_2}\n{GLOBAL_2}"),
        ("LIMIT", "pes=3", f"{QUEUE_8}\n{GLOBAL_2}", GLOBAL_8, f"{QUEUE_2}\n{GLOBAL_2}"),
        ("LIMIT", "pes=3", QUEUE_8, QUEUE_2, QUEUE_2),
    ],
)  # fmt: skip
def test_limits_that_no_shift_raises_together_are_never_met(
    code: str, words: str, day: str, night: str, now: str
) -> None:
    centre = Centre(f"{SITE}stop queue batch", pes=8)
    (seq,) = centre.submit(f"anne {words} queue=batch")
    centre.qmgr(SHIFTS.format("other", 19, "stop queue q2"))
    centre.qmgr(SHIFTS.format("day", 6, day) + SHIFTS.format("night", 21, night))
    centre.qmgr(now or QUEUE_2)
    command = cm.Submit((item(f"anne {words} queue=batch", centre.sim.now),))
    if code == "NEVER":
        centre.refused(command, ANNE)
    else:
        centre.ask(command, ANNE)
    centre.qmgr("start queue batch")
    reason = reason_of(centre.engine, centre.request(seq))
    assert reason is not None
    assert reason.code == code
