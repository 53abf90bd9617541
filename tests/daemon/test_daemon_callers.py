"""Real callers of a daemon of root: who they are, and in which groups, is what the kernel says of them."""

import os
import pwd

import pytest
from daemon.everybody import open_way
from daemon.live import until
from daemon.person import Person

pytestmark = [
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may speak as other users"),
]

ANNE, BEN, CATE = 1, 2, 3
"""Users of each Debian; one without an entry in the user database may not submit."""
CRAY, BULL = 62001, 62002
"""Groups that need no entry in /etc/group: the kernel knows their numbers."""
ANNE_NAME, CATE_NAME = (pwd.getpwuid(uid).pw_name for uid in (ANNE, CATE))

OFFICE = f"""\
set machine pes=1
create batch_queue open priority=1
enable queue open
create batch_queue named priority=1
enable queue named
set no_access named
add users=("{ANNE_NAME}") named
create batch_queue cray priority=1
enable queue cray
set groups=("62001") cray
create pipe_queue later priority=1 destination=(cray)
enable queue later
"""


@pytest.fixture
def centre(office):
    people = []

    def person(uid, *groups):
        people.append(Person(office, uid, *groups))
        return people[-1]

    open_way(office.home)
    office.person = person
    yield office
    for each in people:
        each.close()
    for each in office.client.requests():
        office.client.delete(each.id, kill=True)


def queue_of(centre, answer):
    assert answer["ok"], answer
    return centre.job(answer["result"]["ids"][0])["queue"]


def test_the_kernel_says_who_asks_whatever_the_message_says(centre):
    anne, ben = centre.person(ANNE), centre.person(BEN)
    id = anne.submit("open", user=None)["result"]["ids"][0]
    assert centre.job(id)["owner"] == ANNE_NAME
    for forged in ({}, {"uid": 0}, {"user": "root", "uid": 0, "gid": 0}, {"caller": {"user": ANNE_NAME}}):
        failed = ben.ask("delete", ids=[id], **forged)["result"]["failed"]
        assert failed[0]["code"] == "not_permitted"
    assert ben.submit("open", user="root")["error"]["code"] == "not_permitted"
    assert ben.submit("open", user="nobody-of-that-name")["error"]["code"] == "unknown_user"
    assert anne.ask("delete", ids=[id])["result"]["done"] == [id]


def test_access_to_a_queue_by_user_and_by_the_groups_of_the_socket(centre):
    anne, ben, cate = centre.person(ANNE), centre.person(BEN, CRAY), centre.person(CATE, BULL)
    assert queue_of(centre, anne.submit("named")) == "named"
    assert queue_of(centre, ben.submit("cray")) == "cray"
    for person, queue in ((ben, "named"), (cate, "named"), (anne, "cray"), (cate, "cray")):
        error = person.submit(queue)["error"]
        assert (error["code"], error["status"]) == ("no_access", 174)
    assert cate.submit("open")["ok"]


def test_a_pipe_queue_that_routes_later_remembers_the_groups(centre):
    ben = centre.person(BEN, CRAY)
    id = ben.submit("later")["result"]["ids"][0]
    assert centre.job(id)["queue"] == "later"
    centre.restart()
    centre.set("start queue later")
    centre.until(id, lambda job: job["queue"] == "cray", "be routed by the groups its owner had")


def test_who_waits_for_64_requests_may_still_ask_and_delete(centre):
    """What 63 `qsub --wait` do, and one more connection: none of them keeps their user out."""
    centre.set("stop queue open")
    first = centre.person(ANNE)
    ids = first.submit("open", user=None)["result"]["ids"]
    waiting = []
    for _ in range(70):
        waiting.append(centre.person(ANNE))
        waiting[-1].tell("wait", ids=ids)
        until(lambda: centre.client.call("status"), "it is heard")
    assert [each["id"] for each in centre.person(ANNE).ask("list_requests")["result"]] == ids
    assert centre.person(ANNE).ask("delete", ids=ids, force=True)["ok"]
    for each in waiting:
        [ended] = each.answer()["result"]
        assert ended["end_reason"] == "deleted"
