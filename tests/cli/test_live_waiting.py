"""qwait, lists that are graphs, ``qstat --graph``, and deletions by range, name and state."""

import os
import subprocess
import sys

import pytest
from daemon.live import ROOT, until

GATE = "while [ ! -e {} ]; do sleep 0.02; done; exit {}"


@pytest.fixture(autouse=True)
def clean(office):
    """Nobody's gates and requests are left."""
    yield
    office.run("qdel", "--all", "-k").ok()
    office.run("qwait", "--all")
    for path in office.work.glob("gate*"):
        path.unlink()


def gated(office, name="gate", status=0, **more):
    return office.submit(GATE.format(office.work / name, status), **more)


def waiting(office, *words):
    """A qwait that speaks to the daemon."""
    process = office.spawn("qwait", *words)
    until(lambda: _speaks(process.pid) or process.poll() is not None, "it waits")
    return process


def _speaks(pid):
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}").startswith("socket:") for fd in os.listdir(folder))
    except OSError:
        return False


def finished(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


# ---------------------------------------------------------------- qwait


def test_it_returns_when_all_have_ended_and_the_status_tells_how(office):
    good, bad = gated(office), gated(office, status=3)
    process = waiting(office, good, bad)
    assert process.poll() is None
    (office.work / "gate").touch()
    assert finished(process) == (1, "", f"qwait: {bad} ended: exit, exit status 3\n")
    assert office.run("qwait", good).ok().out == "", "at once when it has ended"
    done = office.run("qwait", bad, good)
    assert (done.status, done.err.count("\n")) == (1, 1)


def test_a_deleted_one_has_not_ended_well(office):
    id = office.submit("true", held=True)
    process = waiting(office, id)
    office.run("qdel", id).ok()
    assert finished(process) == (1, "", f"qwait: {id} ended: deleted\n")


def test_of_any_the_first_is_told(office):
    first, second = gated(office, "gate1"), gated(office, "gate2")
    process = waiting(office, "--any", first, second)
    (office.work / "gate2").touch()
    assert finished(process) == (0, f"{second}\n", "")
    assert office.job(first)["state"] == "running"
    assert office.run("qwait", "--any", first, second).ok().out == f"{second}\n"


def test_after_its_time_it_is_124_and_the_request_goes_on(office):
    id = gated(office)
    done = office.run("qwait", "--timeout", "0.2", id)
    assert (done.status, done.out, done.err) == (124, "", "qwait: not all has ended within 0.2\n")
    assert office.job(id)["state"] == "running"
    office.run("qwait", "--timeout", "soon", id).refused("--timeout: 'soon' is no time")


def test_ranges_names_and_all_of_ones_own(office):
    ids = [office.submit("true", name=name) for name in ("a1", "a2", "b1")]
    seqs = [int(id.partition(".")[0]) for id in ids]
    office.run("qwait", f"{seqs[0]}-{seqs[2]}").ok()
    office.run("qwait", "--name", "a*").ok()
    office.run("qwait", "--all").ok()
    bad = office.submit("exit 4", name="b1", held=True)
    process = waiting(office, "--name", "b1")
    office.run("qrls", bad).ok()
    assert finished(process)[0] == 1, "of a name those that have not ended"
    assert office.run("qwait", "--name", "b1").status == 1, "else the one that ended last"
    office.run("qwait", "4711-4720").refused("there is no such request: 4711-4720")
    office.run("qwait", "--name", "zz").refused("there is no such request: name zz")
    assert office.run("qwait", "4711").status == 153
    assert office.run("qwait").status == 2


def test_it_goes_on_waiting_over_the_daemons_death(live):
    id = live.submit(GATE.format(live.work / "gate", 0))
    live.running(id)
    process = waiting(live, id)
    live.kill()
    live.start()
    assert live.job(id)["state"] == "running"
    assert process.poll() is None
    (live.work / "gate").touch()
    assert finished(process) == (0, "", "")


def test_one_that_ended_while_the_daemon_was_dead_is_found(live):
    bad = live.submit(GATE.format(live.work / "gate", 5))
    live.running(bad)
    process = waiting(live, "--any", bad)
    live.kill()
    (live.work / "gate").touch()
    live.start()
    assert finished(process) == (1, f"{bad}\n", f"qwait: {bad} ended: exit, exit status 5\n")


# ---------------------------------------------------------------- lists that are graphs


def test_a_file_is_a_small_graph_handed_in_at_once(office):
    office.write("job.sh", "echo $1 >> order\n")
    office.write("bad.sh", "echo $1 >> order; exit 3\n")
    office.write(
        "graph.list",
        "name:prepare job.sh prepare\n"
        "name:part after:prepare -l nice=1 job.sh part\n"
        "name:part after:prepare job.sh part\n"
        "# the parts together\n"
        "name:join after:part bad.sh join\n"
        "after:join:fail -N mend job.sh mend\n"
        "after:join job.sh never\n",
    )
    (office.work / "order").unlink(missing_ok=True)
    ids = office.run("qsub", "-s", "/bin/sh", "--list", "graph.list").ok().lines
    assert [office.job(id)["name"] for id in ids[:5]] == ["prepare", "part", "part", "join", "mend"]
    office.ended(ids[4])
    assert (office.work / "order").read_text().split() == ["prepare", "part", "part", "join", "mend"]
    assert office.job(ids[5])["state"] == "held"
    assert "can never come about" in office.job(ids[5])["reason"]["text"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("after:first:each job.sh", "line 2: --after first:each: only an array can wait for an array"),
        ("after:4711 job.sh", "line 2: after: Unknown Job Id 4711"),
    ],
)
def test_a_word_that_is_wrong_refuses_the_whole_list_naming_line_and_word(office, line, said):
    office.write("job.sh", "true\n")
    office.write("bad.list", f"name:first job.sh\n{line}\nname:late job.sh\n")
    before = len(office.events("submitted"))
    office.run("qsub", "--list", "bad.list").refused("bad.list line 2: ", said)
    assert len(office.events("submitted")) == before


