"""A claim is on the disk before its job's first instruction; an attempt whose folder is taken away ends."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from executors.conftest import BOTH, WAIT, gone

from nqspy.executors import scan
from nqspy.model.observations import ObservedVoid


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace: it sees what is synced, and when")
@BOTH
def test_before_the_first_instruction_claim_folder_and_its_name_are_on_the_disk(bench, tmp_path, ask):
    trace = tmp_path / "trace"
    starter = bench.starter
    calls = "trace=fsync,fdatasync,link,linkat,execve"
    with subprocess.Popen(
        ["strace", "-f", "-y", "-s", "256", "-e", calls, "-o", trace, "-p", str(starter)]
    ) as tracer:
        try:
            status = Path(f"/proc/{starter}/status")
            bench.until(lambda: f"TracerPid:\t{tracer.pid}\n" in status.read_text(), "strace is there")
            request = bench.start("exit 0\n", ask=ask)
            bench.ending(request)
        finally:
            tracer.terminate()
    lines = trace.read_text().splitlines()
    (begun,) = [n for n, line in enumerate(lines) if 'execve("/bin/sh"' in line][:1]
    folder = re.escape(str(bench.folder(request)))
    spool = re.escape(str(bench.home / "spool"))
    claimed = _first(lines, r'link(at)?\(.*/claim"')
    for path in (f"{folder}/claim", folder, spool):
        assert claimed < _first(lines, rf"fsync\(\d+<{path}>") < begun, path


def _first(lines: list[str], pattern: str) -> int:
    return next(n for n, line in enumerate(lines) if re.search(pattern, line))


def test_an_end_whose_name_was_not_on_the_disk_is_read_all_the_same(bench):
    request = bench.start("exit 3\n")
    bench.ending(request)
    folder = bench.folder(request)
    bench.until(lambda: gone(bench.shepherd(request)), "its shepherd leaves")
    # As a power cut leaves it between the record and its name.
    for name in ("exit", "done"):
        (folder / name).unlink()
    claim = folder / "claim"
    claim.write_text("".join(line for line in claim.read_text().splitlines(True) if '{"done"' not in line))
    finding = scan.look(str(folder), bench.executor._watch.identifier)
    assert (finding.fate, finding.record["status"]) == ("undelivered", 3)


def test_who_runs_without_a_folder_at_a_restart_ends_with_his_shepherd(make_bench):
    bench = make_bench()
    request = bench.running(f"echo $$ > pid\nsetsid sleep 60 &\n{WAIT}")
    pids = [int(bench.text("pid")), bench.shepherd(request)]
    bench.leave()
    shutil.rmtree(bench.folder(request))
    assert isinstance(make_bench().executor.scan({request.seq: 1})[0], ObservedVoid)
    bench.until(lambda: all(gone(pid) for pid in pids), "all of it ends")
    os.truncate(bench.home / "spool" / "starter.log", 0)  # perhaps its shepherd was quicker, and said so


def test_a_request_whose_folder_is_taken_away_gives_its_processor_back_at_its_end(bench):
    request = bench.running(WAIT)
    shepherd = bench.shepherd(request)
    shutil.rmtree(bench.folder(request))
    bench.go()
    bench.expect(ObservedVoid, request)
    assert gone(shepherd)
    log = bench.home / "spool" / "starter.log"
    assert log.read_text() == f"the folder of attempt {request.seq}.1 was taken away\n"
    os.truncate(log, 0)
