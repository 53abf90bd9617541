"""Domains in the command language: what is made of which PEs, and what is refused."""

import pytest
from engine.harness import Centre, caller_of, item

from nqspy.core import domains
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.configure import dump, load
from nqspy.model.errors import NqspyError, Refusal
from nqspy.model.reasons import ReasonCode
from nqspy.qmgr.printer import print_settings

ONE = (
    "create batch_queue batch priority=10\nenable queue batch\nstart queue batch\nset default queue = batch\n"
)
TWO = ONE + (
    "create domain wide pes=4-7\ncreate batch_queue day domain=wide\nenable queue day\nstart queue day\n"
)


@pytest.fixture
def centre():
    return Centre(TWO, pes=8)


def pes(centre):
    return {row["name"]: domains.ranges(row["pes"]) for row in domains.rows(centre.site)}


def test_a_new_domain_takes_pes_from_application_and_gives_them_back(centre):
    assert pes(centre) == {"application": "0-3", "wide": "4-7"}
    centre.qmgr("create domain narrow pes=(0, 2-3)")
    assert pes(centre) == {"application": "1", "wide": "4-7", "narrow": "0, 2-3"}
    centre.qmgr("set domain narrow pes=3")
    assert pes(centre) == {"application": "0-2", "wide": "4-7", "narrow": "3"}
    centre.qmgr("delete domain narrow")
    assert pes(centre) == {"application": "0-3", "wide": "4-7"}
    centre.is_sound()


def test_only_idle_pes_change_their_domain(centre):
    (seq,) = centre.submit("anne pes=2")
    assert centre.request(seq).pes == (0, 1)
    for command in (
        "create domain more pes=1-2",
        "set domain wide pes=(1, 4-7)",
    ):
        refusal = str(centre.refused(centre.command(command)))
        assert refusal == "PE 1 of domain application is held by 1.sim; only idle PEs change their domain"
    (other,) = centre.submit("anne pes=4 queue=day")
    for command in ("set domain wide pes=4-6", "set domain wide pes=(0, 2)"):
        assert "only idle PEs change their domain" in str(centre.refused(centre.command(command)))
    centre.later(minutes=20)
    assert centre.state(other) == centre.state(seq) == "ended"
    centre.qmgr("set domain wide pes=(0-1, 6)")
    assert pes(centre) == {"application": "2-5, 7", "wide": "0-1, 6"}
    centre.is_sound()


def test_a_queue_whose_requests_hold_pes_stays_in_its_domain(centre):
    centre.submit("anne", "anne")
    refusal = str(centre.refused(centre.command("set queue batch domain=wide")))
    assert refusal == (
        "2 requests of queue batch have PEs of domain application; stop the queue and let them end first"
    )
    centre.later(minutes=20)
    centre.qmgr("set queue batch domain=wide")
    (seq,) = centre.submit("anne")
    assert centre.request(seq).pes == (4,)


def test_a_depth_below_what_pes_hold_is_refused(centre):
    centre.qmgr("set domain application depth=2")
    one, two = centre.submit("anne pes=4", "ben pes=4")
    assert centre.request(one).pes == centre.request(two).pes == (0, 1, 2, 3)
    refusal = str(centre.refused(centre.command("set domain application depth=1")))
    assert refusal == "domain application: PE 0 has 2 holders, more than depth=1; one of them must end first"
    centre.is_sound()


def test_a_request_for_more_pes_than_its_domain_has_is_refused_with_both_numbers(centre):
    with pytest.raises(Refusal, match="5 PEs are more than the 4 of domain wide"):
        centre.submit("anne pes=5 queue=day")
    with pytest.raises(Refusal, match="9 PEs are more than the 4 of domain wide"):
        centre.submit("anne pes=9 queue=day")


def test_more_than_the_largest_block_of_a_domain_that_gives_no_others_is_refused(centre):
    centre.qmgr("set domain wide pes=(2-3, 5-7) placement=contiguous")
    with pytest.raises(Refusal, match="4 PEs are more than the 3 of the largest block of domain wide"):
        centre.submit("anne pes=4 queue=day")
    (seq,) = centre.submit("anne pes=3 queue=day")
    assert centre.request(seq).pes == (5, 6, 7)
    centre.is_sound()


def test_settings_with_domains_are_written_and_read_again(centre):
    centre.qmgr("set domain application placement=contiguous\nset domain wide depth=3 kind=command")
    text = print_settings(centre.site.settings)
    assert "set domain application placement=contiguous" in text
    assert "create domain wide pes=(4-7) kind=command depth=3" in text
    assert text.index("create domain wide") < text.index("create batch_queue day")
    again = Centre(text, pes=8)
    assert dump(again.site.settings) == dump(centre.site.settings)
    assert load(dump(centre.site.settings)).domains == centre.site.settings.domains
    centre.is_sound()


