"""The shipped exits do what the computing centre asked for (seed 003, sections 5 and 6)."""

import shutil
from pathlib import Path

import pytest

from nqspy.model.machine import ExitSettings
from nqspy.model.queues import Queue
from nqspy.userexit.loader import load_source, read_file
from nqspy.userexit.site_exits import SiteExits

SHIPPED = Path(__file__).parents[2] / "exits"
MW = 8 * 1024**2
LINES = {"dependency": 50, "large_memory": 71, "machine_gun": 10, "shrpri": 10}


@pytest.fixture
def only(tmp_path, a_pass):
    """only("dependency", queues="day"): return that shipped exit alone, with these settings."""

    def load(name, **values):
        folder = tmp_path / "exits"
        folder.mkdir(mode=0o755)
        shutil.copy(SHIPPED / f"{name}.py", folder)
        (folder / f"{name}.py").chmod(0o644)
        exits = SiteExits(folder)
        assert exits.problems == []
        a_pass(exits, **{name: ExitSettings(name, values=values)})
        return exits

    return load


@pytest.mark.parametrize("name", LINES)
def test_each_shipped_exit_is_good_short_and_says_what_it_does(name):
    text = (SHIPPED / f"{name}.py").read_text()
    assert load_source(read_file(SHIPPED / f"{name}.py"))[1] == []
    assert len(text.splitlines()) <= LINES[name]
    assert text.startswith('"""')


def offers(house, exits, *requests):
    house.queued = list(requests)
    house.offered.clear()
    return [None if (a := house.offer(exits, r)) is None else a.verdict for r in requests]


# ---------------------------------------------------------------- dependency
def test_the_later_of_two_equal_names_waits_for_the_earlier(only, house, req):
    exits = only("dependency")
    first, second, third = (req(seq, date_in_queue=seq) for seq in (1, 2, 3))
    assert offers(house, exits, first, second, third) == [None, "refuse", "refuse"]
    assert {"1.host,", "job"} <= set(house.offered[1][1].text.split())
    house.started.clear()
    assert offers(house, exits, second, third) == [None, "refuse"]
    house.started.clear()
    assert offers(house, exits, third, second) == ["refuse", None], "also when it is offered first"


@pytest.mark.parametrize(
    "other", [{"owner": "ben"}, {"group": "d2"}, {"name": "other"}, {"name_given": False}, {"queue": "day"}]
)
def test_other_owners_groups_names_and_queues_do_not_matter(only, house, req, other):
    exits = only("dependency")
    assert offers(house, exits, req(1, **other), req(2, date_in_queue=1)) == [None, None]


def test_a_default_name_says_nothing_and_the_queues_are_a_setting(only, house, req):
    exits = only("dependency", queues="(day, test)")
    unnamed = [req(seq, queue="day", name_given=False) for seq in (1, 2)]
    assert offers(house, exits, *unnamed) == [None, None]
    house.started.clear()
    assert offers(house, exits, req(3), req(4)) == [None, None]
    house.started.clear()
    assert offers(house, exits, req(5, queue="day"), req(6, queue="day")) == [None, "refuse"]


# ---------------------------------------------------------------- large memory (more than 25 MW here)
def large(only):
    return only("large_memory", hmax="100mw", nproc="4")


def sized(req, *sizes, **words):
    return [req(seq, memory=size * MW, **words) for seq, size in enumerate(sizes, 1)]


def test_large_requests_together_stay_within_hmax_and_small_ones_go_on(only, house, req):
    exits = large(only)
    assert offers(house, exits, *sized(req, 60, 60, 20, 25)) == [None, "refuse", None, None]


def test_a_large_one_that_does_not_fit_closes_the_line_for_large_ones_only(only, house, req):
    exits, elsewhere = large(only), req(5, memory=30 * MW, queue="day")
    asked = (*sized(req, 60, 60, 30, 20), elsewhere)
    assert offers(house, exits, *asked) == [None, "refuse", "refuse", None, None]
    assert "2.host," in house.offered[2][1].text.split()
    within = [answer.within for _, answer in house.offered[1:3]]
    assert within == [(("memory", 60 * MW, 100 * MW),), (("memory", 25 * MW + 1, 100 * MW),)], "all others"


def test_a_large_one_refused_by_another_exit_closes_nothing(only, house, req, tmp_path):
    exits = large(only)
    path = tmp_path / "exits" / "first.py"
    path.write_text(
        "from nqspy.userexit import *\n@userexit\n"
        "def jobselect(request): return refuse('no') if request.seq == 1 else None\n"
    )
    path.chmod(0o644)
    exits.reload()
    assert offers(house, exits, *sized(req, 60, 30)) == ["refuse", None]


def test_one_that_can_never_fit_blocks_nobody(only, house, req):
    exits = large(only)
    assert offers(house, exits, *sized(req, 120, 60)) == ["never", None]
    assert "100mw" in house.offered[0][1].text.split()


def test_what_can_never_fit_is_refused_at_submission_while_the_rule_is_off_too(only, house, req):
    exits = only("large_memory", hmax="100mw", rule="off")
    answer = exits.submit(req(1, memory=120 * MW), house)
    assert answer is not None
    assert "100mw" in answer.refusal.split()
    assert exits.submit(req(1, memory=100 * MW), house) is None
    assert exits.submit(req(1, memory=120 * MW, queue="day"), house) is None, "the rule may be off there"
    assert offers(house, exits, *sized(req, 60, 60, 120)) == [None, None, "never"]


def test_all_together_stay_within_twice_hmax(only, house, req):
    exits = only("large_memory", hmax="100mw", nproc="20")
    house.started = sized(req, 20, 20, 20, 20, 20)
    house.started += [req(10 + n, memory=5 * MW) for n in range(10)]
    house.queues["night"] = Queue("night")
    assert offers(house, exits, req(99, memory=5 * MW)) == [None]
    house.started = [req(n, memory=49 * MW, queue="day") for n in range(4)]
    assert offers(house, exits, req(99, memory=4 * MW), req(98, memory=5 * MW)) == [None, "refuse"]


def test_at_most_nproc_and_two_run(only, house, req):
    exits = large(only)
    assert offers(house, exits, *sized(req, 1, 1, 1, 1, 1, 1, 1)) == [None] * 6 + ["refuse"]


def test_unlimited_memory_counts_as_the_queues_limit_else_as_hmax(only, house, req):
    exits = large(only)
    assert offers(house, exits, req(1, memory=None), req(2, memory=None)) == [None, "refuse"]
    house.started.clear()
    house.queues["night"].per_request.memory_limit = 10 * MW
    assert offers(house, exits, req(1, memory=None), req(2, memory=None)) == [None, None]


# ---------------------------------------------------------------- machine gun, shrpri
def test_a_burst_behaves_as_if_each_was_submitted_when_the_one_before_started(only, house, req):
    exits = only("machine_gun")
    chosen = req(2)
    house.queued = [req(1), chosen, req(3), req(4, "ben")]
    (action,) = exits.elected(chosen, house)
    assert (action.seqs, action.date, action.cause, action.who) == ((1, 3), house.now, 2, "machine_gun")


def test_all_users_of_a_group_have_the_share_term_of_their_group(only, house):
    exits = only("shrpri")
    house.stock = {(None, "d1"): 0.01, ("anne", "d1"): 0.7}
    assert [exits.shrpri(owner, "d1", house) for owner in ("anne", "ben")] == [0.01, 0.01]
