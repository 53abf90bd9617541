"""What the spool says and nobody expects: strays, another boot, shepherds of earlier and later versions."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from executors.conftest import WAIT, gone

from nqspy.executors import records, scan
from nqspy.model.actions import Kill, SetAside
from nqspy.model.observations import ObservedEnded, ObservedLost, ObservedRunning, ObservedStray
from nqspy.model.requests import Output

PID_AND_WAIT = f"echo $$ > pid\n{WAIT}"
FORMER = Path(__file__).parents[1] / "data" / "shepherd-1.zip"
"""model and executors of nqspy as they were with protocol 1."""


def test_an_attempt_that_nobody_expects_is_told_with_its_fate(bench):
    done = bench.start("exit 0\n")
    bench.ending(done)
    running = bench.running(PID_AND_WAIT)
    found = bench.executor.scan({})
    assert set(found) == {ObservedStray(done.seq, 1, "done"), ObservedStray(running.seq, 1, "alive")}
    bench.do(Kill(running.seq, 1, "deleted", 1000))
    bench.ending(running)


def test_a_stray_that_is_set_aside_ends_and_its_number_is_free(make_bench):
    first = make_bench()
    first.running(PID_AND_WAIT)
    pid = int(first.text("pid"))
    first.leave()
    again = make_bench()
    again.executor.scan({})
    again.do(SetAside(1, 1))
    assert not again.folder(again.request("exit 0\n")).exists()
    again.seq = 0
    assert again.run("exit 6\n").status == 6  # the same request and attempt
    again.until(lambda: gone(pid), "the stray has ended")
    aside = again.home / "spool" / "stray-1.1"
    again.until(lambda: records.read(str(aside), "done"), "its end is written down")
    assert records.read(str(aside), "done")["reason"] == "void"
    again.executor.scan({})
    assert not aside.exists()


def test_output_that_had_to_stay_is_kept_when_it_is_set_aside(bench):
    kept = bench.start("echo precious\n", output=Output(stdout="/nowhere/out"))
    bench.ending(kept)
    bench.do(SetAside(kept.seq, 1))
    bench.executor.scan({})
    assert (bench.home / "spool" / "stray-1.1" / "stdout").read_text() == "precious\n"


def test_what_a_stray_left_running_is_ended(bench):
    request = bench.running(PID_AND_WAIT)
    pid = int(bench.text("pid"))
    bench.executor._watch._attempts.clear()  # nobody waits for it any more
    os.kill(bench.shepherd(request), 9)
    bench.until(
        lambda: scan.look(str(bench.folder(request)), bench.executor._watch.identifier).fate == "lost", ""
    )
    assert bench.executor.scan({}) == [ObservedStray(request.seq, 1, "lost")]
    bench.until(lambda: gone(pid), "its job has ended")


def test_an_attempt_of_a_former_boot_is_lost_and_says_so(bench):
    request = bench.start("exit 0\n")
    bench.ending(request)
    claim = bench.folder(request) / "claim"
    mine = bench.executor._watch.identifier.boot
    for name in ("exit", "done", "pid"):
        (bench.folder(request) / name).unlink(missing_ok=True)
    text = claim.read_text().replace(mine, "0" * len(mine))
    claim.write_text("\n".join(line for line in text.split("\n") if '{"exit"' not in line))
    (lost,) = bench.executor.scan({request.seq: 1})
    assert isinstance(lost, ObservedLost)
    assert lost.text == "the machine was restarted while it ran"


def test_an_end_that_was_written_before_the_reboot_counts(bench):
    request = bench.start("exit 12\n")
    bench.ending(request)
    claim = bench.folder(request) / "claim"
    mine = bench.executor._watch.identifier.boot
    claim.write_text(claim.read_text().replace(mine, "0" * len(mine)))
    (ended,) = bench.executor.scan({request.seq: 1})
    assert isinstance(ended, ObservedEnded)
    assert ended.ending.status == 12


# ---------------------------------------------------------------- versions


def test_the_claim_names_the_version_of_the_protocol_and_without_one_is_of_the_first(bench, tmp_path):
    request = bench.start("exit 0\n")
    bench.ending(request)
    assert records.protocol(str(bench.folder(request))) == records.PROTOCOL
    records.claim(str(tmp_path), "boot 1 2 3")
    assert records.protocol(str(tmp_path)) == 1


FORMER_DAEMON = """
import sys
sys.path.insert(0, sys.argv[1])
from nqspy.executors.local import LocalHands
from nqspy.model.actions import Start
from nqspy.model.ids import Instant
from nqspy.model.requests import Request, Spec, State
from nqspy.model.queues import Queue
from nqspy.model.site import Site
import nqspy, os, pwd, queue
assert nqspy.__file__.startswith(sys.argv[1])
home, work = sys.argv[2:4]
told, blobs = queue.Queue(), {"e": b""}
hands = LocalHands(home, told.put, blobs.__getitem__, cage=sys.argv[4])
hands.start()
site = Site(host="ymp", found=hands.found())
site.settings.queues["batch"] = Queue("batch", workdir="submit")
me = pwd.getpwuid(os.geteuid())
for seq, script in enumerate(sys.argv[5:], 1):
    blobs[str(seq)] = script.encode()
    spec = Spec(owner=me.pw_name, uid=me.pw_uid, gid=me.pw_gid, name="job", queue="batch", workdir=work,
                shell="/bin/sh", script=str(seq), environment="e")
    request = Request(seq, spec, "batch", State.RUNNING, Instant(0), Instant(0), attempt=1)
    hands.do(Start(seq, 1, (0,)), request, site, Instant(0))
    told.get()