def test_a_shift_may_move_idle_pes_and_is_not_entered_where_they_are_held(centre):
    shifts = (("evening", 19, "4-7"), ("day", 22, "2-7"))
    for name, hour, those in shifts:
        centre.qmgr(f'define shift {name} when=("0 {hour} * * *")\n  set domain wide pes=({those})\nend')
    (held,) = centre.submit("anne pes=4")
    assert centre.request(held).pes == (0, 1, 2, 3)
    with pytest.raises(NqspyError, match="PE 2 of domain application is held"):
        centre.qmgr("switch shift day")
    assert pes(centre)["wide"] == "4-7"
    centre.until("2026-03-02T22:01:00+01:00")
    assert pes(centre)["wide"] == "2-7"
    centre.is_sound()


def test_without_a_domain_nothing_is_said_or_kept_of_them():
    centre = Centre(ONE, pes=2)
    assert not any(path.startswith("domain") for path in dump(centre.site.settings))
    assert "domain" not in print_settings(centre.site.settings)
    assert domains.text(centre.site).splitlines() == [
        "application [application]", "  PEs 0-1: 2, 2 free, 0 held", "  placement=lowest depth=1",
        "  takes all requests",
    ]  # fmt: skip


def test_the_machine_keeps_the_pes_of_its_domains_and_of_those_that_shifts_set(centre):
    centre.qmgr('define shift late when=("0 23 * * *")\n  set domain wide pes=5-7\nend')
    centre.qmgr("set domain wide pes=4-5")
    with pytest.raises(NqspyError, match="shift late: domain wide: there is no PE 6; the machine has 6"):
        centre.qmgr("set machine pes=6")
    centre.qmgr("delete shift late")
    centre.qmgr("set machine pes=6")
    assert pes(centre) == {"application": "0-3", "wide": "4-5"}
    text = print_settings(centre.site.settings)
    assert dump(Centre(text, pes=8).site.settings) == dump(centre.site.settings)


SPILLS = """
define shift away when=("0 3 1 1 *") spill=suspend
  stop queue day
end
define shift back when=("0 4 1 1 *")
  start queue day
end
"""


@pytest.fixture
def parked(centre):
    """A request of four PEs that the shift away has suspended: its PEs are idle."""
    centre.qmgr(SPILLS + "create batch_queue aux domain=wide\nenable queue aux\nstart queue aux")
    (seq,) = centre.submit("anne pes=4 queue=day")
    centre.qmgr("switch shift away")
    assert centre.request(seq).pes_released
    return seq


def test_nothing_is_kept_for_one_that_has_become_too_wide_for_its_domain(centre, parked):
    centre.qmgr("set domain wide pes=4-6")
    centre.qmgr("switch shift back")
    reason = centre.engine.plan.reasons.own[parked]
    assert (reason.code, reason.text) == (
        ReasonCode.NEVER,
        "4 PEs are more than the 3 that domain wide has now",
    )
    (other,) = centre.submit("ben queue=aux")
    assert centre.state(other) == "running"
    centre.qmgr("set domain wide pes=4-7")
    centre.later(hours=1)
    assert centre.state(parked) == "ended"
    centre.is_sound()


def test_a_queue_of_which_only_parked_requests_are_left_may_get_another_domain(centre, parked):
    centre.qmgr("set queue day domain=application\nswitch shift back")
    assert centre.request(parked).pes == (0, 1, 2, 3)
    centre.is_sound()


def test_one_that_comes_back_gets_no_pe_that_another_domain_has_now(centre, parked):
    found = centre.site.found
    centre.engine.note(
        ev.MachineFound(found.cpus, found.memory, "sim", centre.site.zone, (5,)), centre.sim.now
    )
    centre.qmgr("set domain wide pes=(3-4, 6-7)")
    centre.qmgr("switch shift back")
    assert set(centre.request(parked).pes) == {3, 4, 6, 7}
    centre.is_sound()


def test_how_many_pes_are_free_for_one_that_an_operator_lets_go_on_is_told(centre, parked):
    for asked, told in (("ben pes=2", "2 are"), ("ben", "1 is"), ("ben", "none is")):
        centre.submit(f"{asked} queue=aux")
        [failure] = centre.ask(centre.command(f"resume request {parked}"))["failed"]
        assert f"it needs 4 PEs to go on, and {told} free" in failure["text"]


PICKY = (
    "set domain wide smallest=2 largest=3 users=(anne) groups=(staff)\n"
    "create pipe_queue in destination=(day, batch)\nenable queue in\nstart queue in\n"
)


