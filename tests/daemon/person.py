"""Another user as a client of a daemon of root; the kernel says who that is."""

import contextlib
import json
import os

from daemon.everybody import open_way
from daemon.inner import item


@contextlib.contextmanager
def speaking_as(uid, *groups):
    before = os.getgroups()
    os.setgroups(list(groups))
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


class Person:
    """A user with one connection."""

    def __init__(self, live, uid, *groups):
        with speaking_as(uid, *groups):
            self._socket = live.connect()
        self._socket.settimeout(180)
        self._file = self._socket.makefile("rb")

    def ask(self, cmd, **fields):
        self.tell(cmd, **fields)
        return self.answer()

    def tell(self, cmd, **fields):
        line = json.dumps({"v": 1, "id": 1, "cmd": cmd, **fields}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            self._socket.sendall(line)

    def answer(self):
        answer = self._file.readline()
        return json.loads(answer) if answer else None

    def submit(self, queue, name="x", dry_run=False, **more):
        spec = item(name=name, queue=queue)["spec"]
        return self.ask("submit", items=[{"spec": spec, "script": "true\n", **more}], dry_run=dry_run)

    def close(self):
        self._file.close()
        self._socket.close()


def submit_as(live, uid, name="x", dry_run=False):
    """Submit a request as this user to queue batch; return its identifier."""
    open_way(live.home)
    with contextlib.closing(Person(live, uid)) as person:
        answer = person.submit("batch", name, dry_run)
    assert answer["ok"], answer
    return "" if dry_run else answer["result"]["ids"][0]
