"""Queues, the server and the node as PBS's commands show them."""

from nqspy.model.queues import Queue
from nqspy.report import pbs_objects, pbs_tables

COUNTS = {"running": 1, "queued": 1, "held": 2, "routing": 3, "suspended": 1}
STATES = "Transit:3 Queued:1 Held:2 Waiting:0 Running:2 Exiting:0 Begun:0 "


def test_a_queue_with_its_limits_and_what_its_jobs_hold(book):
    queue = book.site.settings.queues["night"]
    queue.run_limit, queue.per_request.cpu_limit, queue.per_request.memory_limit = 4, 600_000, 1 << 30
    found = pbs_objects.queue_attributes(book.site, queue, COUNTS)
    assert list(found)[:4] == ["queue_type", "Priority", "total_jobs", "state_count"]
    assert (found["queue_type"], found["total_jobs"], found["state_count"]) == ("Execution", 8, STATES)
    assert (found["max_running"], found["resources_max"]) == (4, {"cput": "00:10:00", "mem": "1048576kb"})
    assert found["resources_assigned"] == {"mem": "65536kb", "ncpus": 2, "nodect": 1}
    assert (found["enabled"], found["started"]) == ("True", "True")


def test_a_pipe_queue_routes_and_a_closed_one_says_who_may_enter(book):
    pipe = Queue("route", "pipe", destinations=("night", "day"))
    found = pbs_objects.queue_attributes(book.site, pipe, {})
    assert (found["queue_type"], found["route_destinations"]) == ("Route", "night,day")
    assert "resources_assigned" not in found
    closed = Queue("own", users=("anne", "ben"), restricted=True)
    found = pbs_objects.queue_attributes(book.site, closed, {})
    assert (found["acl_user_enable"], found["acl_users"]) == ("True", "anne,ben")


def test_the_table_of_limits_has_sums(book):
    night, day = book.site.settings.queues["night"], book.site.settings.queues["day"]
    night.run_limit, night.per_request.wall_limit, day.started = 4, 3_600_000, False
    assert pbs_tables.queue_limits("ymp", [night, day], {"night": COUNTS, "day": {"waiting": 5}}) == (
        "\nserver: ymp\n\n"
        "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n"
        "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n"
        "night              --      --    01:00:00  --      2     3    4   E R\n"
        "day                --      --       --     --      0     5   --   E S\n"
        "                                               ----- -----\n"
        "                                                   2     8\n"
    )


def test_the_server_tells_what_it_is_and_what_is_held(book):
    found = pbs_objects.server_attributes(book.site, COUNTS, "1.2", "Active")
    assert list(found)[:2] == ["server_state", "server_host"]
    assert (found["total_jobs"], found["state_count"], found["pbs_version"]) == (3, STATES, "1.2")
    assert (found["resources_available"]["ncpus"], found["resources_assigned"]["ncpus"]) == (4, 2)
    assert found["job_history_duration"] == "2160:00:00"


def test_the_node_names_its_jobs_and_is_busy_when_all_its_pes_are_held(book):
    found = pbs_objects.node_attributes(book.site, "1.2", lambda spec: True)
    assert (found["state"], found["jobs"]) == ("free", "1.ymp/0, 1.ymp/1")
    assert pbs_objects.jobs_of(found) == ["1.ymp"]
    assert found["resources_assigned"] == {"mem": "65536kb", "ncpus": 2}
    hidden = pbs_objects.node_attributes(book.site, "1.2", lambda spec: False)
    assert "jobs" not in hidden
    assert hidden["resources_assigned"] == found["resources_assigned"]
    book.site.settings.machine.pes = 2
    assert pbs_objects.node_attributes(book.site, "1.2", lambda spec: True)["state"] == "job-busy"
    assert pbs_objects.jobs_of({}) == []
