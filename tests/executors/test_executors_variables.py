"""A job's own variables: a job that another job submits has none of the outer one's."""

import os
from typing import Any

import pytest

from nqspy.executors.order import make_order
from nqspy.executors.scratch import variables as of_scratch
from nqspy.model import indices
from nqspy.model.actions import Start
from nqspy.model.arrays import ArraySpec
from nqspy.model.consumables import Consumable
from nqspy.model.ids import member
from nqspy.model.job_variables import ATTEMPT, NAMES, leave_behind
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, Spec, State
from nqspy.model.shapes import Layout
from nqspy.model.site import Site

EACH_JOB = {"NQSPY_HOME", "CUDA_VISIBLE_DEVICES"}


def order_of(dialect: str, sent: dict[str, str], *, array: bool = False, torus: bool = False, **units: Any):
    site = Site(host="ymp")
    site.settings.machine.pes = 8
    if torus:
        site.settings.machine.shape = "2x2x2"
    site.settings.queues["batch"] = Queue("batch")
    site.settings.consumables["gpu"] = Consumable("gpu", env="CUDA_VISIBLE_DEVICES")
    spec = Spec(
        owner="anne", uid=os.getuid(), queue="batch", script="", environment="", workdir="/w", name="inner",
        dialect=dialect, ask=Ask(pes=4, memory=1 << 30), layout=Layout(threads=2),
        array=ArraySpec(indices.read("3-3")) if array else None,
    )  # fmt: skip
    seq = member(9, 3) if array else 9
    request = Request(seq, spec, queue="batch", submitted=0, date_in_queue=0, state=State.QUEUED)
    start = Start(seq, 1, (0, 1, 2, 3), **units)
    environment = "\0".join(f"{name}={value}" for name, value in sent.items()).encode("latin-1")
    return make_order(
        request, start, site, home="/h", speed=1.0, script=b"", environment=environment
    )["environment"]  # fmt: skip


def outer(dialect: str) -> dict[str, str]:
    """Return the variables of a job that asks for everything."""
    given = order_of(dialect, {}, array=True, torus=True, units=(("gpu", ("0",)),))
    mine, always = of_scratch({"scratch": "/tmp/nqspy.9-3.ab"})
    return {**given, **mine, **always, "PBS_JOBDIR": "/w", "MINE": "1"}


@pytest.mark.parametrize("dialect", ["nqs", "pbs", "slurm"])
def test_each_variable_that_a_job_is_given_is_listed(dialect):
    assert set(outer(dialect)) - EACH_JOB - {"MINE"} <= NAMES


@pytest.mark.parametrize("inner", ["nqs", "pbs", "slurm"])
@pytest.mark.parametrize("dialect", ["nqs", "pbs", "slurm"])
def test_a_job_that_a_job_submits_finds_what_it_would_find_from_a_login(dialect, inner):
    assert order_of(inner, outer(dialect)) == {**order_of(inner, {}), "MINE": "1"}


def test_outside_of_a_job_a_users_own_variables_stay():
    own = {"TMPDIR": "/scratch/anne", "OMP_NUM_THREADS": "3", "PBS_ARRAY_INDEX": "5", "SLURM_JOB_ID": "7"}
    assert leave_behind(own) == own
    found = order_of("pbs", own)
    assert {name: found[name] for name in own} == own


def test_a_folder_of_the_users_own_stays_within_a_job_too():
    own = {ATTEMPT: "1", "PBS_NODEFILE": "/tmp/nqspy.9.ab/hosts", "TMPDIR": "/scratch/anne"}
    assert leave_behind(own) == {"TMPDIR": "/scratch/anne"}
    assert leave_behind(own | {"TMPDIR": "/tmp/nqspy.9.ab/tmp/sub"}) == {}
