"""What PBS clients are answered: operands, exit statuses and messages, ended jobs, queues, the server,
selections."""

import json

import pytest
from answers.pbs_asked import ask, ids, jobs, number, selected

from nqspy.answers import choice, pbs_jobs
from nqspy.model.cause import EXECUTOR
from nqspy.model.ids import MINUTE
from nqspy.model.requests import Attempt, Pause, State, Used

ENVIRONMENT = "PBS_O_HOME=/home/anne\0PBS_O_WORKDIR=/\0PBS_O_SYSTEM=Linux\0SECRET=word,of\0N=7"


@pytest.fixture
def site(fresh):
    """Return a site: anne's request runs, ben's waits in another queue, one of anne's was deleted."""
    fresh.qmgr("start queue batch", "stop queue batch", "create batch_queue none")
    fresh.run, fresh.wait, fresh.gone = (
        fresh.submit("owner", name="runs", environment=ENVIRONMENT)[0],
        fresh.submit("other", name="waits", queue="spare")[0],
        fresh.submit("owner", name="gone")[0],
    )
    fresh.result("owner", "delete", ids=[fresh.gone])
    request = fresh.daemon.engine.site.requests[number(fresh.run)]
    now = fresh.daemon.clock.now()
    request.attempt = Attempt(1, (0,), now - 61_000, starting=False, used=Used(5_000, 60_000, 1 << 20))
    request.attempts, request.state = 1, State.RUNNING
    fresh.server = fresh.run.partition(".")[2]
    return fresh


# ---------------------------------------------------------------- operands and statuses
def test_operands_are_identifiers_queues_and_servers(site):
    server = site.server
    assert ids(site) == [site.run, site.wait]
    assert ids(site, operands=[str(number(site.wait)), site.run]) == [site.wait, site.run]
    both = [f"{number(site.wait)}@{server}", f"{site.run}@{server}"]
    assert ids(site, operands=both) == [site.wait, site.run]
    assert ids(site, operands=["spare"]) == ids(site, operands=[f"spare@{server}"]) == [site.wait]
    assert ids(site, operands=[f"@{server}"]) == [site.run, site.wait]
    assert ids(site, operands=["spare", "batch"]) == [site.run, site.wait]
    assert ids(site, operands=[site.wait, "batch"]) == [site.wait, site.run]
    assert ids(site, operands=[site.wait, site.run], letters="E") == [site.run, site.wait]
    assert ids(site, operands=[site.wait, site.wait]) == [site.wait]
    assert ids(site, user="ben,eva@ymp") == ids(site, queue="spare") == [site.wait]


def test_what_is_known_is_shown_and_each_other_told_of(site):
    never = f"4711.{site.server}"
    status, out, err = ask(site, operands=["4711", site.wait, site.gone, "12x", "nowhere", "@mars"])
    assert [line.split()[0] for line in out.splitlines()[2:]] == [site.wait]
    assert set(err.splitlines()) == {
        f"Unknown Job Id {never}",
        f"{site.gone} Job has finished, use -x or -H to obtain historical job information",
        "illegally formed job identifier: 12x",
        "Unknown queue nowhere",
        f"cannot connect to server mars (errno=15008): this is {site.server}",
    }
    assert status in (153, 35)
    for form in ("table", "full", "alternate"):
        assert ask(site, form, operands=[never])[::2] == (153, f"Unknown Job Id {never}\n")
        assert ask(site, form, operands=[site.gone])[0] == 35
        assert ask(site, form, operands=["12x"])[:2] == (1, "")
        assert ask(site, form, operands=["nowhere"]) == (170, "", "Unknown queue nowhere\n")


def test_an_empty_list_prints_nothing_and_is_no_failure(site):
    for form in ("table", "full", "alternate"):
        assert ask(site, form, operands=["none"]) == (0, "", "")
        assert ask(site, form, user="nobody") == (0, "", "")
    assert jobs(site, operands=["none"]) == (0, None, "")
    assert ask(site, "full", operands=["none"], format="dsv") == (0, "", "")
    assert jobs(site, operands=["4711"])[:2] == (153, None)


def test_letters_narrow_the_list(site):
    def shown(letters):
        return [line.split()[0] for line in ask(site, "alternate", letters=letters)[1].splitlines()[5:]]

    assert shown("i") == [site.wait]
    assert shown("r") == [site.run]
    assert shown("H") == [site.gone]
    assert shown("a") == [site.run, site.wait]
    assert shown("Jt") == []
    assert ids(site, letters="x") == [site.run, site.wait, site.gone]
    assert ids(site, letters="x", operands=[site.gone]) == [site.gone]
    assert ask(site, "alternate", letters="H", operands=[site.gone])[0] == 0


