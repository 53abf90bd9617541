"""dask-jobqueue's PBSCluster, as it is."""

import pytest
from daemon.live import alive, until

pytestmark = pytest.mark.slow


def test_workers_come_by_qsub_compute_and_go_by_qdel(person):
    seen = person.drive("dask_workers.py")
    assert "#PBS -l select=1:ncpus=1:mem=1024MB" in seen["script"]
    assert seen["sum"] == sum(range(1, 21))
    assert len(seen["jobs"]) == len(seen["pids"]) == 2
    for id in seen["jobs"]:
        assert id.isdigit(), "dask keeps the number of an identifier"
        assert person.live.ended(id)["end_reason"] == "deleted"
        whole = person.live.job(id)["id"]
        assert (person.folder / "logs" / f"{whole}.OU").exists()
        assert "Starting Worker" in (person.folder / "logs" / f"{whole}.ER").read_text()
    until(lambda: not any(map(alive, seen["pids"])), "the workers end")
