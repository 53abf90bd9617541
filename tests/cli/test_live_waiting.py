"""qwait, lists that are graphs, ``qstat --graph``, and deletions by range, name and state."""

import os

import pytest
from cli.test_live_interactive import Person
from daemon.live import until

GATE = "while [ ! -e {} ]; do sleep 0.02; done; exit {}"


@pytest.fixture(autouse=True)
def clean(office):
    """Remove gates and requests after the test."""
    yield
    office.run("qdel", "--all", "-k").ok()
    office.run("qwait", "--all")
    for path in office.work.glob("gate*"):
        path.unlink()


def gated(office, name="gate", status=0, **more):
    return office.submit(GATE.format(office.work / name, status), **more)


def waiting(office, *words):
    """Start a qwait and return it once it talks to the daemon."""
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
    assert (done.status, done.out, done.err.count("\n")) == (124, "", 1)
    assert office.job(id)["state"] == "running"
    assert office.run("qwait", "--timeout", "0", id).status == 124
    over = office.submit("exit 3\n")
    assert office.run("qwait", over).status == 1
    assert office.run("qwait", "--timeout", "0", over).status == 1, "it asks whether it has ended"


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
    office.run("qwait", "4711-4720").refused("no request matches: 4711-4720")
    office.run("qwait", "--name", "zz").refused("no request matches: name zz")
    assert office.run("qwait", "4711").status == 153
    assert office.run("qwait").status == 2


def test_one_that_ended_while_the_daemon_was_dead_is_found(shared):
    bad = shared.submit(GATE.format(shared.work / "gate", 5))
    shared.running(bad)
    process = waiting(shared, "--any", bad)
    shared.kill()
    (shared.work / "gate").touch()
    shared.start()
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
    assert "can never start" in office.job(ids[5])["reason"]["text"]


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
    office.run("qstat", "--graph", "-f").refused("conflicting options: --graph and -f")
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
    office.run("qdel", "--name", "p*", "--state", "queued").refused("no request matches: name p*, state")
    office.run("qdel", "--name", "p*", "--state", "held").ok()
    assert left(office) == ["y"]
    office.run("qdel", "--state", "sideways").refused("there is no state sideways")
    office.run("qdel", str(seqs[5]), "--state", "held").refused("--state")
    office.run("qdel", f"{seqs[1]}-{seqs[0]}").refused("like 3-9")
    office.run("qdel", f"{seqs[0]}-").refused("illegally formed job identifier")
    office.run("qdel", f"{seqs[0]}-{seqs[5]}", str(seqs[5])).ok()
    assert left(office) == []
    office.run("qdel", "--all").ok()
    office.run("qdel", f"{seqs[0]}-{seqs[5]}").refused("no request matches")


def test_on_a_terminal_it_asks_back_how_many(office, request):
    def on_a_terminal(message, *words):
        one = Person(office, *words, program="qdel")
        request.addfinalizer(one.leave)
        one.types(message)
        return one.ends(), one.seen

    for _ in range(3):
        office.submit("true", held=True, name="many")
    status, shown = on_a_terminal("n\n", "--all")
    assert (status, "3 requests will be deleted" in shown) == (1, True)
    assert "no request was deleted" in shown
    assert len(left(office)) == 3
    assert on_a_terminal("y\n", "--name", "m*")[0] == 0
    assert left(office) == []
    office.submit("true", held=True)
    status, shown = on_a_terminal("\x04", "--all", "--yes")
    assert (status, "go on" in shown) == (0, False)


# ---------------------------------------------------------------- one verdict
def test_what_a_limit_ended_is_a_failure_for_every_caller(office):
    office.write("traps.sh", "trap 'exit 0' TERM\nsleep 60 & wait\n")
    words = ("-l", "walltime=1", "-S", "/bin/sh", "traps.sh")
    assert office.run("qsub", "-W", "block=true", *words).status == 1
    id = office.run("qsub", *words).ok().lines[0]
    assert office.run("qwait", id).status == 1
    assert "Exit_status = -29" in office.run("qstat", "-x", "-f", id).ok().out
    row = office.job(id)
    assert (row["ok"], row["exit_status"], row["end_reason"]) == (False, 1, "wall_limit")
    [end] = office.events("ended", id)
    assert (end["ok"], end["exit_status"]) == (False, 1)
