"""kill -9 of the daemon at any moment under load: nothing acknowledged is lost, nothing runs twice."""

import random
import threading

import pytest

from nqspy.rpc.client import Client

ROUNDS = 20
CLIENTS = 3


class Submitter(threading.Thread):
    """A client that submits one request after the other, and keeps what it was promised: identifier and
    exit status. The library repeats by itself while the daemon is away."""

    def __init__(self, live, number):
        super().__init__()
        self.live, self.number = live, number
        self.promised = {}
        self.enough = threading.Event()
        self.error = None

    def run(self):
        client = Client(self.live.home)
        try:
            while not self.enough.wait(0.02):
                n = len(self.promised)
                status = (7 * n + self.number) % 200
                mark = f"{self.live.work}/marks/{self.number}-{n}"
                script = f"echo run >> {mark}\nexit {status}\n"
                id = client.submit(script, shell="/bin/sh", workdir=self.live.work, stdout="/dev/null")
                self.promised[id.id] = (mark, status)
        except Exception as error:
            self.error = error
        finally:
            client.close()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_kills_under_load_lose_nothing_and_run_nothing_twice(live):
    (live.work / "marks").mkdir()
    gate = live.work / "gate"
    live.set("set machine pes=6")
    long = live.submit(
        f"echo $$ > long.pid; echo run >> long.ran; while [ ! -e {gate} ]; do sleep 0.05; done; exit 99"
    )
    live.running(long)
    pid = live.text("long.pid")
    clients = [Submitter(live, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    moments = random.Random(3)
    for _ in range(ROUNDS):
        threading.Event().wait(moments.uniform(0.0, 0.7))
        live.kill()
        live.start()
    for client in clients:
        client.enough.set()
    for client in clients:
        client.join(60)
        assert client.error is None
    promised = {id: each for client in clients for id, each in client.promised.items()}
    assert len(promised) > ROUNDS
    for id, (mark, status) in promised.items():
        ended = live.ended(id)
        assert (ended["exit_status"], ended["end_reason"]) == (status, "exit"), ended
        with open(mark) as file:
            assert file.read() == "run\n", ended
    assert (live.job(long)["state"], live.job(long)["attempt"]) == ("running", 1)
    gate.touch()
    assert live.ended(long)["exit_status"] == 99
    assert (live.text("long.pid"), live.text("long.ran")) == (pid, "run\n")
    known = {row.id for row in live.client.requests(ended=True)}
    assert known == {*promised, long}, "nothing was submitted twice"
    assert not live.events("alarm")
    assert not live.client.requests()
