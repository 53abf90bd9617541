"""What can never start is refused at submission; after a later change of limits it is told so."""

from typing import Any

import pytest
from engine.harness import ANNE, PLAIN, Centre, item
from engine.story import play

from nqspy.engine.explain import reason_of
from nqspy.model import commands as cm
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


MORE = "create consumable matlab count=2 | create group top | set group d1 parent=top | stop queue batch"
FREE = 'define shift free when="0 6 * * *" | {} | end'
SHIFTS = 'define shift {} when="0 {} * * *" | {} | end'
QUEUE_8, QUEUE_2 = "set queue batch pe_limit=8", "set queue batch pe_limit=2"
GLOBAL_8, GLOBAL_2 = "set global pe_limit=8", "set global pe_limit=2"
STORIES = {
    "a limit of nothing is a switch and refuses none": """qmgr set queue batch run_limit=0
        qmgr set global user_limit=0; submit anne queue=batch
        qmgr set queue batch run_limit=1 | set global user_limit=unlimited; state 1 running""",
    "changes and moves to what can never be": f"""qmgr {QUEUE_2} | stop queue q2; submit anne pes=3 queue=q2
        move 1 to=batch by anne -> 1:above_limit; modify 1 queue=batch by anne -> 1:above_limit""",
    "a full queue is later through a pipe, and never for more than it may hold": """
        qmgr set queue batch queued_limit=2 | stop queue batch
        submit anne queue=batch, anne queue=batch, anne array=1-2 queue=pp; why 3[] LATER
        qmgr set queue batch queued_limit=1; why 3[] NEVER
        refuse anne array=1-2 queue=pp -> no_destination""",
} | {
    f"never comes before what passes: {setting}": f"""qmgr {MORE}
        submit anne gpu=1 queue=batch, anne {words} queue=batch; qmgr {setting} | start queue batch
        state 1 running; why 2 NEVER"""
    for setting, words in (
        (f"{FREE.format('set group d1 limit=100%')} | set group d1 limit=25% | {ONE_GPU}", "pes=3 gpu=2"),
        (f"{FREE.format(QUEUE_8)} | {QUEUE_2} | {GLOBAL_2}", "pes=3"),
        (f"set queue batch user_limit=1 | {ONE_GPU}", "gpu=2"),
        ("set group top limit=25% | set group d1 limit=50%", "pes=3"),
        (f"{FREE.format('set group d1 limit=100%')} | set group top limit=25% | set group d1 limit=25%",
         "pes=3"),
        ("set queue batch consumable_limit=(gpu=1, matlab=1)", "gpu=1 matlab=2"),
    )
} | {
    f"no limit is met that no shift raises with the others: {day}, {night}": f"""qmgr stop queue batch
        submit anne {words} queue=batch; qmgr {SHIFTS.format("other", 19, "stop queue q2")}
        qmgr {SHIFTS.format("day", 6, day)} | {SHIFTS.format("night", 21, night)} | {now}; {again}
        qmgr start queue batch; why 1 {code}"""
    for code, words, day, night, now in (
        ("NEVER", "pes=3", f"{QUEUE_8} | {GLOBAL_2}", f"{QUEUE_2} | {GLOBAL_8}", f"{QUEUE_2} | {GLOBAL_2}"),
        ("NEVER", "pes=3", f"{QUEUE_8} | {GLOBAL_2}", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", "set queue * pe_limit=8 | set complex both pe_limit=2", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8} | set group d1 limit=25%", QUEUE_2, QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8} | stop queue batch", f"{QUEUE_2} | start queue batch", QUEUE_2),
        ("NEVER", "pes=3", f"{QUEUE_8} | set global user_limit=0", f"{QUEUE_2} | set global user_limit=9",
         QUEUE_2),
        ("NEVER", "gpu=2 mem=20mb", "set queue batch consumable_user_limit=() | set global memory_limit=10mb",
         f"{ONE_GPU} | set global memory_limit=unlimited", f"{ONE_GPU} | set global memory_limit=10mb"),
        ("NEVER", "gpu=2", f"set global consumable_limit=(gpu=2) | {ONE_GPU}", ONE_GPU, ONE_GPU),
        ("NEVER", "pes=3", f"{QUEUE_8} | {QUEUE_2}", QUEUE_2, QUEUE_2),
        ("LIMIT", "pes=3", f"{QUEUE_8} | {GLOBAL_8}", f"{QUEUE_2} | {GLOBAL_2}", f"{QUEUE_2} | {GLOBAL_2}"),
        ("LIMIT", "pes=3", QUEUE_8, GLOBAL_8, f"{QUEUE_2} | {GLOBAL_2}"),
        ("LIMIT", "pes=3", f"{QUEUE_8} | {GLOBAL_2}", GLOBAL_8, f"{QUEUE_2} | {GLOBAL_2}"),
        ("LIMIT", "pes=3", QUEUE_8, QUEUE_2, QUEUE_2),
    )
    for again in (f"refuse anne {words} queue=batch -> above_limit" if code == "NEVER"
                  else f"submit anne {words} queue=batch",)
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_what_can_never_start(title: str) -> None:
    play(STORIES[title], settings=SITE, pes=8)
