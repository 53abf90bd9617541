"""The screen of `nqspy gangster`: the sample of seed 000 line by line, states, signs of nodes, widths."""

import pytest
from core.harness import START, House
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant
from nqspy.model.machine import ForeignJob, read_shape
from nqspy.report import gangster
from nqspy.report.gang_jobs import MOST_WAITING, jobs_on_nodes

SAMPLE = """\
hhccaaaa CLAS JOB-USER PID COMMAND #PE BASE W ST H:MM
hhccaaaa Int d - colombo 2976 icl1 8 100 1 R 00:42
hhccaaaa Int h - mshaw 9529 icf3d 32 020 1 R 00:00
hhccaaaa
Bmrk g - grote 9264 warpslav 32 200 1 R 00:00
hhccaaaa
hhccaaaa Prod a - caturla 95396 moldy 128 400 2 R 01:47
hhccaaaa Prod b - colombo 98057 vdif 8 000 3 R 01:31
hhccaaaa Prod c - wenski 98484 pproto6. 32 220 3 R 01:25
Prod e - colombo 8712 icl3 8 004 1 R 00:06
bdggaaaa Prod f - colombo 8873 icl2 8 104 2 R 00:04
bdggaaaa Prod i - dan 5684 camille 32 020 0 R 00:32
efggaaaa Prod j - vickie 99393 kiten 64 200 3 O 00:12
efggaaaa

bdggaaaa
bdggaaaa
efggaaaa
efggaaaa
"""
"""The seed's sample display, blanks reduced to one. The scan lacks two lines of the lowest plane and has some
digits doubled (8 0000 3) or without their colon (0042). Job i runs on nodes that h is shown on."""

PRODUCTION, INTERACTIVE = "production", "interactive"
JOBS = [
    # user class command pid circuit minutes and x, y, z of the first PE with the PEs along each
    ("caturla", PRODUCTION, "moldy", 95396, "2", 107, (0, 0, 4), (8, 4, 4)),
    ("colombo", PRODUCTION, "vdif", 98057, "3", 91, (0, 0, 0), (4, 2, 1)),
    ("wenski", PRODUCTION, "pproto6.exe", 98484, "3", 85, (0, 2, 2), (8, 2, 2)),
    ("vickie", PRODUCTION, "kiten", 99393, "3", 12, (0, 0, 2), (8, 4, 2)),
    ("colombo", INTERACTIVE, "icl1", 2976, "1", 42, (0, 0, 1), (4, 2, 1)),
    ("dan", PRODUCTION, "camille", 5684, "0", 32, (0, 2, 0), (8, 2, 2)),
    ("colombo", PRODUCTION, "icl3", 8712, "1", 6, (4, 0, 0), (4, 2, 1)),
    ("colombo", PRODUCTION, "icl2", 8873, "2", 4, (4, 0, 1), (4, 2, 1)),
    ("grote", "benchmark", "warpslav", 9264, "1", 0, (0, 0, 2), (8, 2, 2)),
    ("mshaw", INTERACTIVE, "icf3d", 9529, "1", 0, (0, 2, 0), (8, 2, 2)),
]


def t3d() -> House:
    house = House().machine(pes=256)
    house.set("machine/shape", "8x4x8").set("machine/pes_per_node", 2)
    for name, priority in (("interactive", 4), ("benchmark", 3), ("production", 2), ("standby", 1)):
        house.job_class(name, priority=priority)
    return house.queue("apps", order="class")


def pes_of(first, counts) -> tuple[int, ...]:
    x, y, z = first
    along = [range(at, at + count) for at, count in zip((x, y, z), counts, strict=True)]
    return tuple(i + 8 * (j + 4 * k) for k in along[2] for j in along[1] for i in along[0])


