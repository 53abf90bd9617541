"""Requests that share PEs take turns, live: by the machine's clock, with or without a daemon."""

import time

from daemon.live import Live, until

SITE = """\
set machine pes=2
create batch_queue batch workdir=submit
enable queue batch
start queue batch
set default queue = batch
set domain application depth=2 heartbeat=0.4 placement=slots
"""
SLOT = 0.4
STAMPS = """exec python3 -c '
import sys, time
out = open(sys.argv[1], "w")
end = time.process_time() + float(sys.argv[2])
while time.process_time() < end:
    out.write(f"{time.monotonic()}\\n")
    out.flush()
    until = time.process_time() + 0.004
    while time.process_time() < until: pass
' """


def stamps(live: Live, name: str) -> list[float]:
    """Return the monotonic seconds at which a job wrote that it runs."""
    return [float(line) for line in (live.work / name).read_text().split()]


def in_turn(times: list[float]) -> list[int]:
    """Return how many of these times are in slots 0 and 1, without the moments at which slots change."""
    inside = [at for at in times if 0.1 < at % SLOT / SLOT < 0.9]
    return [sum(int(at / SLOT) % 2 == number for at in inside) for number in (0, 1)]


def test_two_gangs_take_turns_also_while_the_daemon_is_down_and_run_on_alone(make_live):
    live = make_live().site(SITE).start()
    first = live.submit(f"{STAMPS} one 2.4", pes=2)
    second = live.submit(f"{STAMPS} two 1.2", pes=2)
    live.running(first)
    live.running(second)
    [domain] = live.shown("show domain")
    assert domain["slots"] == [{"length_s": 0.4, "ids": [first]}, {"length_s": 0.4, "ids": [second]}]
    assert f"slot 1, 0.4 s: {second}" in live.qmgr("show domain").ok().out
    began = time.monotonic() + 0.2
    live.kill()
    until(lambda: time.monotonic() > began + 1.6, "the jobs take turns without a daemon")
    stopped = time.monotonic()
    live.start()
    assert [live.ended(each)["exit_status"] for each in (first, second)] == [0, 0]
    for name, number in (("one", 0), ("two", 1)):
        shared = in_turn([at for at in stamps(live, name) if began < at < stopped])
        assert shared[number] > 10
        assert shared[1 - number] <= shared[number] / 5, shared
    # Run time is the time in slots: in sum the time in which a job ran.
    ran = sum(live.job(each)["used"]["wall_s"] for each in (first, second))
    whole = [*stamps(live, "one"), *stamps(live, "two")]
    assert abs(ran - (max(whole) - min(whole))) < 1.5


def test_no_table_no_stop(make_live):
    """A job goes on when the setting is taken back, when the other one ends, and when it is to be ended."""
    live = make_live().site(SITE).start()
    first, second = (live.submit(f"{STAMPS} {name} 60", pes=2) for name in ("one", "two"))
    live.running(first)
    live.running(second)
    live.qmgr("set domain application heartbeat=none").ok()
    began = time.monotonic() + 0.2
    for name in ("one", "two"):
        until(lambda name=name: min(in_turn([t for t in stamps(live, name) if t > began])) > 20, "both run")
    live.qmgr("set domain application heartbeat=30").ok()
    live.run("qdel", first).ok()  # one of both is stopped for 30 s
    live.run("qdel", second).ok()
    assert {live.ended(each)["end_reason"] for each in (first, second)} == {"deleted"}


def test_with_partial_a_job_outside_of_its_slots_runs_where_pes_are_idle(make_live):
    live = make_live().site(SITE.replace("heartbeat=0.4", "heartbeat=60 partial=on")).start()
    first, second = (live.submit(text, pes=2) for text in ("sleep 60", f"{STAMPS} busy 0.5"))
    live.running(first)
    assert live.ended(second)["exit_status"] == 0, "one of both has no slot for a minute"
    live.run("qdel", first).ok()


def test_a_prime_request_gets_the_slots_alone(make_live):
    live = make_live().site(SITE).start()
    first, second = (live.submit("sleep 60", pes=2) for _ in range(2))
    live.running(first)
    live.running(second)
    live.qmgr(f"set request {second} prime").ok()
    alone = [{"length_s": 0.4, "ids": [second]}]
    until(lambda: live.shown("show domain")[0]["slots"] == alone, "the prime request has all slots")
    live.qmgr(f"schedule request {second} system").ok()
    until(lambda: len(live.shown("show domain")[0]["slots"]) == 2, "both take turns again")
    for each in (first, second):
        live.run("qdel", each).ok()
