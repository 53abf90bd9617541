"""PSI/J's executors for PBS, as they are."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["pbs", "pbs_classic"])
def test_psij_learns_how_each_job_ended(person, kind):
    seen = person.drive("psij_jobs.py", kind)
    assert seen["ends"]["good"] == ["COMPLETED", 0]
    assert seen["ends"]["bad"] == ["FAILED", 3]
    assert seen["ends"]["long"][0] in ("CANCELED", "FAILED"), "of qdel's TERM it says FAILED"
    assert (person.folder / f"{kind}-good.out").read_text() == f"good evening\n{person.folder}\n"
    assert seen["ids"]["long"].partition(".")[0] in [each.partition(".")[0] for each in seen["listed"]]
    jobs = {name: person.live.job(id) for name, id in seen["ids"].items()}
    assert jobs["long"]["end_reason"] == "deleted"
    assert jobs["good"]["requested"]["memory_bytes"] == 64 * 2**20
    assert jobs["good"]["requested"]["wall_s"] == 180