def loaded(house, user, kind, command, pid, circuit, pes) -> int:
    """Start an application on these PEs; return its number."""
    [seq] = house.submit(f"{user} pes={len(pes)} class={kind}")
    spec = replace(house.request(seq).spec, name=command, caller=(pid, 1), job_class=kind)
    house._event(ev.Modified(seq, spec, user))
    house._event(ev.Starting(seq, 1, pes, units=(("barrier", (circuit,)),)))
    house._event(ev.Started(seq, 1, pes))
    return seq


def away(house, seq, cause=None, moved=True) -> None:
    cause = cause or Cause("feature", "bumper")
    house._event(ev.Suspended(seq, 1, str(cause), leaving=True, cause=cause))
    if moved:
        house._event(ev.MovedOut(seq, 1, 30_000, 0))


def data_of(house, allows=lambda spec: True, **given):
    return jobs_on_nodes(house.site, house.now, allows, lambda each: each.run.ran(house.now)) | given


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_sample_of_the_paper_is_shown_line_by_line():
    house = t3d()
    begin = Instant(START + 200 * 60_000)
    for user, kind, command, pid, circuit, minutes, first, counts in JOBS:
        house.at((begin - START) / 1000 - 60 * minutes if user != "vickie" else 0)
        seq = loaded(house, user, kind, command, pid, circuit, pes_of(first, counts))
        if user == "vickie":
            house.later(minutes=12)
            away(house, seq)
    house.at((begin - START) / 1000)
    shown = gangster.screen(data_of(house), 80)
    assert words(shown) == words(SAMPLE)
    assert max(map(len, shown.splitlines())) <= 80


def test_each_state_has_the_letter_of_the_seed():
    house = t3d()
    [new] = house.submit("anne pes=2 class=production")
    [starts] = house.submit("anne pes=2 class=production")
    house._event(ev.Starting(starts, 1, (0, 1)))
    ones = [loaded(house, "anne", PRODUCTION, "x", 1, "0", (at, at + 1)) for at in range(2, 14, 2)]
    runs, leaves, bumped, by_owner, keeps, back = ones
    away(house, leaves, moved=False)
    away(house, bumped)
    away(house, by_owner, Cause("owner", "anne"))
    house._event(ev.Suspended(keeps, 1, "olga", cause=Cause("operator", "olga")))
    away(house, back)
    house._event(ev.Resumed(back, 1, "bumper", (20, 21), cause=Cause("feature", "bumper")))

    def states():
        return {
            seq: job["state"] for seq, job in zip((new, starts, *ones), data_of(house)["jobs"], strict=True)
        }

    expected = {new: "N", starts: "W", runs: "R", leaves: "o", bumped: "O", by_owner: "S", keeps: "S"}
    assert states() == expected | {back: "i"}
    house.later(seconds=31)
    assert states() == expected | {back: "R"}
    data = data_of(house)
    by_id = {job["id"]: job for job in data["jobs"]}
    places = [by_id[house.site.id_of(seq)]["places"] for seq in (leaves, bumped, by_owner, keeps, back)]
    assert places == [["4-5"], [], [], ["10-11"], ["20-21"]]
    letters = gangster.letters_of(data)
    nodes = gangster.node_map(data, letters)
    [held] = [line for line in nodes if line == nodes[-4]]
    assert held[0] == letters[house.site.id_of(starts)]
    assert "".join(nodes).count(".") == 128 - 5


def test_free_offline_and_hidden_nodes_have_signs_of_their_own():
    house = t3d().set("machine/offline", ("4-5", "6"))
    loaded(house, "ben", PRODUCTION, "secret", 1, "0", (0, 1))
    loaded(house, "anne", PRODUCTION, "mine", 2, "0", (3,))
    data = data_of(house, allows=lambda spec: spec.owner == "anne")
    assert [job["user"] for job in data["jobs"]] == ["anne"]
    nodes = gangster.node_map(data, gangster.letters_of(data))
    assert [line[0] for line in nodes[-4:]] == ["#", "a", "-", "."]
    assert "secret" not in gangster.screen(data)