def test_a_list_may_wait_for_what_was_handed_in_before(office):
    office.write("job.sh", "true\n")
    first = gated(office)
    office.write("more.list", f"after:{first.partition('.')[0]}:any name:x job.sh\nafter:x:start job.sh\n")
    ids = office.run("qsub", "-s", "/bin/sh", "--list", "more.list").ok().lines
    assert office.job(ids[0])["depends_on"] == [first]
    assert office.job(ids[1])["depends_on"] == [ids[0]]


# ---------------------------------------------------------------- the tree


def test_who_waits_for_whom_is_a_tree(office):
    office.write("job.sh", "true\n")
    office.write(
        "tree.list",
        "name:top -h job.sh\nname:left after:top job.sh\nname:right after:top:start job.sh\n"
        "name:join after:left:any after:right job.sh\nname:end after:join job.sh\nname:alone -h job.sh\n",
    )
    top, left, right, join, end, alone = office.run("qsub", "--list", "tree.list").ok().lines
    who = office.job(top)["owner"]
    tree = [
        f"{top} top  {who}  held",
        f"  ok: {left} left  {who}  held",
        f"    any: {join} join  {who}  held",
        f"      ok: {end} end  {who}  held",
        f"  start: {right} right  {who}  held",
        f"    ok: {join} join  {who}  held  (see above)",
    ]
    assert office.run("qstat", "--graph").ok().lines == tree
    assert office.run("qstat", "--graph", end).ok().lines == tree
    assert office.run("qstat", "--graph", alone).ok().lines == [f"{alone} alone  {who}  held"]
    office.run("qdel", alone).ok()
    assert office.run("qstat", "--graph", alone).ok().lines == [f"{alone}  ended"]
    office.run("qstat", "--graph", "4711").refused("Unknown Job Id 4711")
    office.run("qstat", "--graph", "-f").refused("--graph goes with no -f")
    office.run("qdel", "--cascade", top).ok()
    assert office.run("qstat", "--graph").ok().out == ""
    assert all(office.job(id)["end_reason"] == "deleted" for id in (top, left, right, join, end))


# ---------------------------------------------------------------- deleting many


def left(office):
    return [request.data["name"] for request in office.client.requests()]


def test_ranges_patterns_names_states_and_all(office):
    ids = [office.submit("true", name=name, held=True) for name in ("sim1", "sim2", "post", "x1", "x2", "y")]
    seqs = [int(id.partition(".")[0]) for id in ids]
    office.run("qdel", f"{seqs[0]}-{seqs[1]}").ok()
    assert left(office) == ["post", "x1", "x2", "y"]
    office.run("qdel", "x*").ok()
    assert left(office) == ["post", "y"]
    office.run("qdel", "--name", "p*", "--state", "queued").refused(
        "there is no such request: name p*, state"
    )
    office.run("qdel", "--name", "p*", "--state", "held").ok()
    assert left(office) == ["y"]
    office.run("qdel", "--state", "sideways").refused("there is no state sideways")
    office.run("qdel", str(seqs[5]), "--state", "held").refused("leave out --state")
    office.run("qdel", f"{seqs[1]}-{seqs[0]}").refused("a range is written like 3-9")
    office.run("qdel", f"{seqs[0]}-").refused("illegally formed job identifier")
    office.run("qdel", f"{seqs[0]}-{seqs[5]}", str(seqs[5])).ok()
    assert left(office) == []
    office.run("qdel", "--all").ok()
    office.run("qdel", f"{seqs[0]}-{seqs[5]}").refused("there is no such request")


