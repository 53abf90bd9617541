"""Foreign jobs hold their PEs without a request: nothing starts on them, and they never give way."""

import pytest
from core.harness import House
from core.story import Story, foreign_jobs
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.domains import rows, text
from nqspy.model.events import ForeignChanged
from nqspy.model.machine import foreign_in_words
from nqspy.model.site_checks import check_site

PLAIN = "machine 4; queue batch"
STORIES = {
    "nothing starts on their PEs": f"""{PLAIN}; foreign 0 2; submit anne pes=2, ben; starts anne; pes anne 1,3
        why ben few_pes_beside_foreign""",
    "one for all PEs waits until they end": f"""{PLAIN}; foreign 1; submit anne pes=4; starts -
        why anne pes_foreign; foreign; starts anne""",
    "one for more PEs than are online is told of these first": f"""{PLAIN}; offline 0
        foreign 1; submit anne pes=4; starts -; why anne pes_offline
        hold anne; submit ben pes=3; starts -; why ben pes_foreign""",
    "an offline PE is only offline": f"""{PLAIN}; offline 1; foreign 1; submit anne pes=4
        starts -; why anne pes_offline""",
    "what runs there goes on, and gets no company": f"""{PLAIN}; set domain/application/depth 2
        run anne pes=4; foreign 0-1; submit ben pes=2, cleo; starts ben; pes ben 2-3
        why cleo few_pes_beside_foreign""",
    "no block reaches over them": """machine 5; set domain/application/placement contiguous; queue batch
        foreign 2; submit anne pes=3, ben pes=2; starts ben; why anne few_pes_beside_foreign""",
    "none of them for one that comes back": f"""{PLAIN}; run anne pes=2; suspend anne; moved anne
        foreign 0; go; returns anne 1-2""",
    "nothing is reserved on them, a request behind starts": """machine 4; queue batch order=fcfs reserve=1
        foreign 3; submit anne pes=4 wall=600, ben pes=3 wall=600; starts ben; why anne pes_foreign""",
    "reserved is what others free": """machine 4; queue batch order=fcfs reserve=1; foreign 3
        run anne pes=2 wall=600; submit ben pes=3 wall=600, cleo wall=3600; starts -; reserved ben 10
        foreign; starts cleo""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_where_foreign_jobs_are(house, title):
    Story(house).play(STORIES[title])


def test_a_bumper_clears_no_foreign_job_and_goes_beside_it(gang):
    story = Story(gang)
    story.play("""foreign 0-1; run anne class=production pes=4 wall=7200; pes anne 2-5; later 60
        run ben class=interactive pes=6 wall=600; gives anne; moved anne; starts ben; pes ben 2-7
        submit cleo class=interactive pes=7; later 7200; starts -""")
    assert gang.site.foreign == foreign_jobs("0-1")


def test_they_are_shown_with_their_class(house):
    house.machine(4)
    house._event(ForeignChanged(foreign_jobs("0-1", "3")))
    [row] = rows(house.site)
    assert [(each["class"], each["pid"], each["user"], each["pes"]) for each in row["foreign"]] == [
        ("foreign", 100, "zoe", [0, 1]), ("foreign", 101, "zoe", [3]),
    ]  # fmt: skip
    assert (row["free"], row["held"], row["offline"]) == (1, 0, 0)
    assert "  PEs 0, 1 held by" not in text(house.site)
    assert "zoe: spin, process 101" in text(house.site)
    assert foreign_in_words(foreign_jobs("0", "1", "2"), 2).endswith("and 1 more")


STEP = st.one_of(
    st.tuples(
        st.just("submit"), st.integers(1, 4), st.sampled_from(("interactive", "production", "standby"))
    ),
    st.tuples(st.just("foreign"), st.lists(st.integers(0, 5), max_size=3, unique=True)),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("pass"), st.integers(0, 4000)),
)


@given(st.lists(STEP, max_size=25), st.integers(1, 3), st.sampled_from(("class", "fcfs")))
@settings(max_examples=examples(60), deadline=None)
def test_no_start_is_on_a_foreign_pe_none_gives_way_and_no_pe_has_too_many_holders(steps, depth, order):
    house = House().machine(pes=6).set("domain/application/depth", depth)
    for name, priority in (("interactive", 3), ("production", 2), ("standby", 1)):
        house.job_class(name, priority=priority, wait=1000 * priority, do_not_disturb="1")
    house.queue("apps", order=order, **({} if order == "class" else {"reserve": 1}))
    for verb, *words in steps:
        if verb == "submit":
            house.submit(f"anne pes={words[0]} class={words[1]} wall=600")
        elif verb == "foreign":
            house._event(ForeignChanged(foreign_jobs(*map(str, words[0]))))
        elif verb == "end":
            for seq in list(house.site.started)[words[0] : words[0] + 1]:
                house.end(seq)
        else:
            house.later(ms=words[0])
        before, running = house.site.foreign, dict.fromkeys(house.site.started)
        house.go()
        assert house.site.foreign == before
        taken = {pe for job in before for pe in job.pes}
        for seq in house.site.started.keys() - running.keys():
            assert taken.isdisjoint(house.request(seq).pes)
        assert all(len(holders) <= depth for holders in house.site.holders.values())
        check_site(house.site)
        for seq, request in list(house.site.started.items()):
            if request.pause is not None and not request.pes_released:
                house.moved_out(seq)
