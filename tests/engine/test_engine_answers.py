"""Why a request waits, its position, its estimated start, and requests that can never start: refused at
submission, or reported after a change of limits."""

from typing import Any

import pytest
from engine.harness import ANNE, OLGA, PLAIN, Centre, item
from engine.story import play
from engine.test_engine_swap import Prime
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.placement.placements import PLACEMENTS
from nqspy.engine.explain import Places, causes, reason_of, reasons_of
from nqspy.engine.passed_over import passed_over
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.actions import Plan, Start
from nqspy.model.events import Decided
from nqspy.model.ids import Seq, member
from nqspy.model.reasons import ReasonCode
from nqspy.report.night import night_bounds, night_report
from nqspy.report.pages import figures
from nqspy.report.time_text import zone_of


def test_every_waiting_request_has_a_reason():
    play("""qmgr create batch_queue shut | enable queue shut | set queue batch user_limit=1
        submit anne, anne, anne held, anne at=60, anne queue=shut, ben pes=2, cleo
        why 2 LIMIT queue batch; why 3 HELD owner; why 4 DATE; why 5 STOPPED queue shut
        why 6 NO_PES machine""")


def test_an_array_whose_indices_are_all_held_or_run_shows_the_hold():
    play("""site pes=1; submit anne array=1-3; hold 1[2-3] by anne; why 1[] HELD; hold 1[1] by anne -> ?
        qmgr stop queue batch; rerun 1[1] by anne; hold 1[1] by anne; delete 1[2-3] by anne; why 1[] HELD""")


def test_places_are_the_order_of_the_starts():
    centre = Centre(PLAIN + "set sched_factor cpu 6 time 10\n", pes=5)
    centre.submit("anne")
    centre.qmgr("stop queue batch")
    for cpu in (500, 100, 300):
        centre.submit(f"anne cpu={cpu}")
        centre.later(seconds=5)
    places = Places(centre.engine, centre.sim.now)
    order = sorted((2, 3, 4), key=lambda seq: places.of(centre.request(seq)).position)
    assert places.of(centre.request(1)) is None
    centre.qmgr("start queue batch")
    assert centre.starts()[1:] == order == [3, 2, 4]


def test_an_estimate_charges_a_wide_request_for_all_its_pes():
    """Otherwise its department seems to be owed more than it is, and its next request comes too soon."""
    groups = "create group d1 share=1 members=(anne)\ncreate group d2 share=1 members=(ben)\n"
    runs = {"anne": Run(900_000, 3_600_000), "ben": Run(300_000, 300_000)}
    settings = PLAIN + groups + "set sched_factor share 20 time 1\n"
    centre = Centre(settings, pes=4, lengths=lambda request: runs[request.owner])
    centre.submit(*["anne pes=4 cpu=1:00:00", "ben pes=1 cpu=5:00", "ben pes=1 cpu=5:00"] * 4)
    waiting = [seq for seq in range(1, 13) if centre.state(seq) == "queued"]
    estimates = {seq: centre.estimate(seq)[0] for seq in waiting}
    centre.later(hours=5)
    real = centre.times(ev.Starting)
    assert estimates == {seq: real[seq] for seq in waiting}


def test_a_dry_run_of_a_long_list_estimates_nothing_and_is_quick():
    centre = Centre()
    items = tuple(item("anne", centre.sim.now) for _ in range(50))
    found = centre.ask(cm.Submit(items, dry_run=True))["dry_run"]
    assert len(found) == 50
    assert "estimate" not in found[0]


def test_while_memory_is_short_the_start_is_unknown():
    centre = Prime((5, 118))
    centre.submit("anne mem=256kw")
    centre.later(minutes=6)
    [late] = centre.submit("ben mem=2mw")
    start, basis = centre.estimate(late)
    assert start is None, "not this very moment"
    assert basis.startswith(f"{centre.why(late).text}; ")
    centre.qmgr("set swap_control off")
    assert centre.state(late) == "running"


def test_each_cause_for_which_indices_wait_is_shown_with_its_indices() -> None:
    centre = Centre(PLAIN, pes=1)
    (array,) = centre.submit("anne array=1-9 queue=batch")
    for held, letter, by in (("[3-5]", "u", ANNE), ("[7]", "o", OLGA)):
        names = (centre.id(array).replace("[]", held),)
        assert centre.ask(cm.HoldRequests(names, letter), by)["failed"] == []
    found = {indices.show(runs): (reason.code, reason.who) for runs, reason in causes(centre.engine, array)}
    assert found == {"2,6,8-9": ("NO_PES", "machine"), "3-5": ("HELD", "owner"), "7": ("HELD", "operator")}
    each = reasons_of(centre.engine, [member(array, index) for index in (2, 3, 7)])
    assert [reason.code for reason in each.values()] == ["NO_PES", "HELD", "HELD"]


