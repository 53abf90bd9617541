"""Domains in the command language: their PEs, and refused settings."""

import pytest
from engine.harness import Centre
from engine.story import Story, play

from nqspy.core import domains
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.configure import dump
from nqspy.qmgr.printer import print_settings

PARKED = """qmgr define shift away when=("0 3 1 1 *") spill=suspend | stop queue day | end
    qmgr define shift back when=("0 4 1 1 *") | start queue day | end
    qmgr create batch_queue aux domain=wide | enable queue aux | start queue aux
    submit anne pes=4 queue=day; qmgr switch shift away; has 1 pes_released=true"""
CHOOSY = """qmgr set domain wide smallest=2 largest=3 users=(anne) groups=(staff)
    qmgr create pipe_queue in destination=(day, batch) | enable queue in | start queue in"""
STORIES = {
    "a new domain takes PEs and gives them back": """domains application=0-3 wide=4-7
        qmgr create domain narrow pes=(0, 2-3); domains application=1 wide=4-7 narrow=0,2-3
        qmgr set domain narrow pes=3; domains application=0-2 wide=4-7 narrow=3
        qmgr delete domain narrow; domains application=0-3 wide=4-7""",
    "only idle PEs change their domain": """submit anne pes=2; pes 1 0-1
        deny create domain more pes=1-2 -> pe_is_held; deny set domain wide pes=(1, 4-7) -> pe_is_held
        submit anne pes=4 queue=day; deny set domain wide pes=4-6 -> pe_is_held
        deny set domain wide pes=(0, 2) -> pe_is_held; later 20m; state 1 ended 2 ended
        qmgr set domain wide pes=(0-1, 6); domains application=2-5,7 wide=0-1,6""",
    "a queue whose requests hold PEs stays": """submit anne, anne
        deny set queue batch domain=wide -> queue_holds_pes; later 20m; qmgr set queue batch domain=wide
        submit anne; pes 3 4""",
    "a depth below what PEs hold": """qmgr set domain application depth=2; submit anne pes=4, ben pes=4
        pes 1 0-3 2 0-3; deny set domain application depth=1 -> pe_has_holders""",
    "more PEs than the domain or its largest block has": """refuse anne pes=5 queue=day -> above_limit
        refuse anne pes=9 queue=day -> above_limit
        qmgr set domain wide pes=(2-3, 5-7) placement=contiguous; refuse anne pes=4 queue=day -> above_limit
        submit anne pes=3 queue=day; pes 1 5-7""",
    "a shift moves idle PEs and is not entered where they are held": """
        qmgr define shift evening when=("0 19 * * *") | set domain wide pes=(4-7) | end
        qmgr define shift day when=("0 22 * * *") | set domain wide pes=(2-7) | end; submit anne pes=4
        pes 1 0-3; deny switch shift day -> pe_is_held; domains application=0-3 wide=4-7
        until 22:01; domains application=0-1 wide=2-7""",
    "nothing is kept for one too wide for its domain": f"""{PARKED}; qmgr set domain wide pes=4-6
        qmgr switch shift back; why 1 NEVER; submit ben queue=aux; state 2 running
        qmgr set domain wide pes=4-7; later 1h; state 1 ended""",
    "a queue with only parked requests gets another domain": f"""{PARKED}
        qmgr set queue day domain=application | switch shift back; pes 1 0-3""",
    "one that its domain does not take": f"""{CHOOSY}; refuse anne queue=day -> above_limit
        refuse anne queue=day pes=4 -> above_limit; refuse ben queue=day pes=2 -> domain_closed
        submit anne queue=day pes=2, olga queue=day pes=3
        qmgr set domain wide accounts=(cfd) takes=batch; refuse anne queue=day pes=2 -> above_limit""",
    "a pipe queue chooses the domain at submission": f"""{CHOOSY}
        submit anne queue=in pes=3, anne queue=in, ben queue=in pes=3; queue 1 day 2 batch 3 batch; pes 1 4-6
        submit anne queue=in pes=2; qmgr set domain wide users=(nobody) groups=() smallest=3; queue 4 day
        later 11m; pes 4 4-5
        qmgr create pipe_queue strict destination=(day) | enable queue strict | start queue strict
        refuse anne queue=strict -> no_destination""",
    "moved or modified it must be one that the domain takes": f"""{CHOOSY}
        submit anne pes=2 held, ben pes=2 held; move 2 to=day by ben -> 2:domain_closed
        move 2 to=day; queue 2 day; move 1 to=day by anne; modify 1 ask.pes=4 by anne -> 1:above_limit
        queue 1 day; has 1 spec.ask.pes=2""",
    "the machine keeps the PEs of its domains and of those that shifts set": """
        qmgr define shift late when=("0 23 * * *") | set domain wide pes=5-7 | end
        qmgr set domain wide pes=4-5; deny set machine pes=6 -> bad_settings; qmgr delete shift late
        qmgr set machine pes=6; domains application=0-3 wide=4-5""",
    "a machine with a shape gets other PEs together with another shape": """
        qmgr set machine pes=8 shape=2x2x2; deny set machine pes=10 -> bad_settings
        qmgr set machine pes=10 shape=none; domains application=0-3,8-9 wide=4-7""",
    "an operator sets PEs offline and online, and no more of the machine": """qmgr add managers = (olga:o)
        qmgr set machine offline=(0, 5-6) by olga; submit anne pes=3; pes 1 1-3
        deny set machine pes=16 by olga -> not_permitted; qmgr set machine offline=() by olga
        submit anne pes=4 queue=day; pes 2 4-7""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], settings=TWO, pes=8)


ONE = (
    "create batch_queue batch priority=10\nenable queue batch\nstart queue batch\nset default queue = batch\n"
)
TWO = ONE + (
    "create domain wide pes=4-7\ncreate batch_queue day domain=wide\nenable queue day\nstart queue day\n"
)


@pytest.fixture
def centre():
    return Centre(TWO, pes=8)


def test_without_a_domain_nothing_is_shown_or_stored_of_them():
    centre = Centre(ONE, pes=2)
    assert not any(path.startswith("domain") for path in dump(centre.site.settings))
    assert "domain" not in print_settings(centre.site.settings)
    assert domains.text(centre.site).splitlines() == [
        "application [application]", "  PEs 0-1: 2, 2 free, 0 held", "  placement=lowest depth=1",
        "  takes all requests",
    ]  # fmt: skip


@pytest.fixture
def parked(centre):
    """Return a site with a request of four PEs that shift away has suspended, so its PEs are idle."""
    Story(centre).play(PARKED)
    return 1


def test_one_that_comes_back_gets_no_pe_that_another_domain_has_now(centre, parked):
    found = centre.site.found
    centre.engine.note(
        ev.MachineFound(found.cpus, found.memory, "sim", centre.site.zone, (5,)), centre.sim.now
    )
    centre.qmgr("set domain wide pes=(3-4, 6-7)")
    centre.qmgr("switch shift back")
    assert set(centre.request(parked).pes) == {3, 4, 6, 7}
    centre.is_sound()


def test_whom_a_domain_takes_is_shown(centre):
    Story(centre).play(f"{CHOOSY}; qmgr set domain wide accounts=(cfd, p17) takes=interactive")
    expected = "  takes interactive requests of 2 to 3 PEs; users anne; Unix groups staff; accounts cfd, p17"
    assert expected in domains.text(centre.site).splitlines()
    [_, row] = domains.rows(centre.site)
    assert (row["smallest"], row["largest"], row["takes"]) == (2, 3, "interactive")
    assert (row["users"], row["groups"], row["accounts"]) == (["anne"], ["staff"], ["cfd", "p17"])


def test_a_domain_with_fewer_pes_than_whom_it_takes_asks_for_is_warned_of(centre):
    changes = (ev.Change("set", "domain/wide/smallest", 5),)
    answer = centre.ask(cm.Configure(changes, advise=True))
    [warning] = answer["warnings"]
    assert warning.startswith("queue day: domain wide ")


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
def test_the_features_of_a_domain_are_stored_and_shown(centre, typed, kept, shown):
    centre.qmgr("set domain wide features=health")
    centre.qmgr(f"set domain wide features={typed}")
    assert centre.site.domain("wide").features == kept
    assert domains.rows(centre.site)[1]["features"] == (None if kept is None else list(kept))
    assert (f"  features={shown}" in domains.text(centre.site, ("wide",)).splitlines()) == (kept is not None)
    centre.is_sound()


# ---------------------------------------------------------------- the machine
def test_holders_of_a_domain_are_shown_with_their_base_and_where_it_lies(centre):
    (seq,) = centre.submit("anne queue=day pes=2")
    held = {"id": centre.id(seq), "pes": [4, 5], "base": 4}
    assert domains.rows(centre.site)[1]["holders"] == [held]
    assert f"  PEs 4-5 held by {centre.id(seq)}" in domains.text(centre.site).splitlines()
    centre.qmgr("set machine pes=8 shape=2x2x2 pes_per_node=2")
    assert domains.rows(centre.site)[1]["holders"] == [held | {"coordinate": [0, 0, 1]}]
    assert f"  PEs 4-5 held by {centre.id(seq)}, base 4 (0,0,1)" in domains.text(centre.site).splitlines()
    centre.is_sound()