def on_a_terminal(office, said, *words):
    """Runs qdel on a terminal; what stands there at the end, and the exit status."""
    main, sub = os.openpty()
    code = "from nqspy.cli.qdel import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=sub, stdout=sub, stderr=sub, cwd=office.work,
        env=office.environment | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(sub)
    os.write(main, said)
    shown = b""
    try:
        while piece := os.read(main, 4096):
            shown += piece
    except OSError:
        pass  # the last to have the terminal open has gone
    os.close(main)
    return process.wait(timeout=60), shown.decode()


def test_on_a_terminal_it_asks_back_how_many(office):
    for _ in range(3):
        office.submit("true", held=True, name="many")
    status, shown = on_a_terminal(office, b"n\n", "--all")
    assert (status, "3 requests will be deleted; go on? [y/N]" in shown) == (1, True)
    assert "nothing was deleted" in shown
    assert len(left(office)) == 3
    assert on_a_terminal(office, b"y\n", "--name", "m*")[0] == 0
    assert left(office) == []
    office.submit("true", held=True)
    status, shown = on_a_terminal(office, b"\x04", "--all", "--yes")
    assert (status, "go on" in shown) == (0, False)


def test_with_x_one_that_has_ended_is_no_failure_and_its_record_stays(office):
    id, waiting = office.submit("true"), office.submit("true", held=True)
    office.ended(id)
    done = office.run("qdel", "-x", id, waiting).ok()
    assert done.err.startswith(f"qdel: Job has finished {id}; its record stays")
    assert office.run("qdel", "-x", id, "4711").status == 153
    assert office.job(id)["exit_status"] == 0
    assert office.job(waiting)["end_reason"] == "deleted"


def test_a_timeout_of_nothing_asks_whether_they_have_ended_already(office):
    over = office.submit("exit 3\n")
    assert office.run("qwait", over).status == 1
    assert office.run("qwait", "--timeout", "0", over).status == 1
    assert office.run("qwait", "--timeout", "0", office.submit("sleep 30\n")).status == 124


# ---------------------------------------------------------------- one verdict


TRAPS = "trap 'exit 0' TERM\nsleep 60 & wait\n"


def test_what_a_limit_ended_is_a_failure_for_every_caller(office):
    office.write("traps.sh", TRAPS)
    words = ("-l", "walltime=1", "-S", "/bin/sh", "traps.sh")
    statuses = {
        office.run("qsub", "--wait", *words).status,
        office.run("qsub", "-W", "block=true", *words).status,
        office.run("qwait", id := office.run("qsub", *words).ok().lines[0]).status,
    }
    assert statuses == {1}
    shown = office.run("qstat", "-x", "-f", id).ok().out
    assert "Exit_status = -29" in shown
    assert "substate = 93" in shown
    row = office.job(id)
    assert (row["ok"], row["exit_status"], row["end_reason"]) == (False, 1, "wall_limit")
    [end] = office.events("ended", id)
    assert (end["ok"], end["exit_status"]) == (False, 1)


def test_what_was_deleted_is_a_failure_though_its_script_left_with_0(office):
    id = office.submit(TRAPS.replace("&", f"& touch {office.work / 'here'};"))
    until(lambda: (office.work / "here").exists(), "it runs")
    office.run("qdel", id).ok()
    assert office.run("qwait", id).status == 1
    row = office.job(id)
    assert (row["ok"], row["exit_status"], row["end_reason"]) == (False, 3, "deleted")
    assert "Exit_status = -103" in office.run("qstat", "-x", "-f", id).ok().out


def test_an_array_of_which_an_index_was_deleted_has_not_ended_well(office):
    id = office.run("qsub", "-h", "-J", "1-2", "--", "true").ok().lines[0]
    office.run("qdel", id.replace("[]", "[1]")).ok()
    office.run("qrls", id).ok()
    assert office.run("qwait", id).status == 1