def test_one_that_its_queues_domain_does_not_take_is_refused_in_one_line(centre):
    centre.qmgr(PICKY)
    for line, owner, said in (
        ("anne queue=day", "anne", "day: domain wide takes requests of 2 to 3 PEs, not of 1"),
        ("anne queue=day pes=4", "anne", "day: domain wide takes requests of 2 to 3 PEs, not of 4"),
        (
            "ben queue=day pes=2",
            "ben",
            "day: domain wide takes no requests of ben: users anne; Unix groups staff",
        ),
    ):
        refusal = centre.refused(cm.Submit((item(line, centre.sim.now),)), caller_of(owner))
        assert str(refusal) == said
    centre.submit("anne queue=day pes=2", "olga queue=day pes=3")
    centre.qmgr("set domain wide accounts=(cfd) takes=batch")
    refusal = centre.refused(cm.Submit((item("anne queue=day pes=2", centre.sim.now),)), caller_of("anne"))
    assert str(refusal) == "day: domain wide takes requests of accounts cfd, not of default"


def test_a_pipe_queue_chooses_the_domain_at_submission_and_a_restart_knows_it(centre):
    centre.qmgr(PICKY)
    wide, small, other = centre.submit("anne queue=in pes=3", "anne queue=in", "ben queue=in pes=3")
    assert [centre.request(each).queue for each in (wide, small, other)] == ["day", "batch", "batch"]
    assert centre.request(wide).pes == (4, 5, 6)
    (waits,) = centre.submit("anne queue=in pes=2")
    centre.qmgr("set domain wide users=(nobody) groups=() smallest=3")
    assert centre.request(waits).queue == "day", "what is in a queue stays there"
    centre.is_sound()
    centre.later(minutes=11)
    assert {event.seq: event.pes for event in centre.events(ev.Starting)}[waits] == (4, 5)
    nowhere = "create pipe_queue strict destination=(day)\nenable queue strict\nstart queue strict"
    centre.qmgr(nowhere)
    refusal = centre.refused(cm.Submit((item("anne queue=strict", centre.sim.now),)), caller_of("anne"))
    assert str(refusal).startswith("no destination of strict takes it: day: domain wide takes requests of 3")


def test_a_moved_or_modified_request_must_be_one_that_the_domain_takes(centre):
    centre.qmgr(PICKY)
    (mine,) = centre.submit("anne pes=2 held")
    (bens,) = centre.submit("ben pes=2 held")
    moved = cm.MoveRequests((centre.id(bens),), "day")
    [failed] = centre.ask(moved, caller_of("ben"))["failed"]
    assert failed["text"].startswith("day: domain wide takes no requests of ben")
    centre.ask(moved)
    assert centre.request(bens).queue == "day", (
        "an operator decides who; how large one is stays with the domain"
    )
    centre.ask(cm.MoveRequests((centre.id(mine),), "day"), caller_of("anne"))
    larger = cm.ModifyRequest((centre.id(mine),), {"ask/pes": 4})
    [failed] = centre.ask(larger, caller_of("anne"))["failed"]
    assert failed["text"] == "day: domain wide takes requests of 2 to 3 PEs, not of 4"
    assert (centre.request(mine).queue, centre.request(mine).spec.ask.pes) == ("day", 2)
    centre.is_sound()


def test_whom_a_domain_takes_is_shown_written_and_read_again(centre):
    centre.qmgr(PICKY + "set domain wide accounts=(cfd, p17) takes=interactive")
    said = "  takes interactive requests of 2 to 3 PEs; users anne; Unix groups staff; accounts cfd, p17"
    assert said in domains.text(centre.site).splitlines()
    [_, row] = domains.rows(centre.site)
    assert (row["smallest"], row["largest"], row["takes"]) == (2, 3, "interactive")
    assert (row["users"], row["groups"], row["accounts"]) == (["anne"], ["staff"], ["cfd", "p17"])
    again = Centre(print_settings(centre.site.settings), pes=8)
    assert dump(again.site.settings) == dump(centre.site.settings)


def test_a_domain_with_fewer_pes_than_whom_it_takes_asks_for_is_warned_of(centre):
    changes = (ev.Change("set", "domain/wide/smallest", 5),)
    answer = centre.ask(cm.Configure(changes, advise=True))
    assert answer["warnings"] == ["queue day: domain wide takes requests of 5 PEs and more, and has 4"]


# ---------------------------------------------------------------- its features


@pytest.mark.parametrize(
    ("typed", "kept", "shown"),
    [
        ("(swap, health)", ("swap", "health"), "(swap, health)"),
        ("(sh sw sw)", ("shift_end", "swap"), "(shift_end, swap)"),
        ("swap", ("swap",), "(swap)"),
        ("()", (), "()"),
        ("all", None, None),
    ],
)
def test_the_features_of_a_domain_are_shown_written_and_read_again(centre, typed, kept, shown):
    centre.qmgr("set domain wide features=health")
    centre.qmgr(f"set domain wide features={typed}")
    assert centre.site.domain("wide").features == kept
    assert domains.rows(centre.site)[1]["features"] == (None if kept is None else list(kept))
    assert (f"  features={shown}" in domains.text(centre.site, ("wide",)).splitlines()) == (kept is not None)
    again = Centre(print_settings(centre.site.settings), pes=8)
    assert again.site.domain("wide").features == kept
    centre.is_sound()
