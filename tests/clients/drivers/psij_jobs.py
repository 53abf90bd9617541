"""PSI/J, with the executor that is named: a job that ends well, one that fails, one that is cancelled."""

import json
import subprocess
import sys
from datetime import timedelta
from getpass import getuser
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.pbs_base import PBSExecutorConfig


def job(name: str, line: str) -> Job:
    folder = Path.cwd()
    return Job(
        JobSpec(
            executable="/bin/sh",
            arguments=["-c", line],
            directory=folder,
            stdout_path=folder / f"{name}.out",
            environment={"GREETING": "good evening"},
            resources=ResourceSpecV1(node_count=1, processes_per_node=1, memory=64 * 2**20),
            attributes=JobAttributes(
                duration=timedelta(minutes=3), account="model", custom_attributes={"pbs.c": "n"}
            ),
            launcher="single",
        )
    )


def main(kind: str) -> None:
    config = PBSExecutorConfig(
        work_directory=Path.cwd() / f"psij-{kind}", queue_polling_interval=1, initial_queue_polling_delay=0
    )
    executor = JobExecutor.get_instance(kind, config=config)
    jobs = {
        "good": job(f"{kind}-good", 'echo "$GREETING"; pwd'),
        "bad": job(f"{kind}-bad", "exit 3"),
        "long": job(f"{kind}-long", "exec sleep 600"),
    }
    for each in jobs.values():
        executor.submit(each)
    jobs["long"].wait(timedelta(seconds=120), [JobState.ACTIVE])
    # executor.list() asks for the terminal's user: without a terminal there is none.
    listed = executor.parse_list_output(subprocess.check_output(["qstat", "-u", getuser()], text=True))
    jobs["long"].cancel()
    ends = {name: each.wait(timedelta(seconds=120)) for name, each in jobs.items()}
    ids = {name: each.native_id for name, each in jobs.items()}
    states = {name: end and [end.state.name, end.exit_code] for name, end in ends.items()}
    print(json.dumps({"ids": ids, "ends": states, "listed": listed}))


if __name__ == "__main__":
    main(sys.argv[1])