def test_lists_that_are_made_in_many_slices_are_whole_and_in_order(fresh, monkeypatch):
    monkeypatch.setattr(choice, "SLICE", 3)
    monkeypatch.setattr(choice, "SLICE_TIME", 0.0)
    monkeypatch.setattr(choice, "_time_for_slice", lambda away: 0.0)
    found = fresh.submit("owner", count=20)
    fresh.result("owner", "delete", ids=found[3:7])
    assert [number(id) for id in ids(fresh, letters="x")] == [number(id) for id in found]
    assert list(jobs(fresh, letters="x")[1]) == found
    assert ids(fresh) == found[:3] + found[7:]


def test_others_have_four_fifths_of_the_engine_while_a_list_is_made():
    assert choice._time_for_slice(0.0001) == choice.SLICE_TIME
    assert choice._time_for_slice(0.02) == pytest.approx(0.005)
    assert choice._time_for_slice(0.002) == choice.SHORTEST
    assert choice._time_for_slice(10) == choice.LONGEST


def test_an_answer_that_would_fill_the_memory_is_refused(site, monkeypatch):
    monkeypatch.setattr(pbs_jobs, "MOST_BYTES", 1 << 10)
    assert site.refusal("root", "qstat", text="full")[0] == "2"


# ---------------------------------------------------------------- jobs
def test_json_says_of_a_job_what_there_is(site):
    status, found, err = jobs(site, by="owner")
    assert (status, err, list(found)) == (0, "", [site.run, site.wait])
    run = found[site.run]
    assert (run["Job_Name"], run["job_state"], run["exec_host"][-2:]) == ("runs", "R", "/0")
    assert (run["resources_used"]["cput"], run["Variable_List"]["SECRET"]) == ("00:00:05", "word,of")
    assert found[site.wait]["job_state"] == "Q"
    assert "stopped" in found[site.wait]["comment"]


def test_variables_are_their_owners_and_the_operators(site):
    for by in ("owner", "operator", "root", "other", "unknown uid"):
        sees = by in ("owner", "operator", "root")
        found = jobs(site, by)[1][site.run]
        assert ("Variable_List" in found) == sees
        for form in ("text", "dsv"):
            assert ("SECRET" in ask(site, "full", by, format=form)[1]) == sees


def test_one_that_has_ended_is_kept_with_what_became_of_it(site):
    assert site.gone not in jobs(site)[1]
    status, found, err = jobs(site, letters="x", operands=[site.run, site.gone], by="owner")
    assert (status, err, list(found)) == (0, "", [site.run, site.gone])
    gone = found[site.gone]
    assert (gone["job_state"], gone["substate"], gone["comment"]) == ("F", 91, "deleted by anne")
    assert "Exit_status" not in gone
    assert gone["history_timestamp"] >= 1


def test_the_history_ends_where_the_site_keeps_no_more_of_it(site, monkeypatch):
    later = site.daemon.clock.now() + 91 * 86_400_000
    monkeypatch.setattr(type(site.daemon.clock), "now", lambda clock: later)
    assert ids(site, letters="x") == [site.run, site.wait]
    assert ids(site, letters="x", operands=[site.gone]) == [site.gone]
    site.qmgr("set history keep=unlimited")
    assert ids(site, letters="x") == [site.run, site.wait, site.gone]


def test_parts_that_many_have_in_common_come_once(fresh):
    found = fresh.submit("owner", count=50, environment=ENVIRONMENT)
    whole = ask(fresh, "full", format="json")[1]
    answer = fresh.ask("root", "qstat", text="full", format="json", shared=True)
    pieces = answer["out"].split("\x01")
    pieces[1::2] = [answer["shared"][int(each)] for each in pieces[1::2]]
    mine, other = json.loads("".join(pieces)), json.loads(whole)
    assert mine["Jobs"] == other["Jobs"]
    assert list(mine["Jobs"]) == found
    assert len(answer["out"]) < len(whole) / 2


def test_when_jobs_may_start_comes_from_a_look_ahead(site):
    site.qmgr("start queue spare")
    lines = ask(site, "alternate", letters="T")[1].splitlines()
    assert lines[2].strip() == "Est"
    assert [line.split()[0] for line in lines[6:]] == [site.run, site.wait]


def full(fresh, id):
    out = fresh.result("root", "qstat", text="full", operands=[id])["out"]
    return dict(line.strip().split(" = ", 1) for line in out.splitlines() if " = " in line)


