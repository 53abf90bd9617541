"""Limits of job classes: jobs that give way count no more."""

from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.classes import ClassLimits

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


def counting(site, holders):
    """Return limits that count these jobs."""
    limits = ClassLimits(site)
    for each in holders:
        limits.add(each)
    return limits


@settings(max_examples=examples(100))
@given(houses(), st.integers(0, PES))
def test_a_class_limit_forgets_the_jobs_that_give_way(house, staying):
    site, holders = house.site, list(house.site.started.values())
    limits, stay = counting(site, holders), counting(site, holders[:staying])
    for job in site.columns("apps").requests():
        assert limits.refuses(job, holders[staying:]) == stay.refuses(job)
