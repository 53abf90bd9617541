"""Limits of job classes: masks and reasons say the same, and jobs that give way count no more."""

from core.harness import House
from core.properties.test_core_limit_properties import masked
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.classes import ClassLimit, JobLimit, LargeLimit

RULES = (ClassLimit, JobLimit, LargeLimit)
PES = 8
MOST = st.none() | st.integers(1, PES)
CLASS = st.fixed_dictionaries(
    {
        "priority": st.integers(1, 3), "wait": st.sampled_from((None, 0)), "pe_limit": MOST,
        "preempted": st.booleans(), "do_not_disturb": st.sampled_from((None, 0)),
    }
)  # fmt: skip
GANG = st.fixed_dictionaries({"large_size": MOST, "large_limit": MOST, "job_limit": MOST})
JOBS = st.lists(st.tuples(st.sampled_from("abcx"), st.integers(1, PES)), max_size=8)


@st.composite
def houses(draw):
    """Return a machine on which some jobs of three classes (and one that is gone) run and some wait."""
    house = House().machine(pes=PES).queue("apps", order="class")
    for name in "abc":
        house.job_class(name, **draw(CLASS))
    for jobs in draw(JOBS), draw(JOBS):
        house.submit(*(f"anne class={name} pes={pes}" for name, pes in jobs)) if jobs else None
        house.go()
        for name, most in draw(GANG).items():
            house.set(f"gang/{name}", most)
    return house


def counting(kind, site, holders):
    """Return a rule that counts these jobs."""
    rule = kind(site)
    for each in holders:
        rule.add(each)
    return rule


@settings(max_examples=examples(100))
@given(houses(), st.integers(0, PES))
def test_a_class_limit_masks_the_jobs_that_it_refuses_and_forgets_those_that_give_way(house, staying):
    site, columns = house.site, house.site.columns("apps")
    holders = list(site.started.values())
    for kind in RULES:
        rule, empty = counting(kind, site, holders), kind(site)
        stay = counting(kind, site, holders[:staying])
        refused = {job.seq for job in columns.requests() if rule.refuses(job)}
        assert masked(rule.mask("apps", columns), columns) == refused
        never = {job.seq for job in columns.requests() if empty.refuses(job)}
        assert masked(rule.mask("apps", columns, ever=True), columns) == never
        for job in columns.requests():
            assert rule.refuses(job, holders[staying:]) == stay.refuses(job)