# ---------------------------------------------------------------- what a later one was started before
DIVIDED = """
create domain wide pes=7-11
create batch_queue batch priority=10 user_limit=1
create batch_queue other priority=20 user_limit=1
create batch_queue day priority=5 domain=wide user_limit=1
enable queue batch, other, day
start queue batch, other, day
set default batch_request queue batch
set managers = (max:m, olga:o)
"""
REQUESTS = st.tuples(st.sampled_from(("batch", "other", "day")), st.integers(1, 4), st.booleans())


def with_pes(site, seqs):
    """Return starts of these requests, each on the lowest free PEs of its domain."""
    boards, found = {}, []
    for seq in seqs:
        request = site.requests[seq]
        name = site.domain_of(request.queue).name
        board = boards.setdefault(name, site.board(name))
        if PLACEMENTS["lowest"].room(board) >= request.spec.ask.pes:
            found.append(Start(seq, 1, PLACEMENTS["lowest"].pick(board, request.spec.ask.pes)))
            board.hold(found[-1].pes)
    return found


def free_then(site, starts, request):
    """Return the PEs of a request's domain that were free when the first request behind it was chosen,
    counted start by start; None: there was none."""
    free = site.board(site.domain_of(request.queue).name).free
    for each in (site.requests[start.seq] for start in starts):
        alike = (each.queue, each.group) == (request.queue, request.group)
        if alike and (each.date_in_queue, each.seq) > (request.date_in_queue, request.seq):
            return free
        free -= each.spec.ask.pes if site.domain_of(each.queue) == site.domain_of(request.queue) else 0
    return None


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(REQUESTS, min_size=2, max_size=14), st.randoms(use_true_random=False))
def test_who_is_too_wide_when_its_turn_comes_lacks_pes_and_all_others_their_limit(requests, chance):
    centre = Centre(DIVIDED, pes=12)
    centre.submit(*(f"anne pes=1 queue={queue}" for queue in ("batch", "other", "day")))
    first = len(centre.site.requests)
    for queue, pes, _ in requests:
        centre.submit(f"anne pes={pes} queue={queue}")
    site = centre.site
    chosen = [Seq(first + n) for n, each in enumerate(requests, start=1) if each[2]]
    chance.shuffle(chosen)
    starts = with_pes(site, chosen)
    report = {seq: (code, text) for seq, code, _, text in passed_over(site, Plan(tuple(starts)))}
    waiting = [each for each in site.requests.values() if each.slot >= 0 and each.seq not in chosen]
    rooms = {each.seq: free_then(site, starts, each) for each in waiting}
    assert {seq for seq, room in rooms.items() if room is not None} <= report.keys()
    for seq, (code, text) in report.items():
        if (room := rooms.get(seq)) is not None:
            pes = site.requests[seq].spec.ask.pes
            assert (code == ReasonCode.NO_PES.value) == (pes > room), (seq, text)


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ("memory_limit=100mb run_limit=2", ("mem=60mb", "mem=60mb", "mem=10mb")),
        ("memory_limit=100mb group_limit=2", ("mem=60mb", "mem=60mb", "mem=10mb")),
        ("pe_limit=3 run_limit=2", ("pes=2", "pes=2", "pes=1")),
    ],
)
def test_the_reason_is_the_limit_that_was_reached_when_its_turn_came(limits, asked):
    """A run or group limit that the pass itself reached afterwards did not block the request."""
    centre = Centre(DIVIDED.replace("user_limit=1", ""), pes=12)
    centre.qmgr(f"set queue batch {limits}\nstop queue batch")
    centre.submit(*(f"anne {each}" for each in asked))
    centre.qmgr("start queue batch")
    centre.later(minutes=1)
    assert centre.starts() == [1, 3]
    events = centre.journal.events()
    [row] = [each for e in events if isinstance(e.event, Decided) for each in e.event.wait if each[0] == 2]
    assert row[1:3] == ("LIMIT", "queue batch")
    assert limits.split("_")[0] in row[3].lower(), row
    night = night_bounds(events, zone_of("Europe/Paris"), centre.sim.now)
    assert night_report(events, centre.site, night, centre.sim.now)["order_kept"]


# ---------------------------------------------------------------- what can never start
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


@pytest.mark.parametrize("queue", ["batch", "pp"])
@pytest.mark.parametrize(("setting", "words", "most", "asked"), LIMITS + HELD_OUT)
def test_what_no_limit_will_ever_allow_is_refused_with_both_numbers(
    setting: str, words: str, most: str, asked: str, queue: str
) -> None:
    loads = "\nset loadonly batch" if "loadonly" in setting else ""
    centre = Centre(SITE + setting.replace(" loadonly=on", "") + loads, pes=8)
    command = cm.Submit((item(f"anne {words} queue={queue}", centre.sim.now),))
    text = str(centre.refused(command, ANNE))
    assert f" {asked}" in text
    assert f" {most}" in text or f"={most}" in text


@pytest.mark.parametrize(("setting", "words", "most", "asked"), LIMITS)
def test_after_a_change_of_limits_the_reason_is_never(
    setting: str, words: str, most: str, asked: str
) -> None:
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
