"""What `qstat` says of requests: how long one has run, and its domain where there are several."""

import pytest

from nqspy.model.cause import HANDS
from nqspy.model.ids import Instant
from nqspy.model.requests import Attempt, Pause, State, Used

MINUTE = 60_000


def full(fresh, id):
    out = fresh.result("root", "qstat", text="full", operands=[id])["out"]
    return dict(line.strip().split(" = ", 1) for line in out.splitlines() if " = " in line)


@pytest.mark.parametrize(("pause", "wall"), [(None, "00:10:00"), (3 * MINUTE, "00:07:00")])
def test_wall_time_is_that_of_the_moment_and_not_of_the_last_sample(fresh, monkeypatch, pause, wall):
    [id] = fresh.submit("owner")
    request = fresh.daemon.engine.site.requests[int(id.partition(".")[0])]
    now = fresh.daemon.clock.now()
    monkeypatch.setattr(type(fresh.daemon.clock), "now", lambda clock: now)
    request.attempt = Attempt(
        1,
        (0,),
        Instant(now - 11 * MINUTE),
        starting=False,
        used=Used(5_000, 30_000, 1 << 20),
        pause=None if pause is None else Pause(HANDS, Instant(now - pause)),
        suspended_time=MINUTE,
    )
    request.state = State.RUNNING if pause is None else State.SUSPENDED
    shown = full(fresh, id)
    assert (shown["resources_used.walltime"], shown["resources_used.cput"]) == (wall, "00:00:05")
    [told] = fresh.result("root", "list_requests", ids=[id])
    assert told["used"]["wall_s"] == (10 if pause is None else 7) * 60


def test_the_domain_is_said_where_there_are_several(fresh):
    [id] = fresh.submit("owner")
    assert "domain" not in full(fresh, id)
    fresh.qmgr("set machine pes=8", "create domain big pes=4-7", "set queue batch domain=big")
    assert full(fresh, id)["domain"] == "big"
