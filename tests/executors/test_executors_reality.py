"""What the spool says and nobody expects: strays, another boot, shepherds of a later version."""

import json
import os

from executors.conftest import WAIT, gone

from nqspy.executors import records, scan
from nqspy.model.actions import Kill, SetAside
from nqspy.model.observations import ObservedEnded, ObservedLost, ObservedRunning, ObservedStray
from nqspy.model.requests import Output

PID_AND_WAIT = f"echo $$ > pid\n{WAIT}"


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


def test_the_claim_names_the_version_of_the_protocol(bench):
    request = bench.start("exit 0\n")
    bench.ending(request)
    assert records.protocol(str(bench.folder(request))) == records.PROTOCOL


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