@pytest.mark.parametrize(("pause", "wall"), [(None, "00:10:00"), (3 * MINUTE, "00:07:00")])
def test_wall_time_is_that_of_the_moment_and_not_of_the_last_sample(fresh, monkeypatch, pause, wall):
    [id] = fresh.submit("owner")
    request = fresh.daemon.engine.site.requests[int(id.partition(".")[0])]
    now = fresh.daemon.clock.now()
    monkeypatch.setattr(type(fresh.daemon.clock), "now", lambda clock: now)
    stopped, used = None if pause is None else Pause(EXECUTOR, now - pause), Used(5_000, 30_000, 1 << 20)
    request.attempt = Attempt(
        1, (0,), now - 11 * MINUTE, starting=False, used=used, pause=stopped, suspended_time=MINUTE
    )
    request.state = State.RUNNING if pause is None else State.SUSPENDED
    shown = full(fresh, id)
    assert (shown["resources_used.walltime"], shown["resources_used.cput"]) == (wall, "00:00:05")
    [told] = fresh.result("root", "list_requests", ids=[id])
    assert told["used"]["wall_s"] == (10 if pause is None else 7) * 60


def test_the_domain_is_said_where_there_are_several(fresh):
    [id] = fresh.submit("owner")
    assert "domain" not in full(fresh, id)
    fresh.qmgr("set machine pes=8", "create domain big pes=4-7", "set queue batch domain=big")
    assert full(fresh, id)["domain"] == "big"


# ---------------------------------------------------------------- arrays
@pytest.fixture
def arrayed(fresh):
    """Return a site with an array between two requests."""
    fresh.qmgr("set machine pes=8")
    spec = {"array": {"indices": [[1, 9, 2]], "limit": None}}
    fresh.one, fresh.array, fresh.last = (
        fresh.submit("owner", name="one")[0],
        fresh.submit("owner", name="all", **spec)[0],
        fresh.submit("owner", name="last")[0],
    )
    fresh.member = fresh.array.replace("[]", "[3]")
    return fresh


def test_an_array_is_one_line_and_its_indices_stand_below_it_where_they_are_asked_for(arrayed):
    number, _, server = arrayed.array.partition("[].")
    assert ids(arrayed) == [arrayed.one, arrayed.array, arrayed.last]
    below = [f"{number}[{index}].{server}" for index in (1, 3, 5, 7, 9)]
    assert ids(arrayed, letters="t") == [arrayed.one, arrayed.array, *below, arrayed.last]
    assert ids(arrayed, letters="J") == [arrayed.array]
    assert ids(arrayed, letters="Jt") == [arrayed.array, *below]
    assert ids(arrayed, operands=[number]) == ids(arrayed, operands=[f"{number}[]"]) == [arrayed.array]
    assert ids(arrayed, operands=[f"{number}[3,5]"]) == below[1:3]
    shown = ids(arrayed, letters="t", operands=[arrayed.last, arrayed.array])
    assert shown == [arrayed.last, arrayed.array, *below]
    assert ask(arrayed, operands=[f"{number}[2]"])[0] == 153
    assert selected(arrayed, letters="J") == [arrayed.array]
    assert selected(arrayed, ("N", "all"), letters="T") == [arrayed.array, *below]


def test_ended_indices_stand_below_the_array_that_is_named(arrayed):
    number, _, server = arrayed.array.partition("[].")
    below = [f"{number}[{index}].{server}" for index in (1, 3, 5, 7, 9)]
    arrayed.result("owner", "modify", ids=[below[1], below[3]], values={"priority": 1})
    arrayed.result("owner", "delete", ids=[below[1], below[3]])
    assert ids(arrayed, letters="t", operands=[number]) == [arrayed.array, *below[::2]]
    assert ids(arrayed, letters="xt", operands=[number]) == [arrayed.array, *below]
    shown = ids(arrayed, letters="xt", operands=[below[3], number])
    assert shown == [below[3], arrayed.array, *below[:3], below[4]]
    assert ids(arrayed, letters="x", operands=[number]) == [arrayed.array]
    arrayed.result("owner", "delete", ids=[arrayed.array])
    assert ids(arrayed, letters="xt", operands=[number]) == [arrayed.array, below[1], below[3]]


def test_an_array_has_no_output_of_its_own(arrayed):
    number = arrayed.array.partition("[")[0]
    told = f"{arrayed.array} is an array; each index has its own output: name one, like {number}[3]"
    assert arrayed.refusal("owner", "cat", request=number) == ("wrong_state", told)
    arrayed.result("owner", "delete", ids=[number])
    assert arrayed.refusal("owner", "cat", request=number) == ("wrong_state", told)
    assert arrayed.refusal("other", "cat", request="99[]")[0] == "unknown_request"


def test_an_array_says_where_its_indices_stand(arrayed):
    arrayed.result("owner", "delete", ids=[arrayed.member])
    found = jobs(arrayed)[1][arrayed.array]
    assert (found["array"], found["job_state"]) == ("True", "Q")
    assert found["array_state_count"] == "Queued:4 Running:0 Exiting:0 Expired:1 "
    assert (found["array_indices_submitted"], found["array_indices_remaining"]) == ("1-9:2", "1,5-9:2")
    number = arrayed.array.partition("[")[0]
    assert found["Output_Path"].endswith(f"/all.o{number}.^array_index^")
    index = jobs(arrayed, operands=[arrayed.member.replace("[3]", "[5]")])[1]
    [(id, one)] = index.items()
    assert (one["array_id"], one["array_index"], one["job_state"]) == (arrayed.array, 5, "Q")
    assert one["Output_Path"].endswith(f"all.o{id.partition('[')[0]}.5")
    assert "array" not in jobs(arrayed)[1][arrayed.one]


