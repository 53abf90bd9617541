"""dask-jobqueue: two workers by qsub, twenty tasks, no workers any more."""

import json
import os
import warnings
from pathlib import Path

from dask_jobqueue import PBSCluster
from distributed import Client


def main() -> None:
    warnings.simplefilter("ignore")
    cluster = PBSCluster(
        cores=1,
        memory="1 GiB",
        walltime="00:05:00",
        log_directory=str(Path.cwd() / "logs"),
        local_directory=str(Path.cwd()),
        scheduler_options={"host": "127.0.0.1", "dashboard_address": None},
        worker_extra_args=["--no-dashboard"],
    )
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=120)
        seen = {
            "script": cluster.job_script(),
            "sum": sum(client.gather(client.map(lambda number: number + 1, range(20)))),
            "pids": list(client.run(os.getpid).values()),
            "jobs": sorted(worker.job_id for worker in cluster.workers.values()),
        }
        cluster.scale(0)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