print("running", flush=True)
told.get()
"""


@pytest.mark.parametrize("cage", ["", "none"])
def test_shepherds_of_the_former_version_are_taken_over(make_bench, tmp_path, cage):
    code = tmp_path / "former"
    with zipfile.ZipFile(FORMER) as archive:
        archive.extractall(code)
    (tmp_path / "work").mkdir()
    words = [sys.executable, "-c", FORMER_DAEMON, str(code), str(tmp_path), str(tmp_path / "work"), cage]
    wait = PID_AND_WAIT.replace("> pid", "> pid.$QSUB_REQID")
    scripts = [f"{wait}echo late; exit 41\n", "exec sleep 60\n"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen([*words, *scripts], stdout=subprocess.PIPE, text=True, env=environment) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "running\n"
        daemon.kill()
    bench = make_bench()
    assert records.protocol(str(tmp_path / "spool" / "1.1")) == 1
    assert [type(s) for s in bench.executor.scan({1: 1, 2: 1})] == [ObservedRunning, ObservedRunning]
    bench.do(Kill(2, 1, "deleted", 1000))
    bench.go()
    ends = {}
    while len(ends) < 2:
        observation = bench.told.get(timeout=120)
        assert isinstance(observation, ObservedEnded)
        ends[observation.seq] = (observation.ending.reason, observation.ending.status)
    assert ends[1] == ("exit", 41)
    assert ends[2][0] == "deleted"
    assert bench.text("job.o1") == "late\n"


def test_a_shepherd_of_a_later_version_is_told_and_left_alone(make_bench):
    first = make_bench()
    request = first.running(PID_AND_WAIT)
    pid = int(first.text("pid"))
    first.leave()
    claim = first.folder(request) / "claim"
    lines = claim.read_text().split("\n")
    lines[1] = json.dumps({"protocol": records.PROTOCOL + 1})
    claim.write_text("\n".join(lines))
    bench = make_bench()
    found = bench.executor.scan({request.seq: 1})
    assert [type(s) for s in found] == [ObservedRunning, ObservedStray]
    assert found[1] == ObservedStray(request.seq, 1, "later")
    assert bench.executor.scan({}) == [ObservedStray(request.seq, 1, "later")]
    assert not gone(pid)
    assert bench.folder(request).is_dir()
    bench.go()
    bench.until(lambda: gone(pid), "it ends by itself")