def test_a_machine_without_a_shape_has_one_row_and_jobs_of_other_queues_no_class():
    house = House().machine(pes=6)
    house.queue("batch")
    [seq, _] = house.submit("anne pes=2 name=work", "anne pes=2 name=waits")
    house._event(ev.Starting(seq, 1, (1, 2)))
    house._event(ev.Started(seq, 1, (1, 2)))
    house.later(minutes=61)
    head, row = words(gangster.screen(data_of(house), 80))
    assert head == "....".replace("..", ".aa", 1) + ". CLAS JOB-USER PID COMMAND #PE BASE W ST H:MM"
    assert row == "- a - anne - work 2 1 - R 01:01"


def test_waiting_jobs_are_listed_by_their_wait_up_to_a_bound():
    house = t3d()
    house.submit(*["anne pes=2 class=standby"] * (MOST_WAITING + 3))
    data = data_of(house)
    assert (len(data["jobs"]), data["further"]) == (MOST_WAITING, 3)
    assert gangster.screen(data).splitlines()[-1].split() == ["and", "3", "more", "wait"]
    assert gangster.screen(data | {"further": 0}).splitlines()[-1].split()[1] == gangster.FURTHER


def test_a_job_keeps_its_letter_and_a_new_one_gets_the_first_that_is_free():
    house = t3d()
    house.change(ev.Change("create", "consumable/barrier", {"count": 4}))
    one, two, _three = (loaded(house, "anne", PRODUCTION, "x", 1, str(at), (at,)) for at in range(3))
    before = gangster.letters_of(data_of(house))
    assert list(before.values()) == ["a", "b", "c"]
    house._event(ev.Ended(one, 1, "exit", 0))
    four = loaded(house, "anne", INTERACTIVE, "x", 1, "0", (0,))
    after = gangster.letters_of(data_of(house), before)
    assert after[house.site.id_of(two)] == "b"
    assert after[house.site.id_of(four)] == "a"


NAME = st.text(st.characters(codec="ascii"), min_size=1, max_size=40)


@given(NAME, NAME, st.sampled_from([None, "8x4x8", "2x2x40"]), st.integers(80, 160))
def test_no_line_is_wider_than_the_screen_and_no_name_reaches_the_terminal_raw(user, command, shape, width):
    torus = None if shape is None else read_shape(shape)
    job = {
        "id": "123456.machine-12", "class": "visualisation", "rank": 3, "user": user, "pid": 4194304,
        "command": command, "pes": 100_000, "base": 99, "circuit": "1", "places": ["99"], "state": "R",
        "ran_s": 360_000,
    }  # fmt: skip
    data = {
        "pes": 160 if torus is None else torus.pes, "pes_per_node": 1, "offline": [], "hidden": [],
        "shape": None if torus is None else [torus.x, torus.y, torus.z], "jobs": [job], "further": 0,
    }  # fmt: skip
    lines = gangster.screen(data, width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    assert sum(line.count("a") for line in lines) >= 1


@pytest.mark.parametrize(
    ("shape", "base", "expected"), [("8x4x8", 64 + 3, "203"), ("16x16x4", 300, "1,2,12")]
)
def test_the_base_is_written_as_z_y_x(shape, base, expected):
    torus = read_shape(shape)
    assert gangster._base(base, [torus.x, torus.y, torus.z]) == expected
    assert gangster._base(base, None) == str(base)
    assert gangster._base(None, None) == "-"


def test_foreign_jobs_have_their_nodes_and_a_class_of_their_own():
    house = House().machine(pes=4).job_class("foreign", priority=5)
    house.site.foreign = (ForeignJob(4711, 1, "eve", "stress", (1, 2)),)
    data = jobs_on_nodes(house.site, house.now, lambda spec: True, lambda each: 0)
    text = gangster.screen(data, 80)
    assert text.splitlines()[0].startswith(".aa.  CLAS")
    assert text.splitlines()[1].split() == [
        "Frgn",
        "a",
        "-",
        "eve",
        "4711",
        "stress",
        "2",
        "1",
        "-",
        "R",
        "00:00",
    ]