# ---------------------------------------------------------------- queues, server, nodes
def test_queues_and_the_server_are_shown_as_tables_and_whole(site):
    """How each table and object looks is held by tests/report; here, which are asked for."""
    site.qmgr("set queue spare run_limit=4")
    table = ask(site, "queues", posix=True)[1].splitlines()
    assert [line.split()[0] for line in table[2:]] == ["batch", "spare", "none"]
    assert ask(site, "queues", posix=True, operands=["spare"])[1].splitlines()[2].split()[0] == "spare"
    status, out, err = ask(site, "queues", posix=True, operands=["spare", "nowhere"], letters="f")
    assert (status, err) == (170, "Unknown queue nowhere\n")
    assert "Queue: spare" in out.splitlines()
    found = json.loads(ask(site, "queues", posix=True, letters="f", format="json")[1])["Queue"]
    assert [(name, queue["total_jobs"]) for name, queue in found.items()] == [
        ("batch", 1), ("spare", 1), ("none", 0),
    ]  # fmt: skip
    assert ask(site, "queue_limits")[1].splitlines()[6].split()[-6:] == ["--", "0", "1", "4", "E", "S"]
    row = ask(site, "server")[1].splitlines()[2].split()
    assert (row[0], row[2], row[-1]) == (site.server[:16], "2", "Active")
    found = json.loads(ask(site, "server", letters="f", format="json")[1])["Server"][site.server]
    assert (found["default_queue"], found["total_jobs"]) == ("batch", 2)
    assert ask(site, "server", operands=["mars"])[0] == 160


def test_the_node_is_the_host_that_runs_jobs(site):
    answer = site.ask("other", "pbsnodes", text="nodes")
    node, *lines = answer["out"].splitlines()
    assert "     state = free" in lines
    assert "     resources_available.ncpus = 1" in lines
    found = json.loads(site.ask("root", "pbsnodes", text="nodes", format="json")["out"])["nodes"][node]
    assert found["resources_available"]["ncpus"] == 1
    assert site.ask("root", "pbsnodes", text="nodes", operands=["mars"])["exit"] == 1
    assert site.ask("root", "pbsnodes", text="nodes", letters="l")["out"] == ""


@pytest.mark.parametrize("letters", ["x", "H"])
def test_what_has_ended_is_listed_from_the_last_on_and_what_is_left_out_is_said(site, letters):
    later = site.submit("owner", name="later")[0]
    site.result("owner", "delete", ids=[later])
    live = [site.run, site.wait] if letters == "x" else []
    gone = [site.gone, later] if letters == "x" else [later, site.gone]
    assert ids(site, letters=letters) == [*live, *gone]
    for form in ("table", "alternate", "full"):
        status, out, err = ask(site, form, letters=letters, limit=1)
        assert status == 0
        assert later in out
        assert site.gone not in out
        assert "last 1" in err
        assert ask(site, form, letters=letters, limit=2)[2] == ""
        assert ask(site, form, letters=letters, limit=0, operands=[site.gone, later])[::2] == (0, "")
    assert ids(site, letters=letters, since=site.daemon.clock.now() + 1) == live
    status, out, err = ask(site, "json", ended=True, limit=1)
    assert ([each["id"] for each in json.loads(out)], status) == ([later], 0)
    assert "last 1" in err
    assert [each["id"] for each in json.loads(ask(site, "json", ended=True)[1])] == [later, site.gone]
    assert ask(site, "json", ended=True, since=site.daemon.clock.now() + 1) == (0, "[]\n", "")


# ---------------------------------------------------------------- the same choice for JSON
def test_json_lists_choose_as_the_tables_do(site):
    def listed(**fields):
        answer = site.ask("root", "qstat", text="json", **fields)
        return answer["exit"], [each["id"] for each in json.loads(answer["out"] or "[]")]

    [array] = site.submit("owner", array={"indices": [[0, 2, 1]]}, held=True)
    each = [f"{number(array.replace('[', '.'))}[{index}].{site.server}" for index in range(3)]
    assert listed(ids=[array], expand=True) == (0, [array, *each])
    assert listed(ids=[f"spare@{site.server}"]) == listed(queue="spare") == (0, [site.wait])
    assert listed(history=True, state="running") == (0, [site.run])
    assert listed(history=True, state="ended")[1] == [site.gone]
